/** Beside a person's history: suppression, values in columns, notes. */
import { Link } from '@tanstack/react-router'
import { Ban } from 'lucide-react'
import type { PersonRecord } from '../../data/people.ts'
import { kindWords, writtenOf } from '../../data/suppressions.ts'
import { ExactLine, ExactText } from '../../ui/exact-text.tsx'
import { Time } from '../../ui/time.tsx'
import { Card, type PartProps } from './person-card.tsx'

type Entry = PersonRecord['suppressions'][number]

export function Suppression({ person: { suppressions }, workspace_id }: PartProps) {
  const empty =
    suppressions.length === 0 ? 'Not on the list: campaigns and first messages may go out.' : undefined
  return (
    <Card title="Suppression" empty={empty}>
      <div className="grid gap-2.5 px-4 pb-3">
        <p className="flex items-center gap-2 font-semibold text-danger">
          <Ban aria-hidden className="size-4 shrink-0" />
          No campaign or first message, from any account
        </p>
        <ul aria-label="Entries" className="grid gap-2.5">
          {suppressions.map((entry) => (
            <li key={`${entry.kind} ${entry.value}`}>
              <Cause of={entry} workspace_id={workspace_id} />
              <p className="text-xs text-muted">
                {kindWords[entry.kind]} <ExactLine text={writtenOf(entry)} />, since{' '}
                <Time at={entry.created_at} />
              </p>
            </li>
          ))}
        </ul>
      </div>
    </Card>
  )
}

const textOf = (value: unknown) =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : ''

function Cause({ of: { source, evidence }, workspace_id }: { of: Entry; workspace_id: string }) {
  if (source === 'operator') return <p>Added by hand</p>
  if (source === 'import') {
    return (
      <p>
        Imported: <ExactLine text={textOf(evidence.file)} empty="a file" />, line {textOf(evidence.line)}
      </p>
    )
  }
  return (
    <>
      <blockquote dir="auto" className="border-l-2 border-line-strong pl-3 text-ink">
        <ExactText text={textOf(evidence.text)} />
      </blockquote>
      <Link
        to="/w/$workspace_id/inbox"
        params={{ workspace_id }}
        search={{
          chat: textOf(evidence.chat_id),
          of: textOf(evidence.account_id),
          message: textOf(evidence.message_id),
        }}
        className="text-xs text-accent underline underline-offset-3"
      >
        Show in chat
      </Link>
    </>
  )
}

export function Values({ person: { columns }, accountOf }: PartProps) {
  return (
    <Card title="Columns" empty={columns.length === 0 ? 'No column is filled in.' : undefined}>
      <dl className="grid grid-cols-[6rem_minmax(0,1fr)] gap-x-2.5 gap-y-1.5 px-4 pb-3">
        {columns.map(({ column_id, account_id, name, value }) => (
          <div key={`${column_id} ${account_id}`} className="contents">
            <dt className="truncate text-muted">
              <ExactLine text={name} cut />
            </dt>
            <dd className="min-w-0 [overflow-wrap:anywhere]">
              <ExactLine text={value.join(', ')} />
              <span className="block text-xs text-muted">
                In the chat of <ExactLine text={accountOf(account_id)} />
              </span>
            </dd>
          </div>
        ))}
      </dl>
    </Card>
  )
}

export function Notes({ person: { notes } }: PartProps) {
  return (
    <Card
      title="Notes"
      count={notes.length}
      empty={notes.length === 0 ? 'No note on their chats.' : undefined}
    >
      <ul aria-label="Notes of the team" className="grid gap-2 px-4 pb-3">
        {notes.map(({ id, text, author, at }) => (
          <li key={id} className="rounded-[10px] px-2.75 py-2 ring-1 ring-inset ring-line">
            <div dir="auto">
              <ExactText text={text} />
            </div>
            <p className="mt-0.5 text-xs text-muted">
              <ExactLine text={author.name} empty="A former member" />, <Time at={at} />
            </p>
          </li>
        ))}
      </ul>
    </Card>
  )
}
