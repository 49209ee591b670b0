/** The bar of the page: find by name, of which account, and start a chat with someone new. */
import { useQuery } from '@tanstack/react-query'
import { Plus, Search } from 'lucide-react'
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import type { Workspace } from '../../queries.ts'
import { MenuButton } from '../../shell.tsx'
import { Button } from '../../ui/button.tsx'
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

/** A request waits until the user pauses. */
const pauseMs = 200
/** Longer ones are refused by the service. */
const nameMax = 200

function Finder({ search, go }: Pick<BarProps, 'search' | 'go'>) {
  const [text, setText] = useState(search.q ?? '')
  const latest = useRef(search)
  latest.current = search
  const q = text.trim()
  useEffect(() => {
    if (q === (latest.current.q ?? '')) return
    const timer = setTimeout(() => {
      const { q: _, start: __, ...rest } = withoutContact(latest.current)
      go(q === '' ? rest : { ...rest, q })
    }, pauseMs)
    return () => clearTimeout(timer)
  }, [q, go])
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.nativeEvent.isComposing) return
    if (event.key === 'Escape') event.currentTarget.blur()
    if (event.key !== 'Enter' && event.key !== 'ArrowDown') return
    event.preventDefault()
    document.querySelector<HTMLElement>('[data-contact]')?.focus()
  }
  return (
    <label className="order-last flex h-10 min-w-0 basis-full items-center gap-2 rounded-lg bg-surface px-2.5 text-muted ring-1 ring-inset ring-line min-[761px]:order-none min-[761px]:h-7 min-[761px]:max-w-xl min-[761px]:flex-1">
      <Search aria-hidden className="size-4 shrink-0" />
      <input
        data-find
        type="search"
        aria-label="Find by name"
        placeholder="Find by name"
        maxLength={nameMax}
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
        className="min-w-0 flex-1 bg-transparent text-ink outline-none"
      />
      <Keys keys="/" />
    </label>
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
