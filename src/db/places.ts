/** Lists that people put in order: moving an item to another position shifts those after it. */
import { type Sql, sql } from './sql.ts'

/** New places, from 0, of `items` (a selection of `item` and `position`) when one of them moves to `place`. */
export function placesWith(items: Sql, { item, place }: { item: string; place: number }): Sql {
  return sql`
    select item, row_number() over (order by case when item = ${item} then ${place} * 2 - 1 else rank * 2 end) - 1 as place
    from (
      select item, row_number() over (partition by item = ${item} order by position, item)::int as rank
      from (${items}) items) ranked`
}
