/** Workers, loops, the database, disks and versions. */
import { useQuery } from '@tanstack/react-query'
import { ServerOff } from 'lucide-react'
import type { ReactNode } from 'react'
import { type Instance, instanceQuery } from '../../data/operator.ts'
import { Badge } from '../../ui/badge.tsx'
import { Section } from '../../ui/page.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'

export function SystemView() {
  return (
    <Loaded query={useQuery(instanceQuery)} rows={6}>
      {(instance) => (
        <>
          <Workers workers={instance.workers} version={instance.version} />
          <Facts {...instance} />
        </>
      )}
    </Loaded>
  )
}

type Worker = Instance['workers'][number]

/** A state without words does not compile. */
const states: Readonly<
  Record<Worker['state'], readonly [tone: 'good' | 'plain' | 'warn' | 'danger', label: string]>
> = {
  driving: ['good', 'Running'],
  without_journal: ['danger', 'Cannot write its journal'],
  owing: ['warn', 'Replays its journals'],
  silent: ['danger', 'Silent'],
  stopped: ['plain', 'Stopped'],
}

function Workers({ workers, version }: { workers: readonly Worker[]; version: string }) {
  return (
    <Section title="Workers">
      <Table
        label="Workers"
        rows={workers}
        rowKey={({ id }) => id}
        faded={({ state }) => state === 'stopped'}
        empty={{
          icon: ServerOff,
          title: 'No worker has run in the last day',
          children:
            'Nothing is sent or received without one. Run parley start, or parley work beside parley serve.',
        }}
        columns={[
          {
            heading: 'Worker',
            lead: true,
            cell: ({ id }) => (
              <span title={id} className="font-mono text-xs">
                {id.slice(-12)}
              </span>
            ),
          },
          {
            heading: 'State',
            cell: ({ state }) => <Badge tone={states[state][0]}>{states[state][1]}</Badge>,
          },
          { heading: 'Last heartbeat', cell: ({ beat_at }) => <Time at={String(beat_at)} /> },
          { heading: 'Accounts', cell: ({ accounts }) => accounts },
          { heading: 'Platforms', cell: ({ platforms }) => platforms.join(', ') },
          {
            heading: 'Loops',
            cell: ({ failing }) =>
              failing.length === 0 ? 'All run' : <Badge tone="danger">{failing.join(', ')} failing</Badge>,
          },
          {
            heading: 'Disk free',
            cell: ({ disk_free }) => (disk_free === null ? 'Unknown' : sizeOf(disk_free)),
          },
          {
            heading: 'Version',
            cell: (worker) =>
              worker.version === version || worker.version === '' ? (
                worker.version
              ) : (
                <Badge tone="warn">{worker.version}</Badge>
              ),
          },
        ]}
      />
    </Section>
  )
}

function Facts({ version, node, database, queued, queued_seconds, ambiguous, files_waiting }: Instance) {
  const { connections, connections_max, embedded, migration, size } = database
  return (
    <Section title="Database and versions">
      <dl className="grid max-w-[64ch] gap-y-2 sm:grid-cols-[13rem_1fr]">
        <Fact name="Parley">{version}</Fact>
        <Fact name="Node">{node}</Fact>
        <Fact name="PostgreSQL">
          {database.version}
          {embedded && ', run by Parley'}
        </Fact>
        <Fact name="Newest migration">
          <span className="font-mono text-xs">{migration}</span>
        </Fact>
        <Fact name="Database size">{sizeOf(size)}</Fact>
        <Fact name="Connections">
          {connections} of {connections_max}
        </Fact>
        <Fact name="Operations that wait">
          {queued}
          {queued_seconds !== null && `, the oldest for ${Math.round(queued_seconds)} s`}
        </Fact>
        <Fact name="Unknown outcomes">{ambiguous}</Fact>
        <Fact name="Stored attachments">{files_waiting}</Fact>
      </dl>
    </Section>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-muted">{name}</dt>
      <dd className="mb-2 sm:mb-0">{children}</dd>
    </>
  )
}

const units = ['B', 'kB', 'MB', 'GB', 'TB'] as const

function sizeOf(bytes: number): string {
  const at = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)))
  const value = bytes / 1_000 ** at
  return `${value < 10 && at > 0 ? value.toFixed(1) : Math.round(value)} ${units[at]}`
}
