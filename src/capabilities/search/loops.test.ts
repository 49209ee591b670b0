import { afterAll, beforeAll, expect, test } from 'vitest'
import { openService, type Service } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import { makeLoops } from './loops.ts'

let service: Service
beforeAll(async () => {
  service = await openService({})
})
afterAll(() => service.close())

test('an account that cannot be indexed delays no other account, and what was indexed is merged', async () => {
  const { app } = service
  const { workspace_id } = await service.tenant('Own')
  const account_ids = [await service.account(workspace_id), await service.account(workspace_id)].sort()
  const [broken, sound] = account_ids
  const [index, merge] = makeLoops()
  const { signal } = new AbortController()
  const put = (account_id: string | undefined, from: number) =>
    app.db.run(sql`
      insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
      select ${account_id}, 42, ${from}::int + n, ${workspace_id}, 'word', false, now() from generate_series(1, 64) as n`)
  await put(broken, 0)
  // Of no account: a segment of it is refused.
  await app.db.run(sql`update search_pending set workspace_id = ${newId()} where account_id = ${broken}`)
  for (let round = 0; round < 4; round++) {
    await put(sound, round * 64)
    await expect(index.step(app, signal)).rejects.toThrow()
  }
  const segments = () =>
    app.db.rows(sql`select account_id, messages from search_segments where account_id = any(${account_ids})`)
  expect(await segments()).toEqual(Array.from({ length: 4 }, () => ({ account_id: sound, messages: 64 })))
  while (await merge.step(app, signal));
  expect(await segments()).toEqual([{ account_id: sound, messages: 256 }])
})

test('an account that cannot be merged delays no other account', async () => {
  const { app } = service
  const { workspace_id } = await service.tenant('Own')
  const [held, free] = [await service.account(workspace_id), await service.account(workspace_id)]
  const [index, merge] = makeLoops()
  const { signal } = new AbortController()
  for (let round = 0; round < 4; round++) {
    for (const account_id of round === 0 ? [held] : [held, free]) {
      await app.db.run(sql`
        insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
        select ${account_id}, 42, ${round}::int * 64 + n, ${workspace_id}, 'word', false, now() from generate_series(1, 64) as n`)
    }
    await index.step(app, signal).catch(() => {})
  }
  const segments = async (account_id: string) => {
    const rows = await app.db.rows(sql`select from search_segments where account_id = ${account_id}`)
    return rows.length
  }
  await app.db.transaction(async (tx) => {
    await tx.run(sql`select from search_segments where account_id = ${held} for update`)
    while (await merge.step(app, signal));
    expect([await segments(held), await segments(free)]).toEqual([4, 1])
  })
  while (await merge.step(app, signal));
  expect(await segments(held)).toBe(1)
})
