/** A part of a person's page, and a table in it. */
import type { ReactNode } from 'react'
import type { PersonRecord } from '../../data/people.ts'

/** What every part of the page needs. */
export interface PartProps {
  person: PersonRecord
  workspace_id: string
  /** The name of an account. */
  accountOf: (id: string | null) => string
}

interface CardProps {
  title: string
  /** How many there are. */
  count?: number
  /** What stands in place of nothing. */
  empty?: string | undefined
  children: ReactNode
}

export function Card({ title, count, empty, children }: CardProps) {
  return (
    <section aria-label={title} className="overflow-hidden rounded-xl bg-surface ring-1 ring-line">
      <h2 className="px-4 pt-3 pb-2 font-semibold">
        {title}
        {count !== undefined && count > 0 && <span className="ml-2 font-normal text-muted">{count}</span>}
      </h2>
      {empty === undefined ? children : <p className="px-4 pb-3 text-muted">{empty}</p>}
    </section>
  )
}

interface RowsProps<Row> {
  label: string
  headings: readonly string[]
  rows: readonly Row[]
  rowKey: (row: Row) => string
  cells: (row: Row) => readonly ReactNode[]
  faded?: (row: Row) => boolean
}

/** Scrolls by itself where it is too wide, also by keyboard. */
export function Rows<Row>({ label, headings, rows, rowKey, cells, faded }: RowsProps<Row>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section aria-label={label} tabIndex={0} className="overflow-x-auto -outline-offset-2">
      <table className="w-full text-left">
        <thead>
          <tr>
            {headings.map((heading) => (
              <th
                key={heading}
                scope="col"
                className="px-4 py-1.5 text-xs font-medium whitespace-nowrap text-muted"
              >
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)} className={`border-t border-line ${faded?.(row) ? 'text-muted' : ''}`}>
              {cells(row).map((cell, at) => (
                <td key={headings[at]} className="h-10 max-w-72 px-4 py-1.5">
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
