/** Messages stored in another format are indexed again, and completeness says so in the meantime. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../../test/harness/service.ts'
import { sql } from '../../../db/sql.ts'
import { makeLoops } from '../loops.ts'
import { indexPending, mergeSegments } from './search-index.ts'
import { format } from './segment-writer.ts'

let service: Service
let own: Tenant
let account_id: string

beforeAll(async () => {
  service = await openService({ env: { PARLEY_RATE_LIMIT: '100000' } })
})
afterAll(() => service.close())

/** An account with a whole history of 9,000 messages in two segments: more than one batch of each. */
async function open(): Promise<void> {
  own = await service.tenant('Own')
  account_id = await service.account(own.workspace_id)
  const { db } = service.app
  await db.run(sql`
    insert into account_sync (account_id, workspace_id, phase) values (${account_id}, ${own.workspace_id}, 'done')`)
  await put(1, 9000)
  const owner = { account_id, workspace_id: own.workspace_id }
  while ((await indexPending(db, owner)) > 0);
  await mergeSegments(db, owner, { force: true })
  await put(9001, 9064)
  await indexPending(db, owner)
}

async function put(from: number, until: number): Promise<void> {
  await service.app.db.run(sql`
    insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
    select ${account_id}, 42, n, ${own.workspace_id}, 'word n' || n, false, timestamptz '2026-06-01' + n * interval '1 s'
    from generate_series(${from}::int, ${until}::int) as n`)
}

/** As code with another format would have left them. */
async function outdate(): Promise<void> {
  await service.app.db.run(sql`
    update search_segments set format = ${format - 1} where account_id = ${account_id}`)
}

async function find(query: string) {
  const { status, body } = await service.post('/search', { key: own.key, body: { query } })
  expect(status).toBe(200)
  return {
    count: body.match_count as number,
    ids: (body.matches as { message_id: string }[]).map(({ message_id }) => Number(message_id)),
    complete: (body.completeness as { complete: boolean }).complete,
  }
}

/** Until none of them has any work left. */
async function runLoops(): Promise<void> {
  const { signal } = new AbortController()
  for (let busy = true; busy; ) {
    busy = false
    for (const { step } of makeLoops()) busy = (await step(service.app, signal)) || busy
  }
}

async function countRows() {
  return service.app.db.one(sql`
    select (select count(*)::int from search_segments where format <> ${format}) as outdated,
      (select count(*)::int from search_lists l
        where not exists (select from search_segments s where s.id = l.segment_id)) as lists,
      (select count(*)::int from search_ranks r
        where not exists (select from search_segments s where s.id = r.segment_id)) as keys,
      (select count(*)::int from search_pending where account_id = ${account_id}) as pending`)
}

describe('segments of another format', () => {
  test('200 and not complete until they are indexed again, then complete with everything', async () => {
    await open()
    expect(await find('"n7"')).toEqual({ count: 1, ids: [7], complete: true })
    await outdate()
    expect(await find('"n7"')).toEqual({ count: 0, ids: [], complete: false })
    const [, , reindex] = makeLoops()
    expect(await reindex.step(service.app, new AbortController().signal)).toBe(true)
    expect((await find('"n7"')).complete).toBe(false)
    await runLoops()
    expect(await find('"n7"')).toEqual({ count: 1, ids: [7], complete: true })
    expect((await find('"word"')).ids.slice(0, 3)).toEqual([9064, 9063, 9062])
    expect(await countRows()).toEqual({ outdated: 0, lists: 0, keys: 0, pending: 0 })
  })

  test('finds each message once, whatever is stored, edited and deleted in the meantime', async () => {
    await open()
    await outdate()
    const { app } = service
    const [index, , reindex] = makeLoops()
    const change = (id: number, text: string | null) =>
      app.db.run(
        text === null
          ? sql`update messages set deleted_at = now(), text = '' where account_id = ${account_id} and id = ${id}`
          : sql`update messages set text = ${text} where account_id = ${account_id} and id = ${id}`,
      )
    await change(10, 'changed before')
    await change(11, null)
    for (const lot of [1, 2]) {
      await reindex.step(app, new AbortController().signal)
      await change(20 + lot, 'changed between')
      await change(30 + lot, null)
      await change(8990 + lot, 'changed between')
    }
    await put(9065, 9200)
    await index.step(app, new AbortController().signal)
    await runLoops()
    expect(await find('"word" -changed')).toMatchObject({ count: 1000, complete: true })
    expect((await find('"changed"')).ids).toEqual([8992, 8991, 22, 21, 10])
    for (const id of [11, 31, 32]) expect((await find(`"n${id}"`)).count).toBe(0)
    for (const id of [1, 12, 9000, 9001, 9064, 9065, 9200]) expect((await find(`"n${id}"`)).ids).toEqual([id])
  })
})
