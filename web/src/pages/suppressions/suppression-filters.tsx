/** Finds one person on the list, or shows one kind of identity. */
import { Search } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { Keys } from '../../ui/key-cap.tsx'
import { type Kind, kindWords, type SuppressionSearch } from './suppression-queries.ts'
import type { Go } from './suppressions.tsx'

/** A request waits until the user pauses. */
const pauseMs = 200
/** Longer ones are refused by the service. */
const searchMax = 200

export function SuppressionFilters({ search, go }: { search: SuppressionSearch; go: Go }) {
  const [text, setText] = useState(search.q ?? '')
  const latest = useRef(search)
  latest.current = search
  const q = text.trim()
  useEffect(() => {
    if (q === (latest.current.q ?? '')) return
    const timer = setTimeout(() => {
      const { q: _, ...rest } = latest.current
      go(q === '' ? rest : { ...rest, q })
    }, pauseMs)
    return () => clearTimeout(timer)
  }, [q, go])
  return (
    <div className="flex flex-wrap items-center gap-2">
      <label className="flex h-10 min-w-0 flex-1 basis-64 items-center gap-2 rounded-lg bg-surface px-2.5 text-muted ring-1 ring-inset ring-line sm:h-8 sm:max-w-md">
        <Search aria-hidden className="size-4 shrink-0" />
        <input
          data-find
          type="search"
          aria-label="Find a username, phone number or platform id"
          placeholder="Username, phone number or platform id"
          maxLength={searchMax}
          autoComplete="off"
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.target.value)}
          className="min-w-0 flex-1 bg-transparent text-ink outline-none"
        />
        <Keys keys="/" />
      </label>
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
