/** Retention: what is older than its workspace keeps it is cleared, and nothing else; what the platform shows of it is not stored. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../../test/harness/service.ts'
import { openTeam, type Team } from '../../../test/harness/team.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import type { Message } from '../../platform/port.ts'
import { refreshLastMessages } from '../chats/chats.ts'
import { fetchOlder } from '../history/history.ts'
import { storeEdits, storeMessages } from '../messages/messages.ts'
import { makeSweep } from './loops.ts'
import { keepsEverything, type Retention, setRetention } from './retention.ts'

const now = new Date('2026-11-15T09:30:00.000Z')
const dayMs = 86_400_000
const daysAgo = (days: number) => new Date(now.getTime() - days * dayMs)

let service: Service
let team: Team
let other: Team
beforeAll(async () => {
  service = await openService()
  await service.app.db.run(sql`insert into manual_clock (at) values (${now})`)
})
afterAll(() => service.close())
beforeEach(async () => {
  team = await openTeam(service)
  other = await openTeam(service, 'Other')
})

const db = () => service.app.db
const keep = (retention: Partial<Retention>, { workspace_id } = team) =>
  setRetention(service.app, 'system', { workspace_id, retention: { ...keepsEverything, ...retention } })

/** Steps of the loop until a whole round finds nothing. */
async function sweep(): Promise<void> {
  const loop = makeSweep()
  const signal = new AbortController().signal
  while (await loop.step(service.app, signal));
}

let serial = 0
function message(days: number, text = `text of ${days} days`): Message {
  return {
    ...{ id: String(++serial), text, is_sender: false, sender_id: '42' },
    timestamp: daysAgo(days).toISOString(),
    ...{ edited_at: null, random_id: null },
    attachments: [],
  }
}

const seen = (messages: readonly Message[]) =>
  messages.map((one) => ({ chat_id: '42' as const, message: one, announce: false }))

const store = (own: Team, ...days: readonly number[]) =>
  db().transaction((tx) => storeMessages(tx, own, seen(days.map((each) => message(each)))))

async function texts({ account_id }: Team): Promise<string[]> {
  const rows = await db().rows<{ text: string }>(sql`
    select text from messages where account_id = ${account_id} order by sent_at`)
  return rows.map(({ text }) => text)
}

async function operation(own: Team, state: string, days: number): Promise<string> {
  const id = newId()
  await db().run(sql`
    insert into operations (id, workspace_id, kind, effect, fingerprint, state, account_id, chat_id, payload, reply_status,
      finished_at)
    values (${id}, ${own.workspace_id}, 'send_message', 'platform', ${Buffer.alloc(32)}, ${state}, ${own.account_id}, 42,
      '{"text": "hello", "file": null}', 200, ${daysAgo(days)})`)
  return id
}

async function note(own: Team, days: number): Promise<string> {
  const id = newId()
  await db().run(sql`
    insert into notes (id, workspace_id, account_id, chat_id, author_id, text, created_at)
    values (${id}, ${own.workspace_id}, ${own.account_id}, 42, ${own.user_id}, 'a note', ${daysAgo(days)})`)
  return id
}

/** A campaign that ended so long ago, with this many recipients. */
async function campaign(own: Team, days: number, recipients = 1, status = 'completed'): Promise<string> {
  const id = newId()
  await db().run(sql`
    insert into campaigns (id, workspace_id, user_id, kind, status, message_text, completed_at, cancelled_at)
    values (${id}, ${own.workspace_id}, ${own.user_id}, 'contacts', ${status}, 'Hello',
      ${status === 'completed' ? daysAgo(days) : null}::timestamptz, ${status === 'cancelled' ? daysAgo(days) : null}::timestamptz)`)
  await db().run(sql`
    insert into campaign_recipients (id, campaign_id, workspace_id, contact, name, position, status, ended_at)
    select gen_random_uuid(), ${id}, ${own.workspace_id}, 'username:person_' || n, 'Person', n, 'cancelled', ${daysAgo(days)}
    from generate_series(1, ${recipients}) n`)
  return id
}

