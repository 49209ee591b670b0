/** The bar of the page: find by name, of which account, and start a chat with someone new. */
import { useQuery } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import type { Workspace } from '../../queries.ts'
import { MenuButton } from '../../shell.tsx'
import { Button } from '../../ui/button.tsx'
import { FindField } from '../../ui/find-field.tsx'
import { Keys } from '../../ui/key-cap.tsx'
import { accountsQuery } from '../accounts/account-queries.ts'
import type { ContactsSearch, Go } from './contacts.tsx'

interface BarProps {
  workspace: Workspace
  search: ContactsSearch
  go: Go
  /** Its gate. */
  closed: boolean
}

export function ContactBar({ workspace, search, go, closed }: BarProps) {
  return (
    <header className="flex min-h-[53px] shrink-0 flex-wrap items-center gap-x-2 gap-y-1 border-b border-line px-2 py-2 lg:px-5">
      <MenuButton />
      <h1 className="mr-1 text-lg font-semibold">Contacts</h1>
      {!closed && (
        <>
          <Finder search={search} go={go} />
          <AccountFilter workspace={workspace} search={search} go={go} />
          <Button
            size="small"
            className="ml-auto pointer-coarse:h-11"
            onClick={() => go({ ...withoutContact(search), start: 'new' })}
          >
            <Plus aria-hidden className="size-3.5" />
            Start a chat <Keys keys="N" />
          </Button>
        </>
      )}
    </header>
  )
}

function withoutContact({ contact: _, of: __, ...rest }: ContactsSearch): ContactsSearch {
  return rest
}

/** Longer ones are refused by the service. */
const nameMax = 200

function Finder({ search, go }: Pick<BarProps, 'search' | 'go'>) {
  return (
    <FindField
      label="Find by name"
      value={search.q}
      lengthMax={nameMax}
      first="[data-contact]"
      onFind={(q) => {
        const { q: _, start: __, ...rest } = withoutContact(search)
        go(q === undefined ? rest : { ...rest, q })
      }}
      className="order-last h-10 basis-full bg-surface min-[761px]:order-none min-[761px]:h-7 min-[761px]:max-w-xl min-[761px]:flex-1"
    />
  )
}

/** A native select: it loads nothing, and works with every keyboard and screen reader. */
function AccountFilter({ workspace, search, go }: Omit<BarProps, 'closed'>) {
  const { data } = useQuery(accountsQuery(workspace.id))
  if (!data || data.accounts.length < 2) return null
  return (
    <select
      aria-label="Account"
      value={search.account ?? ''}
      onChange={(event) => {
        const { account: _, ...rest } = withoutContact(search)
        go({ ...rest, ...(event.target.value && { account: event.target.value }) })
      }}
      className="h-10 min-w-0 max-w-40 truncate rounded-lg bg-transparent px-1.5 text-xs font-medium text-soft hover:bg-hover min-[761px]:h-7"
    >
      <option value="" className="bg-raised text-ink">
        All accounts
      </option>
      {data.accounts.map(({ id, name }) => (
        <option key={id} value={id} className="bg-raised text-ink">
          {name}
        </option>
      ))}
    </select>
  )
}
