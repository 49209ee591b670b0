/** Lists that people put in order: moving an item to another position shifts those after it. */
import { type Sql, sql, type Tx } from './sql.ts'

interface OrderedList {
  /** The owner's own words, such as `update stages`. */
  readonly update: Sql
  readonly table: Sql
  /** The column that identifies an item. */
  readonly key: Sql
  /** Selects the rows of this list. */
  readonly rows: Sql
}

/** Moves one item to `place`, counted from 1, and numbers the positions from 0. The caller has locked the list. */
export async function moveItem(
  tx: Tx,
  { update, table, key, rows }: OrderedList,
  { item, place }: { item: string; place: number },
): Promise<void> {
  await tx.run(sql`
    ${update} set position = p.place from (
      select item, row_number() over (order by case when item = ${item} then ${place} * 2 - 1 else rank * 2 end) - 1 as place
      from (
        select ${key} as item, row_number() over (partition by ${key} = ${item} order by position, ${key})::int as rank
        from ${table} where ${rows}) ranked) p
    where ${rows} and ${key} = p.item`)
}
