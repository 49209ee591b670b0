/** An account's history: synced in the background, fetched on demand, and never marked read. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hangMs, until } from '../../../test/harness/process.ts'
import type { Tenant } from '../../../test/harness/service.ts'
import { openWorkplace, type Workplace } from '../../../test/harness/worker.ts'
import type { AccountKey } from '../../contract.ts'
import { sql } from '../../db/sql.ts'
import { accountsChanged } from '../../ledger/leases.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import { createAccount, listAccounts, setAccountEnabled } from '../accounts/accounts.ts'
import { listCompleteness, nextUnsynced, noteGap, noteHistoryPhase, noteSynced, readSync } from './history.ts'

let place: Workplace
let own: Tenant

beforeAll(async () => {
  place = await openWorkplace()
  own = await place.service.tenant('Own')
  await place.work()
})
afterAll(() => place.close())

interface Page {
  readonly messages: readonly { id: string; text: string }[]
  readonly source: string
  readonly next_before: string | null
}

/** An account with history: `chats` people, each with `messages` messages, before its first connection. */
async function withPast(chats: number, messages: number): Promise<{ account_id: string; people: number[] }> {
  const { world } = place.sandbox
  const account_id = await place.account(own)
  world.addAccount({ account_id, name: 'Sales' })
  const people = Array.from({ length: chats }, (_, at) => place.person(`Person ${at}`))
  for (const person_id of people) {
    for (let n = 1; n <= messages; n++) {
      const at = new Date(Date.UTC(2026, 9, 1) + n * 60_000)
      const by = n % 2 ? person_id : null
      world.seedMessage({ account_id, chat_id: person_id, person_id: by, text: `${n} of ${messages}`, at })
    }
  }
  place.service.app.wake.signal(accountsChanged)
  return { account_id, people }
}

async function untilSynced(account_id: string): Promise<void> {
  await until('the account is synced', hangMs, () =>
    place.db.maybe(sql`select 1 from account_sync where account_id = ${account_id} and phase = 'done'`),
  )
  await place.service.settle()
}

async function walk(account_id: string, chat: number): Promise<{ texts: string[]; sources: string[] }> {
  const pages: Page[] = []
  for (let before: string | null = ''; before !== null; ) {
    const query = `account_id=${account_id}&limit=40${before && `&before=${before}`}`
    const { status, body } = await place.service.get(`/chats/platform:chat:${chat}/messages?${query}`, {
      key: own.key,
    })
    expect(status, JSON.stringify(body)).toBe(200)
    pages.push(body as unknown as Page)
    before = (body as unknown as Page).next_before
  }
  const texts = pages.toReversed().flatMap(({ messages }) => messages.map(({ text }) => text))
  return { texts, sources: pages.map(({ source }) => source) }
}

describe('a large account', () => {
  test('gets the history of its thousand most recent chats, newest first', async () => {
    const { app } = place.service
    const { workspace_id } = own
    const { id } = await createAccount(app, 'system', { workspace_id, platform: 'sandbox', name: 'Large' })
    await setAccountEnabled(app, 'system', { id, enabled: false })
    await until('no worker drives it', hangMs, async () => {
      const driven = sql`select 1 from account_hosts where account_id = ${id} and lease_owner is not null`
      return (await place.db.maybe(driven)) === undefined
    })
    const account = { account_id: id, workspace_id }
    await readSync(place.db, account)
    await place.db.run(sql`update account_sync set phase = 'chats' where account_id = ${id}`)
    await place.db.run(sql`
      insert into chats (account_id, chat_id, workspace_id, kind, last_message_at)
      select ${id}, n, ${workspace_id}, 'private', now() - make_interval(mins => n) from generate_series(1, 1003) n`)
    await place.db.run(sql`
      insert into chat_sync (account_id, chat_id, workspace_id)
      select ${id}, n, ${workspace_id} from generate_series(1, 1003) n`)
    await place.db.run(sql`
      update account_sync set chats_total = 1003, chats_expected = 50000 where account_id = ${id}`)
    const shown = async () =>
      (await listAccounts(place.db, workspace_id)).find((each) => each.id === id)?.sync
    expect(await shown()).toBe('chats 1003/50000')
    await noteHistoryPhase(place.db, account)
    expect([await shown(), await nextUnsynced(place.db, account)]).toEqual([
      'history 0/1000',
      { chat_id: '1', gap_after: null },
    ])
    await place.db.run(sql`update chat_sync set complete = true where account_id = ${id} and chat_id < 1000`)
    expect(await nextUnsynced(place.db, account)).toMatchObject({ chat_id: '1000' })
    await place.db.run(sql`update chat_sync set complete = true where account_id = ${id} and chat_id = 1000`)
    expect(await nextUnsynced(place.db, account)).toBeUndefined()
    await noteSynced(place.db, account)
    expect(await shown()).toBe('done')
  })
})

