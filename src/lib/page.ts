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
  const page = rows.length > limit ? rows.slice(0, limit) : rows
  const last = page.at(-1)
  const more = rows.length > limit && last !== undefined
  const next = more ? JSON.stringify(cursor(last)) : 'null'
  return joinText(`{"${name}":[`, page, `],"next_cursor":${next},"has_more":${more}}`)
}

/** Items between commas, put together in one piece: a page that is added to afterwards is copied once more. */
export function joinText(head: string, rows: readonly Row[], tail: string): string {
  const texts = rows.map(({ item }) => item)
  const last = texts.length - 1
  if (last < 0) return head + tail
  texts[0] = head + texts[0]
  texts[last] += tail
  return texts.join(',')
}
