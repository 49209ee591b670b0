/** The entries, each with what put it on the list. */
import { Link } from '@tanstack/react-router'
import { UserX } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Workspace } from '../../data/queries.ts'
import { kindWords, type Suppression, writtenOf } from '../../data/suppressions.ts'
import { Button } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { PersonLink } from '../../ui/person-link.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'

interface TableProps {
  rows: readonly Suppression[]
  workspace: Workspace
  isFiltered: boolean
  add: ReactNode
  /** For admins and owners. */
  onRemove?: (entry: Suppression) => void
}

export function SuppressionTable({ rows, workspace, isFiltered, add, onRemove }: TableProps) {
  const actions = {
    heading: 'Actions',
    actions: true,
    cell: (entry: Suppression) => (
      <>
        <PersonLink workspace_id={workspace.id} q={questionOf(entry)}>
          About<span className="sr-only"> {writtenOf(entry)}</span>
        </PersonLink>
        {onRemove && (
          <Button
            kind="quiet"
            size="small"
            aria-label={`Remove ${writtenOf(entry)}`}
            onClick={() => onRemove(entry)}
          >
            Remove
          </Button>
        )}
      </>
    ),
  }
  if (rows.length === 0 && isFiltered) {
    return (
      <p role="status" className="text-muted">
        Not on the list. A search finds a whole username, phone number or platform id, in any spelling.
      </p>
    )
  }
  return (
    <Table
      label="Suppression list"
      rows={rows}
      rowKey={({ kind, value }) => `${kind} ${value}`}
      empty={{
        icon: UserX,
        title: 'Nobody is on the list',
        children: 'Anyone who writes “stop” is added automatically. You can also add people yourself.',
        action: add,
      }}
      columns={[
        { heading: 'Person', lead: true, cell: (entry) => <Person of={entry} /> },
        { heading: 'Why', cell: (entry) => <Evidence of={entry} workspace_id={workspace.id} /> },
        { heading: 'Since', cell: ({ created_at }) => <Time at={created_at} /> },
        actions,
      ]}
    />
  )
}

function Person({ of: entry }: { of: Suppression }) {
  return (
    <span className="grid min-w-0">
      <span className="flex min-w-0 flex-wrap items-baseline gap-x-2">
        <span className="min-w-0 font-medium text-ink [overflow-wrap:anywhere]">
          <ExactLine text={entry.name ?? writtenOf(entry)} />
        </span>
        <span className="text-xs text-muted [overflow-wrap:anywhere]">
          {kindWords[entry.kind]}
          {entry.name !== null && (
            <>
              {' '}
              <ExactLine text={writtenOf(entry)} />
            </>
          )}
        </span>
      </span>
      <KnownPeople of={entry} />
    </span>
  )
}

/** An id and a phone number may be the same digits. */
function questionOf(entry: Suppression): string {
  return entry.kind === 'platform_id' ? `platform:chat:${entry.value}` : writtenOf(entry)
}

/** Who is stopped, so that a person can decide: their other names, and since when the name is another person's. */
function KnownPeople({ of: entry }: { of: Suppression }) {
  const { people } = entry
  const taken = people.find(({ until }) => until === null)
  return people.map((person) => {
    const { platform_id, names, until } = person
    if (names.length === 0 && until === null) return null
    return (
      <span key={platform_id} className="text-xs text-soft [overflow-wrap:anywhere]">
        {names.length > 0 && (
          <>
            Also known as <ExactLine text={names.map(nameOf).join(', ')} />.{' '}
          </>
        )}
        {until !== null &&
          (taken ? (
            <>
              The name has belonged to someone else since <Time at={until} />. Both are stopped.
            </>
          ) : (
            <>
              The name has not been theirs since <Time at={until} />.
            </>
          ))}
      </span>
    )
  })
}

/** Of `username:ada_l`: @ada_l. */
export function nameOf(name: string): string {
  return name.replace(/^username:/, '@').replace(/^phone:/, '+')
}

function Evidence({ of: { source, evidence }, workspace_id }: { of: Suppression; workspace_id: string }) {
  if (source === 'operator') return <span className="text-muted">Added by hand</span>
  if (source === 'import') {
    return (
      <span className="text-muted">
        Imported: <ExactLine text={textOf(evidence.file)} empty="a file" />, line {textOf(evidence.line)}
      </span>
    )
  }
  return (
    <Link
      to="/w/$workspace_id/inbox"
      params={{ workspace_id }}
      search={{
        chat: textOf(evidence.chat_id),
        of: textOf(evidence.account_id),
        message: textOf(evidence.message_id),
      }}
      className="inline-flex max-w-full align-bottom font-medium whitespace-pre text-accent underline underline-offset-3"
    >
      {'Asked to stop: '}
      <ExactLine text={`“${textOf(evidence.text).trim() || 'no text'}”`} cut />
    </Link>
  )
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}
