/** Pages of a list whose rows the database has written as JSON: put together without reading them again. */

export interface Row {
  readonly item: string
}

/** `{"<name>": [...], "next_cursor": …, "has_more": …}` from one row more than the page holds. */
export function pageText<R extends Row>(
  name: string,
  rows: readonly R[],
  { limit, cursor }: { limit: number; cursor: (last: R) => string },
): string {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const more = rows.length > limit && last !== undefined
  const next = more ? JSON.stringify(cursor(last)) : 'null'
  return `{"${name}":[${page.map(({ item }) => item).join(',')}],"next_cursor":${next},"has_more":${more}}`
}
