/** The entries, each with what put it on the list. */
import { Link } from '@tanstack/react-router'
import { UserX } from 'lucide-react'
import type { ReactNode } from 'react'
import { ExactLine } from '../../exact-text.tsx'
import type { Workspace } from '../../queries.ts'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { kindWords, type Suppression } from './suppression-queries.ts'

interface TableProps {
  rows: readonly Suppression[]
  workspace: Workspace
  isFiltered: boolean
  add: ReactNode
  /** For admins and owners. */
  onRemove?: (entry: Suppression) => void
}

export function SuppressionTable({ rows, workspace, isFiltered, add, onRemove }: TableProps) {
  const remove = {
    heading: 'Actions',
    actions: true,
    cell: (entry: Suppression) =>
      onRemove && (
        <Button
          kind="quiet"
          size="small"
          aria-label={`Remove ${writtenOf(entry)}`}
          onClick={() => onRemove(entry)}
        >
          Remove
        </Button>
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
        children: <WhenEmpty workspace_id={workspace.id} />,
        action: add,
      }}
      columns={[
        { heading: 'Person', lead: true, cell: (entry) => <Person of={entry} /> },
        { heading: 'Why', cell: (entry) => <Evidence of={entry} workspace_id={workspace.id} /> },
        { heading: 'Since', cell: ({ created_at }) => <Time at={created_at} /> },
        ...(onRemove ? [remove] : []),
      ]}
    />
  )
}

/** As people write it: @ada_l, +49170555. */
export function writtenOf({ kind, value }: Pick<Suppression, 'kind' | 'value'>): string {
  return `${{ username: '@', phone: '+', platform_id: '' }[kind]}${value}`
}

function Person({ of: entry }: { of: Suppression }) {
  return (
    <span className="flex min-w-0 flex-wrap items-baseline gap-x-2">
      <span className="min-w-0 font-medium text-ink [overflow-wrap:anywhere]">
        <ExactLine text={writtenOf(entry)} />
      </span>
      <span className="text-xs text-muted">{kindWords[entry.kind]}</span>
    </span>
  )
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
      className="inline-block max-w-full truncate align-bottom font-medium text-accent underline underline-offset-3"
    >
      Asked to stop: “<ExactLine text={textOf(evidence.text)} empty="no text" />”
    </Link>
  )
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

function WhenEmpty({ workspace_id }: { workspace_id: string }) {
  return (
    <>
      <p>
        Everyone who writes “stop” comes here by themselves. Add people whom Parley must never write to first.
      </p>
      <div className="mt-4 text-left">
        <Code
          label="In a terminal, for a whole file"
          text={`npx parley suppress import list.csv --workspace ${workspace_id}`}
        />
      </div>
    </>
  )
}