async function named(campaign_id: string): Promise<number> {
  const { n } = await db().one<{ n: number }>(sql`
    select count(*)::int as n from campaign_recipients
    where campaign_id = ${campaign_id} and (name is not null or contact like 'username:%')`)
  return n
}

const cleared = async (table: 'notes' | 'operations', ids: readonly string[]) => {
  const from = table === 'notes' ? sql`notes` : sql`operations`
  const rows = await db().rows<{ id: string }>(sql`
    select id from ${from} where id = any(${ids}::uuid[]) and cleared_at is not null`)
  return ids.map((id) => rows.some((row) => row.id === id))
}

describe('the loop', () => {
  test('clears nothing by default', async () => {
    await service.chat({ ...team, id: '42', texts: [] })
    await store(team, 3000)
    const ids = [await operation(team, 'completed', 3000)]
    const notes = [await note(team, 3000)]
    const ended = await campaign(team, 3000)
    await sweep()
    expect(await texts(team)).toContain('text of 3000 days')
    expect([await cleared('operations', ids), await cleared('notes', notes), await named(ended)]).toEqual([
      [false],
      [false],
      1,
    ])
  })

  test('clears what is older, of this workspace and of this kind, and keeps the rest', async () => {
    for (const own of [team, other]) await service.chat({ ...own, id: '42', texts: [] })
    await store(team, 32, 31, 29)
    await store(other, 31)
    await keep({ messages_days: 30 })
    await sweep()
    expect([await texts(team), await texts(other)]).toEqual([
      ['', '', 'text of 29 days'],
      ['text of 31 days'],
    ])

    const states = ['completed', 'refused', 'released', 'ambiguous'] as const
    const old = await Promise.all(states.map((state) => operation(team, state, 31)))
    const young = await operation(team, 'completed', 29)
    const notes = [await note(team, 31), await note(team, 29)]
    await sweep()
    expect(await cleared('operations', [...old, young])).toEqual(Array(5).fill(false))
    await keep({ operations_days: 30, notes_days: 30 })
    await sweep()
    expect(await cleared('operations', [...old, young])).toEqual([true, true, true, false, false])
    expect(await cleared('notes', notes)).toEqual([true, false])
    expect(await texts(team)).toContain('text of 29 days')
  })

  test('clears names once their campaign has been over for so long, in steps, and once', async () => {
    const ended = await campaign(team, 31, 250)
    const stopped = await campaign(team, 31, 100, 'cancelled')
    const young = await campaign(team, 29)
    const open = await campaign(team, 0, 1, 'paused').catch(async () => {
      const id = await campaign(team, 40)
      await db().run(sql`update campaigns set completed_at = ${daysAgo(1)} where id = ${id}`)
      return id
    })
    await keep({ recipients_days: 30 })
    await sweep()
    expect(await Promise.all([ended, stopped, young, open].map(named))).toEqual([0, 0, 1, 1])
    const rows = await db().rows(sql`
      select names_cleared_to, names_cleared_at is not null as done from campaigns
      where id = any(${[ended, stopped]}::uuid[]) order by names_cleared_to`)
    expect(rows).toEqual([
      { names_cleared_to: 100, done: true },
      { names_cleared_to: 250, done: true },
    ])
  })

  test('one process at a time clears for a workspace, and the others go on with the next', async () => {
    for (const own of [team, other]) {
      await service.chat({ ...own, id: '42', texts: [] })
      await store(own, 31)
      await keep({ messages_days: 30 }, own)
    }
    await db().transaction(async (tx) => {
      await tx.one(sql`select 1 from retention where workspace_id = ${team.workspace_id} for no key update`)
      await sweep()
      expect([await texts(team), await texts(other)]).toEqual([['text of 31 days'], ['']])
    })
    await sweep()
    expect(await texts(team)).toEqual([''])
  })
})

