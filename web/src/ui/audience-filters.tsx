/** Which chats: by stage, column and account. Native selects: they load nothing, and work with every keyboard. */
import { useQuery } from '@tanstack/react-query'
import { accountsQuery } from '../data/accounts.ts'
import type { Column } from '../data/api-types.ts'
import type { AudienceFilter } from '../data/audience.ts'
import { columnsQuery, stagesQuery } from '../data/chats.ts'
import type { Workspace } from '../data/queries.ts'
import { type Option, Select } from './select.tsx'

const chip = `h-8 min-w-0 max-w-full truncate rounded-lg px-2 text-xs font-medium pointer-coarse:h-11`
const on = 'bg-accent-wash text-ink'
const off = 'bg-surface text-soft ring-1 ring-inset ring-line hover:bg-hover'

interface FiltersProps {
  workspace: Workspace
  filter: AudienceFilter
  set: (more: Partial<AudienceFilter>) => void
  /** What the select of accounts says while none is chosen. */
  anyAccount: string
}

export function AudienceFilters({ workspace, filter, set, anyAccount }: FiltersProps) {
  const { data: stages = [] } = useQuery(stagesQuery(workspace.id))
  const { data: accounts } = useQuery(accountsQuery(workspace.id))
  return (
    <div className="flex flex-wrap gap-1.5">
      <Chosen
        label="Stage"
        value={filter.stage_key}
        none="Any stage"
        onChange={(stage_key) => set({ stage_key })}
        options={stages
          .filter(({ hidden, key }) => !hidden || key === filter.stage_key)
          .map(({ key, label }) => [key, `In ${label}`])}
      />
      <ColumnFilter workspace={workspace} filter={filter} set={set} />
      {(accounts?.accounts.length ?? 0) > 1 && (
        <Chosen
          label="Account"
          value={filter.account_id}
          none={anyAccount}
          onChange={(account_id) => set({ account_id })}
          options={accounts?.accounts.map(({ id, name }) => [id, name]) ?? []}
        />
      )}
    </div>
  )
}

interface ChosenProps {
  label: string
  value: string | null
  none: string
  options: readonly (readonly [string, string])[]
  onChange: (value: string | null) => void
}

function Chosen({ label, value, none, options, onChange }: ChosenProps) {
  return (
    <Select
      aria-label={label}
      value={value ?? ''}
      options={[['', none], ...options]}
      onChange={(chosen) => onChange(chosen || null)}
      className={`${chip} ${value === null ? off : on}`}
    />
  )
}

interface ColumnFilterProps {
  workspace: Workspace
  filter: Pick<AudienceFilter, 'column_id' | 'column_value'>
  set: (chosen: Pick<AudienceFilter, 'column_id' | 'column_value'>) => void
  /** Leaves out the columns whose values are typed. */
  listed?: boolean
}

/** The values that a column can have; none if a person types them. */
function valuesOf({ type, options }: Column): readonly string[] {
  return type === 'checkbox' ? ['true'] : options.map(({ value }) => value)
}

function optionsOf(column: Column): Option<string>[] {
  const values = valuesOf(column)
  return (values.length > 0 ? values : ['']).map((value) => [
    JSON.stringify([column.id, value]),
    column.type === 'checkbox' ? column.name : `${column.name} is ${value || '…'}`,
  ])
}

/** A column with options lists them; any other has a field for its value. */
export function ColumnFilter({ workspace, filter, set, listed = false }: ColumnFilterProps) {
  const { data: all = [] } = useQuery(columnsQuery(workspace.id))
  const columns = listed ? all.filter((each) => valuesOf(each).length > 0) : all
  const { column_id, column_value } = filter
  const column = columns.find(({ id }) => id === column_id)
  const isFree = column !== undefined && valuesOf(column).length === 0
  const value = column_id === null ? '' : JSON.stringify([column_id, isFree ? '' : column_value])
  // Deleted meanwhile: it stays in the list until the user chooses another one.
  const isGone = column_id !== null && !isFree && !(column && valuesOf(column).includes(column_value ?? ''))
  if (columns.length === 0 && column_id === null) return null
  return (
    <>
      <Select
        aria-label="Column"
        value={value}
        options={[
          ['', 'Any column'],
          ...(isGone
            ? [[value, column ? `${column.name} is ${column_value}` : 'A deleted column'] as const]
            : []),
          ...columns.flatMap(optionsOf),
        ]}
        onChange={(chosen) => {
          const [id, to] = chosen ? JSON.parse(chosen) : [null, null]
          set({ column_id: id, column_value: to })
        }}
        className={`${chip} ${column_id === null ? off : on}`}
      />
      {isFree && (
        <input
          aria-label={`Value of ${column.name}`}
          placeholder="Value"
          value={column_value ?? ''}
          onChange={(event) => set({ column_id, column_value: event.target.value })}
          className={`${chip} ${off} w-32`}
        />
      )}
    </>
  )
}
