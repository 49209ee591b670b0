/** Finds one person on the list, or shows one kind of identity. */

import { nameMax } from '../../../../src/rules/limits.ts'
import { kinds } from '../../data/suppressions.ts'
import { FindField } from '../../ui/find-field.tsx'
import { Select } from '../../ui/select.tsx'
import type { Go, SuppressionSearch } from './suppression-search.ts'

export function SuppressionFilters({ search, go }: { search: SuppressionSearch; go: Go }) {
  return (
    <div className="flex flex-wrap items-center gap-2">
      <FindField
        label="Find a username, phone number or platform id"
        placeholder="Username, phone number or platform id"
        value={search.q}
        lengthMax={nameMax}
        onFind={(q) => {
          const { q: _, ...rest } = search
          go(q === undefined ? rest : { ...rest, q })
        }}
        className="h-10 flex-1 basis-64 bg-surface sm:h-8 sm:max-w-md"
      />
      <Select
        look="bar"
        aria-label="Kind"
        value={search.kind ?? ''}
        options={[['', 'All kinds'], ...kinds]}
        onChange={(chosen) => {
          const { kind: _, ...rest } = search
          go(chosen === '' ? rest : { ...rest, kind: chosen })
        }}
      />
    </div>
  )
}
