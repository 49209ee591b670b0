/** The one table: rows of 44 px. On a narrow screen each row becomes a block with each heading above its value. */
import type { ReactNode } from 'react'
import { Empty, type EmptyProps } from './states.tsx'

interface Column<Row> {
  heading: string
  cell: (row: Row) => ReactNode
  /** The value that identifies the row: it heads the block on a narrow screen. */
  lead?: boolean
  /** A column of buttons: its heading is for screen readers only. */
  actions?: boolean
}

interface TableProps<Row> {
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  rowKey: (row: Row) => string
  empty: EmptyProps
  /** Dims rows that have ended. */
  faded?: (row: Row) => boolean
}

// The roles are explicit because `display: block` would remove them.
export function Table<Row>({ label, columns, rows, rowKey, empty, faded }: TableProps<Row>) {
  if (rows.length === 0) return <Empty {...empty} />
  return (
    <div className="-mx-4 -mt-2 border-b border-line sm:-mx-5">
      <table role="table" aria-label={label} className="block w-full text-left md:table">
        <thead role="rowgroup" className="sr-only md:not-sr-only md:table-header-group">
          <tr role="row" className="md:table-row">
            {columns.map(({ heading, actions }) => (
              <th
                key={heading}
                role="columnheader"
                scope="col"
                className="px-4 py-2 text-xs font-medium text-muted first:pl-5 last:pr-5"
              >
                {actions ? <span className="sr-only">{heading}</span> : heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup" className="block md:table-row-group">
          {rows.map((row) => (
            <tr
              key={rowKey(row)}
              role="row"
              className={`block border-line px-4 py-3.5 not-first:border-t md:table-row md:px-0 md:py-0 md:transition-colors
                md:hover:bg-sunken ${faded?.(row) ? 'text-muted' : ''}`}
            >
              {columns.map((column) => (
                <Cell key={column.heading} column={column}>
                  {column.cell(row)}
                </Cell>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Cell<Row>({ column, children }: { column: Column<Row>; children: ReactNode }) {
  const { heading, lead, actions } = column
  const wide =
    'md:table-cell md:h-11 md:border-t md:border-line md:px-4 md:py-1 md:align-middle md:first:pl-5 md:last:pr-5'
  if (actions)
    return (
      <td role="cell" className={`mt-2 flex justify-end gap-1 empty:hidden md:w-px ${wide}`}>
        <span className="flex justify-end gap-1">{children}</span>
      </td>
    )
  if (lead)
    return (
      <td role="cell" className={`block pb-1.5 ${wide}`}>
        {children}
      </td>
    )
  return (
    <td role="cell" className={`block py-1 ${wide}`}>
      <span aria-hidden className="block text-xs text-muted md:hidden">
        {heading}
      </span>
      {children}
    </td>
  )
}
