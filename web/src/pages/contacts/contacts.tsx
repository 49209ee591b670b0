/** Contacts: the people whom the accounts know, found by name; one opens or starts the chat with each. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useCallback, useEffect, useMemo, useState } from 'react'
import { useWorkspace } from '../../place.ts'
import type { Workspace } from '../../queries.ts'
import { useKeys } from '../../shortcuts.ts'
import { Late, Loading, ReadFailure } from '../../ui/states.tsx'
import { accountsQuery } from '../accounts/account-queries.ts'
import { ClosedPage } from '../closed-page.tsx'
import { workspaceQuery } from '../inbox/inbox-queries.ts'
import type { KeyHelp } from '../inbox/key-list.tsx'
import { Missing } from '../stopped.tsx'
import { ContactBar } from './contact-bar.tsx'
import { ContactList } from './contact-list.tsx'
import { ContactPanel, NobodyChosen } from './contact-panel.tsx'
import { type Contact, type ContactFilter, contactsQuery } from './contact-queries.ts'
import { NoContacts } from './no-contacts.tsx'
import { StartPanel } from './start-panel.tsx'

const KeyList = lazy(async () => ({ default: (await import('../inbox/key-list.tsx')).KeyList }))

export interface ContactsSearch {
  /** The beginning of a name. */
  q?: string
  /** Only contacts of this account. */
  account?: string
  /** The chosen contact, and the account that knows it. */
  contact?: string
  of?: string
  /** A chat with someone new, instead of a contact. */
  start?: string
}

export type Go = (search: ContactsSearch) => void

const keyHelp: readonly KeyHelp[] = [
  { keys: '/', does: 'Find by name' },
  { keys: 'J', does: 'Next contact' },
  { keys: 'K', does: 'Previous contact' },
  { keys: 'Enter', does: 'Open or start the chat' },
  { keys: 'N', does: 'Start a chat with someone new' },
  { keys: 'Esc', does: 'Back to the list' },
]

export function ContactsPage() {
  const workspace = useWorkspace()
  return workspace ? <Contacts key={workspace.id} workspace={workspace} /> : <Missing />
}

function Contacts({ workspace }: { workspace: Workspace }) {
  const search = useSearch({ from: '/inside/w/$workspace_id/contacts' })
  const { data: state } = useQuery(workspaceQuery(workspace.id))
  const capability = state?.capabilities.contacts
  const isClosed = capability?.open === false
  const go = useGo(workspace.id)
  useEffect(() => {
    document.title = 'Contacts · Parley'
  }, [])
  return (
    <div data-own-bar className="flex h-dvh flex-col bg-surface">
      <ContactBar workspace={workspace} search={search} go={go} closed={isClosed} />
      {isClosed ? (
        <ClosedPage title="Contacts are closed" closed_by={capability.closed_by} />
      ) : (
        <Content workspace={workspace} search={search} go={go} />
      )}
    </div>
  )
}

function useGo(workspace_id: string): Go {
  const navigate = useNavigate()
  return useCallback(
    (search) =>
      void navigate({
        to: '/w/$workspace_id/contacts',
        params: { workspace_id },
        search,
        resetScroll: false,
      }),
    [navigate, workspace_id],
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
  const [showsKeys, setShowsKeys] = useState(false)
  useContactKeys({ contacts, chosen, onChoose: (next) => go({ ...here, ...idsOf(next) }) })
  useKeys({
    '?': () => setShowsKeys(true),
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
        {query.error && (
          <div className="p-3">
            <ReadFailure query={query} />
          </div>
        )}
        {!contacts && !query.error && (
          <Late>
            <div className="p-3">
              <Loading />
            </div>
          </Late>
        )}
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
      {showsKeys && (
        <Suspense>
          <KeyList keys={keyHelp} onClose={() => setShowsKeys(false)} />
        </Suspense>
      )}
    </div>
  )
}

export const idsOf = ({ provider_id, account_id }: Contact) => ({ contact: provider_id, of: account_id })

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
