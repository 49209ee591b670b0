/** The contacts by name: rows of 44 px, of which only those in sight exist. */
import { Link } from '@tanstack/react-router'
import { useEffect, useEffectEvent, useRef } from 'react'
import type { Contact } from '../../data/contacts.ts'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Face } from '../../ui/face.tsx'
import { useRowWindow } from '../../ui/row-window.ts'
import { type ContactsSearch, idsOf } from './contacts-search.ts'

interface ListProps {
  contacts: readonly Contact[]
  chosen: Contact | undefined
  workspace_id: string
  /** The address without a contact. */
  here: ContactsSearch
  nameOf: (account_id: string) => string | undefined
  /** The end is near. */
  onEnd: () => void
}

const rowPx = 44
const nearEnd = 30
const keyOf = ({ account_id, provider_id }: Contact) => `${account_id} ${provider_id}`

export function ContactList({ contacts, chosen, workspace_id, here, nameOf, onEnd }: ListProps) {
  const place = useRef<HTMLDivElement>(null)
  const { items, height, last, show } = useRowWindow({ rows: contacts, keyOf, place, rowPx, overscan: 8 })
  const end = useEffectEvent(onEnd)
  useEffect(() => {
    if (last >= contacts.length - nearEnd) end()
  }, [last, contacts.length])
  const at = chosen ? contacts.indexOf(chosen) : -1
  useEffect(() => {
    if (at >= 0) show(at)
  }, [at, show])
  return (
    <div ref={place} className="min-h-0 flex-1 overflow-y-auto overscroll-contain">
      <p role="status" className={contacts.length === 0 ? 'px-5 py-4 text-muted' : 'sr-only'}>
        {contacts.length === 0 && 'No one by that name. Search matches the start of a first or last name.'}
      </p>
      {contacts.length > 0 && (
        <ul aria-label="Contacts" className="relative" style={{ height }}>
          {items.map(({ index, key, start }) => {
            const contact = contacts[index]
            if (!contact) return null
            return (
              <li
                key={key}
                aria-setsize={-1}
                aria-posinset={index + 1}
                className="absolute inset-x-0 h-11"
                style={{ transform: `translateY(${start}px)` }}
              >
                <Row
                  contact={contact}
                  selected={index === at}
                  workspace_id={workspace_id}
                  here={here}
                  account={nameOf(contact.account_id)}
                />
              </li>
            )
          })}
        </ul>
      )}
    </div>
  )
}

interface RowProps extends Pick<ListProps, 'workspace_id' | 'here'> {
  contact: Contact
  selected: boolean
  account: string | undefined
}

function Row({ contact, selected, workspace_id, here, account }: RowProps) {
  return (
    <Link
      to="/w/$workspace_id/contacts"
      params={{ workspace_id }}
      search={{ ...here, ...idsOf(contact) }}
      resetScroll={false}
      preload={false}
      activeOptions={{ exact: true }}
      aria-current={selected ? 'true' : undefined}
      data-contact
      className={`grid h-full grid-cols-2 items-center gap-x-3 border-b border-line px-3 -outline-offset-2 min-[761px]:grid-cols-[minmax(0,1.2fr)_minmax(0,1fr)_minmax(0,8rem)] lg:px-5
        ${selected ? 'bg-selected shadow-[inset_2px_0_0_var(--accent)]' : 'hover:bg-hover'}`}
    >
      <span className="flex min-w-0 items-center gap-2.5">
        <Face
          name={contact.name}
          of={`${contact.account_id}platform:chat:${contact.provider_id}`}
          size="small"
        />
        <span className="min-w-0 truncate font-medium text-ink">
          <ExactLine text={contact.name} empty="No name" cut />
        </span>
      </span>
      <span className="truncate text-muted">
        {contact.username !== null && <ExactLine text={`@${contact.username}`} cut />}
      </span>
      <span className="hidden min-w-0 justify-end text-xs text-muted min-[761px]:flex">
        <ExactLine text={account ?? ''} cut />
      </span>
    </Link>
  )
}
