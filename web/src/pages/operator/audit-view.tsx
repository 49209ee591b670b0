/** The audit log, newest first: filtered by workspace, action and actor, and verified. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { ScrollText } from 'lucide-react'
import { type AuditRow, auditQuery, peopleQuery, verdictQuery } from '../../data/operator.ts'
import { useChange } from '../../data/queries.ts'
import { Button } from '../../ui/button.tsx'
import { ExactLine, ExactText } from '../../ui/exact-text.tsx'
import { Failure } from '../../ui/notice.tsx'
import { type Option, Select } from '../../ui/select.tsx'
import { Loaded, More } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import type { OperatorSearch } from './operator-views.ts'

export function AuditView() {
  const search = useSearch({ from: '/inside/operator' })
  const log = useInfiniteQuery(auditQuery(search))
  const broken = useQuery(verdictQuery).data?.verdict?.seq
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-5">
      <Bar search={search} />
      <Loaded query={log} rows={8}>
        {({ pages }) => <Rows rows={pages.flatMap(({ rows }) => rows)} broken={broken} />}
      </Loaded>
      <More of={log}>Show older</More>
    </div>
  )
}

function Bar({ search }: { search: OperatorSearch }) {
  const navigate = useNavigate()
  const people = useQuery(peopleQuery).data
  const { actions = [] } = useQuery(verdictQuery).data ?? {}
  const filter = (name: 'workspace' | 'action' | 'actor', value: string) => {
    const { [name]: _, ...rest } = search
    void navigate({ to: '/operator', search: { ...rest, ...(value !== '' && { [name]: value }) } })
  }
  return (
    <div className="flex flex-wrap items-center gap-2">
      <Filter
        label="Workspace"
        every="All workspaces"
        value={search.workspace}
        options={(people?.workspaces ?? []).map(({ id, name }) => [id, name])}
        onChange={(value) => filter('workspace', value)}
      />
      <Filter
        label="Action"
        every="Every action"
        value={search.action}
        options={actions.map((action) => [action, action])}
        onChange={(value) => filter('action', value)}
      />
      <Filter
        label="Actor"
        every="Every actor"
        value={search.actor}
        options={[
          ['system', 'Parley itself'],
          ...(people?.users ?? []).map(({ id, email }): Option<string> => [`user:${id}`, email]),
        ]}
        onChange={(value) => filter('actor', value)}
      />
      <Verify />
    </div>
  )
}

interface FilterProps {
  label: string
  every: string
  value: string | undefined
  options: readonly Option<string>[]
  onChange: (value: string) => void
}

function Filter({ label, every, value = '', options, onChange }: FilterProps) {
  const known = value === '' || options.some(([each]) => each === value)
  return (
    <Select
      look="field"
      aria-label={label}
      value={value}
      options={[['', every], ...(known ? [] : [[value, value] as const]), ...options]}
      onChange={onChange}
      className="!w-auto max-w-full sm:max-w-56"
    />
  )
}

function Verify() {
  const verify = useChange('POST /audit/verify', ['instance'])
  const { verdict } = useQuery(verdictQuery).data ?? {}
  return (
    <div className="ml-auto flex flex-wrap items-center gap-3">
      <span role="status" className="text-xs text-muted">
        {verdict?.ok && (
          <>
            {verdict.rows.toLocaleString('en')} rows verified <Time at={String(verdict.at)} />
          </>
        )}
      </span>
      <Button busy={verify.isPending} onClick={() => verify.mutate(undefined)}>
        Verify
      </Button>
      <Failure error={verify.error} />
    </div>
  )
}

function Rows({ rows, broken }: { rows: readonly AuditRow[]; broken: string | undefined }) {
  return (
    <Table
      label="Audit log"
      rows={rows}
      rowKey={({ seq }) => seq}
      empty={{
        icon: ScrollText,
        title: 'No such changes',
        children: 'No row of the log fits these filters.',
      }}
      columns={[
        {
          heading: 'Row and time',
          lead: true,
          cell: ({ seq, at }) => (
            <span className="whitespace-nowrap">
              <span
                className={`inline-block md:min-w-10 ${seq === broken ? 'font-semibold text-danger' : 'text-muted'}`}
              >
                {seq}
                {seq === broken && ' fails to verify'}
              </span>{' '}
              <Time at={String(at)} exact />
            </span>
          ),
        },
        {
          heading: 'Who',
          cell: ({ actor, actor_email, workspace_name }) => (
            <span title={actor} className="block max-w-64">
              <span className="block truncate">
                <ExactLine text={actor_email ?? actor} cut />
              </span>
              {workspace_name !== null && (
                <span className="block truncate text-xs text-muted">
                  <ExactLine text={workspace_name} cut />
                </span>
              )}
            </span>
          ),
        },
        { heading: 'What', cell: ({ action }) => <span className="font-mono text-xs">{action}</span> },
        { heading: 'On', cell: (row) => <Target {...row} /> },
      ]}
    />
  )
}

function Target({ target, detail }: AuditRow) {
  const said = Object.entries(detail)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}: ${wordsOf(value)}`)
  return (
    <span className="block max-w-[52ch] [overflow-wrap:anywhere]">
      <span className="font-mono text-xs">
        <ExactText text={target} />
      </span>
      {said.length > 0 && (
        <span className="block text-xs text-muted">
          <ExactText text={said.join(' · ')} />
        </span>
      )}
    </span>
  )
}

function wordsOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(wordsOf).join(', ')
  return typeof value === 'string' ? value : JSON.stringify(value)
}
