/** Clears the texts of ended operations. Rows, states, times, hashes, ids and what reports count by stay. */
import { given } from '../db/given.ts'
import { sql, type Tx } from '../db/sql.ts'
import { clearedPayload } from '../operation.ts'

interface StoredTexts {
  readonly id: string
  readonly payload: unknown
  readonly reply_body: unknown
}

/**
 * Skips what is still to be executed, and what was cleared before; an ambiguous operation can be proven afterwards. A repeat
 * under the same key is answered as before, without texts and names. Returns how many were cleared.
 */
export async function clearOperations(tx: Tx, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return 0
  const rows = await tx.rows<StoredTexts & { file_id: string | null }>(sql`
    select o.id, o.payload, o.reply_body, o.file_id
    from (select distinct id from unnest(${ids}::uuid[]) as given (id) order by id) g
    cross join lateral (
      select * from operations o where o.id = g.id and o.cleared_at is null
        and o.state not in ('queued', 'submitting') -- guard: what is still to be sent keeps its text
      for update) o`)
  if (rows.length === 0) return 0
  const files = rows.flatMap(({ file_id }) => file_id ?? [])
  if (files.length > 0) {
    await tx.run(sql`
      delete from file_chunks c where c.file_id = any(${files}::uuid[]) and not exists (
        select from operations o where o.file_id = c.file_id and o.state in ('queued', 'submitting'))`)
  }
  const cleared = rows.map(({ id, payload, reply_body }) => ({
    id,
    payload: orNull(payload, clearedPayload),
    reply_body: orNull(reply_body, clearedAnswer),
  }))
  return tx.run(sql`
    update operations o set payload = g.payload::jsonb, reply_body = g.reply_body::json, cleared_at = (select domain_now())
    from ${given(cleared, { id: 'uuid', payload: 'text', reply_body: 'text' })} as g where o.id = g.id`)
}

function orNull(stored: unknown, clear: (stored: unknown) => unknown): string | null {
  return stored === null ? null : JSON.stringify(clear(stored))
}

/** What an answer holds of people: texts, the values of columns, and the names of a chat. Its shape stays. */
function clearedAnswer(answer: unknown): unknown {
  if (Array.isArray(answer)) return answer.map(clearedAnswer)
  if (typeof answer !== 'object' || answer === null) return answer
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]) => {
      if (name === 'text' && typeof value === 'string') return [name, '']
      if (name === 'value' && Array.isArray(value)) return [name, []]
      if (name === 'chat' && typeof value === 'object') return [name, { ...value, name: '', username: null }]
      return [name, clearedAnswer(value)]
    }),
  )
}
