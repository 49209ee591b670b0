/** Pages of a list whose rows the database returns as JSON text: joins them without parsing. */

/** An item as JSON, followed by the columns of its position in the list. */
export type Row = readonly [item: string, ...position: string[]]

/** `{"<name>": [...], "next_cursor": …, "has_more": …}` from one row more than the page holds. */
export function pageText(
  name: string,
  rows: readonly Row[],
  { limit, next }: { limit: number; next: (position: string[]) => string },
): string {
  const page = rows.length > limit ? rows.slice(0, limit) : rows
  const last = page.at(-1)
  const more = rows.length > limit && last !== undefined
  const cursor = more ? JSON.stringify(next(last.slice(1))) : 'null'
  return joinText(`{"${name}":[`, page, `],"next_cursor":${cursor},"has_more":${more}}`)
}

/** Joins items with commas, and head and tail in the same pass: appending to a long text would copy it once more. */
export function joinText(head: string, rows: readonly Row[], tail: string): string {
  const texts = rows.map(([item]) => item)
  const last = texts.length - 1
  if (last < 0) return head + tail
  texts[0] = head + texts[0]
  texts[last] += tail
  return texts.join(',')
}

/** Some rows of one account as JSON with commas between them; the next batch begins after `last`. */
export interface Batch {
  readonly items: string
  readonly count: number
  readonly last: readonly string[]
}

/**
 * Streams every row of several accounts, a batch at a time: a slow reader holds neither memory nor a connection. `read`
 * returns undefined when there is nothing more.
 */
export async function* streamText(
  head: string,
  accounts: readonly { readonly id: string }[],
  {
    size,
    read,
    tail,
  }: {
    size: number
    read: (account_id: string, after: readonly string[] | undefined) => Promise<Batch | undefined>
    tail: string
  },
): AsyncGenerator<string> {
  let before = head
  for (const { id } of accounts) {
    let batch = await read(id, undefined)
    while (batch) {
      yield `${before}${batch.items}`
      before = ','
      batch = batch.count < size ? undefined : await read(id, batch.last)
    }
  }
  yield before === head ? head + tail : tail
}
