/** Which chats: by stage, column and account. Native selects: they load nothing, and work with every keyboard. */
import { useQuery } from '@tanstack/react-query'
import type { Workspace } from '../queries.ts'
import { accountsQuery } from './accounts/account-queries.ts'
import type { AudienceFilter } from './campaign-editor/campaign-draft.ts'
import { columnsQuery, stagesQuery } from './inbox/inbox-queries.ts'

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
    <select
      aria-label={label}
      value={value ?? ''}
      onChange={(event) => onChange(event.target.value || null)}
      className={`${chip} ${value === null ? off : on}`}
    >
      <option value="">{none}</option>
      {options.map(([id, name]) => (
        <option key={id} value={id} className="bg-raised text-ink">
          {name}
        </option>
      ))}
    </select>
  )
}

/** A column with options lists them; any other has a field for its value. */
function ColumnFilter({ workspace, filter, set }: Omit<FiltersProps, 'anyAccount'>) {
  const { data: columns = [] } = useQuery(columnsQuery(workspace.id))
  const { column_id, column_value } = filter
  const column = columns.find(({ id }) => id === column_id)
  const isFree = column !== undefined && column.options.length === 0
  const value = column_id === null ? '' : JSON.stringify([column_id, isFree ? '' : column_value])
  if (columns.length === 0) return null
  return (
    <>
      <select
        aria-label="Column"
        value={value}
        onChange={(event) => {
          const [id, chosen] = event.target.value ? JSON.parse(event.target.value) : [null, null]
          set({ column_id: id, column_value: chosen })
        }}
        className={`${chip} ${column_id === null ? off : on}`}
      >
        <option value="">Any column</option>
        {columns.map(({ id, name, options }) =>
          (options.length > 0 ? options.map((each) => each.value) : ['']).map((option) => (
            <option
              key={`${id} ${option}`}
              value={JSON.stringify([id, option])}
              className="bg-raised text-ink"
            >
              {name} is {option || '…'}
            </option>
          )),
        )}
      </select>
      {isFree && (
        <input
          aria-label={`Value of ${column.name}`}
          placeholder="Value"
          value={column_value ?? ''}
          onChange={(event) => set({ column_value: event.target.value })}
          className={`${chip} ${off} w-32`}
        />
      )}
    </>
  )
}
