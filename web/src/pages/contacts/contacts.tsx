/** Contacts: the people whom the accounts know, found by name; one opens or starts the chat with each. */

import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { useMemo } from 'react'
import { accountsQuery } from '../../data/accounts.ts'
import { workspaceQuery } from '../../data/chats.ts'
import { type Contact, type ContactFilter, contactsQuery } from '../../data/contacts.ts'
import { useGo, useHere } from '../../data/place.ts'
import type { Workspace } from '../../data/queries.ts'
import { ClosedPage } from '../../ui/closed-page.tsx'
import { KeyHelp } from '../../ui/key-help.tsx'
import type { KeyWords } from '../../ui/key-list.tsx'
import { useKeys } from '../../ui/shortcuts.ts'
import { Reading } from '../../ui/states.tsx'
import { useTitle } from '../../ui/title.ts'
import { ContactBar } from './contact-bar.tsx'
import { ContactList } from './contact-list.tsx'
import { ContactPanel, NobodyChosen } from './contact-panel.tsx'
import { type ContactsSearch, type Go, idsOf } from './contacts-search.ts'
import { NoContacts } from './no-contacts.tsx'
import { StartPanel } from './start-panel.tsx'

const keyHelp: readonly KeyWords[] = [
  { keys: '/', does: 'Find by name' },
  { keys: 'J', does: 'Next contact' },
  { keys: 'K', does: 'Previous contact' },
  { keys: 'Enter', does: 'Open or start the chat' },
  { keys: 'N', does: 'Start a chat with someone new' },
  { keys: 'Esc', does: 'Back to the list' },
]

export function ContactsPage() {
  const workspace = useHere()
  const search = useSearch({ from: '/inside/w/$workspace_id/contacts' })
  const { data: state } = useQuery(workspaceQuery(workspace.id))
  const capability = state?.capabilities.contacts
  const isClosed = capability?.open === false
  const go = useGo<ContactsSearch>('/w/$workspace_id/contacts')
  useTitle('Contacts')
  return (
    <div data-own-bar className="flex h-dvh flex-col bg-surface">
      <ContactBar workspace={workspace} search={search} go={go} closed={isClosed} />
      {isClosed ? (
        <ClosedPage title="Contacts are turned off here" closed_by={capability.closed_by} />
      ) : (
        <Content workspace={workspace} search={search} go={go} />
      )}
    </div>
  )
}

interface ContentProps {
  workspace: Workspace
  search: ContactsSearch
  go: Go
}

function Content({ workspace, search, go }: ContentProps) {
  const { q, account, contact, of, start, ...rest } = search
  const filter = useMemo<ContactFilter>(
    () => ({ workspace_id: workspace.id, account_id: account, q }),
    [workspace.id, account, q],
  )
  const query = useInfiniteQuery({ ...contactsQuery(filter), placeholderData: (before) => before })
  const { data: accounts } = useQuery(accountsQuery(workspace.id))
  const contacts = useMemo(() => query.data?.pages.flatMap((page) => page.contacts), [query.data])
  const here = { ...rest, ...(q !== undefined && { q }), ...(account !== undefined && { account }) }
  const chosen = useChosen(contacts, search)
  const isAlone = start !== undefined || contact !== undefined
  useContactKeys({ contacts, chosen, onChoose: (next) => go({ ...here, ...idsOf(next) }) })
  useKeys({
    n: () => go({ ...here, start: 'new' }),
    ...(isAlone && { Escape: () => go(here) }),
  })
  const nameOf = (id: string) =>
    (accounts?.accounts.length ?? 0) > 1 ? accounts?.accounts.find((each) => each.id === id)?.name : undefined
  const isEmpty = contacts?.length === 0 && q === undefined && account === undefined
  if (isEmpty && !isAlone) {
    return (
      <NoContacts
        workspace_id={workspace.id}
        accounts={accounts?.accounts}
        onStart={() => go({ start: 'new' })}
      />
    )
  }
  return (
    <div className="flex min-h-0 flex-1">
      <section
        aria-label="Contacts"
        className={`min-h-0 min-w-0 flex-1 flex-col border-line min-[761px]:flex min-[761px]:border-r ${isAlone ? 'hidden' : 'flex'}`}
      >
        <Reading query={query} className="p-3" />
        {contacts && (
          <ContactList
            contacts={contacts}
            chosen={chosen}
            workspace_id={workspace.id}
            here={here}
            nameOf={nameOf}
            onEnd={() => void (query.hasNextPage && !query.isFetching && query.fetchNextPage())}
          />
        )}
      </section>
      <aside
        aria-label={start === undefined ? 'Contact' : 'New chat'}
        className={`min-w-0 overflow-y-auto max-[760px]:w-full min-[761px]:block min-[761px]:w-80 ${isAlone ? 'block' : 'hidden'}`}
      >
        {start !== undefined && (
          <StartPanel workspace={workspace} account_id={account} onClose={() => go(here)} />
        )}
        {start === undefined && contact !== undefined && of !== undefined && (
          <ContactPanel
            key={`${of} ${contact}`}
            workspace={workspace}
            account_id={of}
            provider_id={contact}
            contact={chosen}
            onClose={() => go(here)}
          />
        )}
        {!isAlone && <NobodyChosen />}
      </aside>
      <KeyHelp keys={keyHelp} />
    </div>
  )
}

const isAt = ({ provider_id, account_id }: Contact, { contact, of }: ContactsSearch) =>
  provider_id === contact && account_id === of

/** The contact in the address, as far as the list has it. */
function useChosen(contacts: readonly Contact[] | undefined, search: ContactsSearch): Contact | undefined {
  return contacts?.find((each) => isAt(each, search))
}

interface KeyPlace {
  contacts: readonly Contact[] | undefined
  chosen: Contact | undefined
  onChoose: (contact: Contact) => void
}

function useContactKeys({ contacts = [], chosen, onChoose }: KeyPlace): void {
  const step = (by: number) => {
    const next = chosen ? contacts[contacts.indexOf(chosen) + by] : contacts[0]
    if (next) onChoose(next)
  }
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    '/': () => document.querySelector<HTMLElement>('[data-find]')?.focus(),
  })
}