describe('a gap', () => {
  const stateOf = (account_id: string) =>
    place.db.one<{ phase: string; gap: boolean; chats: string[] }>(sql`
      select s.phase, h.gap_since is not null as gap, array(
        select chat_id || ' after ' || gap_after from chat_sync c
        where c.account_id = h.account_id and gap_after is not null order by chat_id) as chats
      from account_hosts h join account_sync s on s.account_id = h.account_id where h.account_id = ${account_id}`)

  async function withStoredPast() {
    const { account_id, people } = await withPast(2, 3)
    await untilSynced(account_id)
    await setAccountEnabled(place.service.app, 'system', { id: account_id, enabled: false })
    await place.service.settle()
    return {
      account: { account_id, workspace_id: own.workspace_id },
      people: people.map(String) as ChatNumber[],
    }
  }
  const lose = (account: AccountKey, chat_id: ChatNumber | null) =>
    place.db.transaction((tx) => noteGap(tx, account, [{ chat_id }]))

  test.each(['in one chat', 'in all'])('%s that comes while the sync ends is fetched too', async (where) => {
    const { account, people } = await withStoredPast()
    await lose(account, where === 'in all' ? null : (people[0] ?? null))
    await noteSynced(place.db, account)
    const { phase, gap } = await stateOf(account.account_id)
    expect([phase, gap]).toEqual([where === 'in all' ? 'chats' : 'history', true])
  })

  test('begins at the message that was stored before the first of two', async () => {
    const { account, people } = await withStoredPast()
    const [chat_id = '1'] = people
    await lose(account, chat_id)
    const before = await stateOf(account.account_id)
    await place.db.run(sql`
      update chats set last_message_id = last_message_id + 50 where account_id = ${account.account_id}`)
    await lose(account, chat_id)
    expect(await stateOf(account.account_id)).toEqual(before)
  })
})

