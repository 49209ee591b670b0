/** What erasing a person removes and what stays, and the confirmation. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { newKey } from '../../data/kept.ts'
import {
  type ErasurePreview,
  erasurePreviewQuery,
  type PersonRecord,
  useErase,
  writtenName,
} from '../../data/people.ts'
import { Confirm } from '../../ui/dialog.tsx'
import { Choice, Choices } from '../../ui/form.tsx'
import { Loaded } from '../../ui/states.tsx'

export interface EraseProps {
  workspace_id: string
  person: PersonRecord
}

/** What only means this person: a name that they have now, otherwise their number. */
function phraseOf({ names, platform_id }: PersonRecord): string {
  const current = names.filter(({ kind, until }) => kind !== 'name' && until === null)
  const found = current.find(({ kind }) => kind === 'username') ?? current[0]
  return found ? writtenName(`${found.kind}:${found.value}`) : platform_id
}

export function EraseDialog({ workspace_id, person, onClose }: EraseProps & { onClose: () => void }) {
  const query = useQuery(erasurePreviewQuery(workspace_id, person.id))
  const erase = useErase(workspace_id, person.id)
  const [contact_allowed, setContactAllowed] = useState(false)
  const [opened] = useState(newKey)
  const preview = query.data?.preview
  // The names are read again while the dialog is open.
  const [phrase] = useState(() => phraseOf(person))
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Erase ${person.name ?? phrase}?`}
      description="This cannot be undone. It goes on if Parley restarts."
      phrase={phrase}
      phraseLabel="Type this to confirm"
      action="Erase for good"
      disabled={preview === undefined || query.isFetching}
      change={erase}
      onConfirm={() => {
        if (preview === undefined) return
        // Another preview or choice is another request.
        const key = `${opened} ${preview.slice(0, 16)} ${contact_allowed}`
        erase.mutate({ key, preview, contact_allowed }, { onSuccess: onClose })
      }}
    >
      <Loaded query={query} rows={6}>
        {(shown) => <Parts of={shown} listed={!contact_allowed} />}
      </Loaded>
      <p className="text-muted">
        Backups still contain the texts. A restore first stops everything to this person again, and their
        texts go once Parley runs. Export first if you need a copy.
      </p>
      <Choices legend="Afterwards">
        <Choice
          label="May be contacted again"
          help="Otherwise campaigns, imports and first messages to this person are refused."
          checked={contact_allowed}
          onChange={(event) => setContactAllowed(event.target.checked)}
        />
      </Choices>
    </Confirm>
  )
}

const goes: readonly (readonly [part: keyof ErasurePreview['removes'], one: string, many: string])[] = [
  ['messages', 'message', 'messages'],
  ['chats', 'private chat', 'private chats'],
  ['files', 'file', 'files'],
  ['names', 'username or phone number', 'usernames and phone numbers'],
  ['campaigns', 'campaign entry', 'campaign entries'],
  ['notes', 'note', 'notes'],
  ['column_values', 'column value', 'column values'],
]

function Parts({ of: { removes, stays }, listed }: { of: ErasurePreview; listed: boolean }) {
  const present = goes.filter(([part]) => removes[part] > 0)
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      <section aria-label="Goes" className="rounded-[10px] px-3.5 py-2.5 ring-1 ring-inset ring-line">
        <h3 className="mb-1 font-semibold">Goes</h3>
        <ul className="grid gap-y-0.5 text-soft">
          {present.map(([part, one, many]) => (
            <li key={part}>
              <b className="font-semibold text-ink">{removes[part].toLocaleString('en')}</b>{' '}
              {removes[part] === 1 ? one : many}
            </li>
          ))}
          <li>Their messages in groups</li>
        </ul>
      </section>
      <section aria-label="Stays" className="rounded-[10px] px-3.5 py-2.5 ring-1 ring-inset ring-line">
        <h3 className="mb-1 font-semibold">Stays</h3>
        <ul className="grid gap-y-1 text-soft">
          <li>
            That <b className="font-semibold text-ink">{stays.operations.toLocaleString('en')}</b>{' '}
            {stays.operations === 1 ? 'operation' : 'operations'} happened, when and with what result
          </li>
          <li>Their number on the platform, and a hash of each name</li>
          {listed && <li>That Parley never writes to this person first</li>}
          <li>In the audit log: you, and when</li>
        </ul>
      </section>
    </div>
  )
}