describe('what the platform shows of before', () => {
  test('is stored without its content, and its chat keeps its place', async () => {
    await keep({ messages_days: 30 })
    await store(team, 40, 20)
    const edited = { ...message(41, 'edited'), edited_at: daysAgo(1).toISOString() }
    await db().transaction((tx) => storeEdits(tx, team, seen([edited])))
    expect(await texts(team)).toEqual(['', '', 'text of 20 days'])
    const old = message(50)
    await db().transaction(async (tx) => {
      // It is still handled as incoming, with its text: an opt-out counts however old it is.
      const stored = await storeMessages(tx, team, [{ chat_id: '77', message: old, announce: false }])
      expect(stored.map(({ message: { text } }) => text)).toEqual(['text of 50 days'])
      await refreshLastMessages(tx, team, ['77'])
    })
    const chat = await db().one(sql`
      select last_message_id::text, last_message_text, last_message_at from chats
      where account_id = ${team.account_id} and chat_id = 77`)
    expect(chat).toEqual({ last_message_id: old.id, last_message_text: null, last_message_at: daysAgo(50) })
  })

  test('is not fetched once the chat is stored that far back', async () => {
    await store(team, 31)
    await db().run(sql`
      insert into chat_sync (account_id, chat_id, workspace_id, oldest_id)
      select account_id, chat_id, workspace_id, id from messages where account_id = ${team.account_id}`)
    const fetched = () => fetchOlder(service.app, team.account_id, '42', 100)
    expect(await fetched()).toBe('unavailable')
    await keep({ messages_days: 30 })
    expect(await fetched()).toBe('complete')
    await keep({ messages_days: 60 })
    expect(await fetched()).toBe('unavailable')
  })
})

describe('at the dashboard', () => {
  test('200: a preview counts what a change would clear, and clears nothing', async () => {
    await service.chat({ ...team, id: '42', texts: [] })
    await store(team, 31, 32, 1)
    await operation(team, 'completed', 31)
    await note(team, 31)
    await campaign(team, 31, 7)
    await store(other, 31)
    const path = '/retention/preview?messages_days=30&operations_days=30&recipients_days=30&notes_days=30'
    const clears = { messages: 2, files: 0, operations: 1, recipients: 7, notes: 1 }
    expect((await team.ask('GET', path)).body).toEqual({ clears })
    expect((await team.ask('GET', '/retention/preview')).body).toEqual({
      clears: { messages: 0, files: 0, operations: 0, recipients: 0, notes: 0 },
    })
    await sweep()
    expect((await team.ask('GET', path)).body).toEqual({ clears })
  })

  test('200: a change is stored and audited', async () => {
    const retention = { messages_days: 90, operations_days: null, recipients_days: 30, notes_days: 1 }
    expect((await team.ask('PUT', '/retention', retention)).body).toEqual({ retention })
    expect((await team.ask('GET', '/retention')).body).toEqual({ retention })
    expect((await other.ask('GET', '/retention')).body).toEqual({ retention: keepsEverything })
    const [row] = await db().rows<{ detail: string; actor: string }>(sql`
      select detail, actor from audit where workspace_id = ${team.workspace_id} and action = 'retention.changed'`)
    expect([JSON.parse(row?.detail ?? '{}'), row?.actor]).toEqual([retention, `user:${team.user_id}`])
  })

  test('400 for days that are too few, too many or no whole number', async () => {
    for (const wrong of [
      { messages_days: 0 },
      { notes_days: 3651 },
      { recipients_days: 29 },
      { operations_days: 1.5 },
      { messages_days: '30' },
    ]) {
      const answer = await team.ask('PUT', '/retention', { ...keepsEverything, ...wrong })
      expect([answer.status, answer.body.code], JSON.stringify(wrong)).toEqual([400, 'invalid_request'])
    }
    expect(await team.ask('PUT', '/retention', { messages_days: 30 })).toMatchObject({ status: 400 })
    expect(await team.ask('GET', '/retention/preview?recipients_days=29')).toMatchObject({ status: 400 })
    await expect(keep({ recipients_days: 29 })).rejects.toThrow('from 30 to 3650')
    expect((await team.ask('GET', '/retention')).body).toEqual({ retention: keepsEverything })
  })
})