describe('history', () => {
  test('is synced after the first connection, with its progress', async () => {
    const { account_id } = await withPast(130, 3)
    await untilSynced(account_id)
    const state = await place.db.one(sql`
      select chats_total, chats_synced,
        (select count(*)::int from chats where account_id = ${account_id}) as chats,
        (select count(*)::int from messages where account_id = ${account_id}) as messages,
        (select count(*)::int from contacts where account_id = ${account_id}) as contacts
      from account_sync where account_id = ${account_id}`)
    expect(state).toEqual({ chats_total: 130, chats_synced: 130, chats: 130, messages: 390, contacts: 130 })
    const last = await place.db.rows(sql`
      select distinct last_message_text as text from chats where account_id = ${account_id}`)
    expect(last).toEqual([{ text: '3 of 3' }])
    expect(await listCompleteness(place.db, [account_id])).toMatchObject([
      { account_id, history_complete: true },
    ])
    const { rows } = { rows: await place.db.rows(sql`select 1 from events where type = 'message.received'`) }
    expect(rows, 'the past is not announced').toEqual([])
  })

  test('200: older pages come from the platform once, and from the store ever after', async () => {
    const { account_id, people } = await withPast(1, 333)
    const [chat = 0] = people
    await untilSynced(account_id)
    expect(await listCompleteness(place.db, [account_id])).toMatchObject([{ history_complete: false }])
    const expected = Array.from({ length: 333 }, (_, at) => `${at + 1} of 333`)
    const first = await walk(account_id, chat)
    expect(first.texts).toEqual(expected)
    expect(new Set(first.sources)).toEqual(new Set(['store', 'platform']))
    const second = await walk(account_id, chat)
    expect(second.texts).toEqual(expected)
    expect(new Set(second.sources)).toEqual(new Set(['store']))
    expect(await listCompleteness(place.db, [account_id])).toMatchObject([{ history_complete: true }])
  })

  test('reading marks nothing read: the journal has no entry for it', async () => {
    const { account_id, people } = await withPast(1, 120)
    const [chat = 0] = people
    await untilSynced(account_id)
    place.write(account_id, chat, 'unread by us')
    await place.untilStored(account_id, 51)
    await walk(account_id, chat)
    const { unread_count } = await place.db.one<{ unread_count: number }>(sql`
      select unread_count from chats where account_id = ${account_id} and chat_id = ${chat}`)
    expect(unread_count).toBeGreaterThan(0)
    expect(place.sandbox.world.journal(0).filter((entry) => entry.account_id === account_id)).toEqual([])
  })

  test('messages that arrive while history is fetched are one row each, in order', async () => {
    const { account_id, people } = await withPast(40, 60)
    const [chat = 0] = people
    for (let n = 0; n < 50; n++) place.write(account_id, chat, `live ${n}`)
    await untilSynced(account_id)
    await until('the live ones are stored', hangMs, async () => {
      const { count } = await place.db.one<{ count: number }>(sql`
        select count(*)::int as count from messages where account_id = ${account_id} and text like 'live %'`)
      return count === 50 || undefined
    })
    const { texts } = await walk(account_id, chat)
    expect(texts).toEqual([
      ...Array.from({ length: 60 }, (_, at) => `${at + 1} of 60`),
      ...Array.from({ length: 50 }, (_, at) => `live ${at}`),
    ])
  })

  test('a flood wait and an outage delay the sync, and it continues afterwards', async () => {
    const { account_id } = await withPast(3, 2)
    place.fault({ on: 'history', fault: 'flood_wait', seconds: 1, account_id })
    await untilSynced(account_id)
    expect(await place.messages(account_id)).toHaveLength(6)
  })

  test('503 with Retry-After during a flood wait, without calling the platform', async () => {
    const { account_id, people } = await withPast(1, 120)
    const [chat = 0] = people
    await untilSynced(account_id)
    place.fault({ on: 'history', fault: 'flood_wait', seconds: 60, times: 1, account_id })
    const path = `/chats/platform:chat:${chat}/messages?account_id=${account_id}`
    const get = (query: string) => place.service.get(`${path}${query}`, { key: own.key })
    for (let n = 0; n < 3; n++) {
      const answer = await get('&before=2026-10-01T00:10:00Z')
      expect(answer).toMatchObject({ status: 503, body: { code: 'flood_wait' } })
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(50)
    }
    // The fault is for one call: a second one would have succeeded.
    expect(await place.messages(account_id)).toHaveLength(50)
    expect(await get('&limit=100')).toMatchObject({ status: 200, body: { source: 'store', has_more: true } })
  })

  test('200 with what the store has when the platform refuses more', async () => {
    const { account_id, people } = await withPast(1, 90)
    const [chat = 0] = people
    await untilSynced(account_id)
    place.fault({ on: 'history', fault: 'unavailable', times: 1, account_id })
    const path = `/chats/platform:chat:${chat}/messages?account_id=${account_id}&limit=100`
    const short = await place.service.get(path, { key: own.key })
    expect(short.status).toBe(200)
    // Without the oldest message: more of its millisecond may still be missing.
    expect((short.body as unknown as Page).messages).toHaveLength(49)
    const whole = await place.service.get(path, { key: own.key })
    expect((whole.body as unknown as Page).messages).toHaveLength(90)
  })
})
