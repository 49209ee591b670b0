/** The bar of the page: find by name, of which account, and start a chat with someone new. */
import { Plus } from 'lucide-react'
import { nameMax } from '../../../../src/rules/limits.ts'
import type { Workspace } from '../../data/queries.ts'
import { AccountFilter } from '../../ui/account-filter.tsx'
import { Button } from '../../ui/button.tsx'
import { FindField } from '../../ui/find-field.tsx'
import { Keys } from '../../ui/key-cap.tsx'
import { MenuButton } from '../../ui/menu-button.tsx'
import type { ContactsSearch, Go } from './contacts-search.ts'

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
          <AccountFilter
            workspace_id={workspace.id}
            value={search.account}
            onChange={(account) => {
              const { account: _, ...rest } = withoutContact(search)
              go(account === undefined ? rest : { ...rest, account })
            }}
          />
          <Button
            size="small"
            className="ml-auto"
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
