/** The columns a team hangs on its chats. */
import { sql, type Tx } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'

export const columnTypes = ['select', 'multi_select', 'text', 'number', 'date', 'checkbox', 'url'] as const
export type ColumnType = (typeof columnTypes)[number]

export interface NewColumn {
  readonly name: string
  readonly type: ColumnType
  readonly options?: readonly { readonly value: string; readonly color?: string }[]
}

/** Adds a column at the end, with its options in this order. */
export async function addColumn(tx: Tx, workspace_id: string, column: NewColumn): Promise<string> {
  const id = newId()
  const { name, type, options = [] } = column
  await tx.run(sql`
    insert into columns (id, workspace_id, name, type, position)
    select ${id}, ${workspace_id}, ${name}, ${type},
      coalesce((select max(position) + 1 from columns where workspace_id = ${workspace_id}), 0)`)
  await tx.run(sql`
    insert into column_options (workspace_id, column_id, value, color, position)
    select ${workspace_id}, ${id}, value, color, place - 1
    from unnest(${options.map(({ value }) => value)}::text[],
      ${options.map(({ color = null }) => color)}::text[]) with ordinality as option (value, color, place)`)
  return id
}
