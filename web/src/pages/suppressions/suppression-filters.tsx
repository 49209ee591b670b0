/** Finds one person on the list, or shows one kind of identity. */
import { FindField } from '../../ui/find-field.tsx'
import { type Kind, kindWords, type SuppressionSearch } from './suppression-queries.ts'
import type { Go } from './suppressions.tsx'

/** Longer ones are refused by the service. */
const searchMax = 200

export function SuppressionFilters({ search, go }: { search: SuppressionSearch; go: Go }) {
  return (
    <div className="flex flex-wrap items-center gap-2">
      <FindField
        label="Find a username, phone number or platform id"
        placeholder="Username, phone number or platform id"
        value={search.q}
        lengthMax={searchMax}
        onFind={(q) => {
          const { q: _, ...rest } = search
          go(q === undefined ? rest : { ...rest, q })
        }}
        className="h-10 flex-1 basis-64 bg-surface sm:h-8 sm:max-w-md"
      />
      <select
        aria-label="Kind"
        value={search.kind ?? ''}
        onChange={(event) => {
          const { kind: _, ...rest } = search
          go({ ...rest, ...(event.target.value && { kind: event.target.value as Kind }) })
        }}
        className="h-10 rounded-lg bg-transparent px-1.5 text-xs font-medium text-soft hover:bg-hover sm:h-8"
      >
        <option value="" className="bg-raised text-ink">
          All kinds
        </option>
        {Object.entries(kindWords).map(([kind, word]) => (
          <option key={kind} value={kind} className="bg-raised text-ink">
            {word}
          </option>
        ))}
      </select>
    </div>
  )
}
