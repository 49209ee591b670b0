/** One attempt from the boundary to its outcome, with everything real but the one thing that fails. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LedgerRows } from '../../test/harness/ledger-rows.ts'
import { hangMs, until } from '../../test/harness/process.ts'
import { openWorkplace, type Workplace } from '../../test/harness/worker.ts'
import { heldAccount } from '../../test/platform/account-store.ts'
import type { App } from '../app.ts'
import { noteTrouble } from '../capabilities/accounts/accounts.ts'
import { setDispatch } from '../capabilities/gates/gates.ts'
import { LostCommit } from '../db/errors.ts'
import { type Database, sql } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import type { Message, Session } from '../platform/port.ts'
import { attempt, type DrivenAccount, type Ways } from './attempt.ts'
import { operationBoundary } from './boundary.ts'
import { Echoes } from './echoes.ts'
import { findFloodWait } from './floods.ts'
import { type Journal, openJournal } from './journal.ts'
import { Lanes } from './lanes.ts'
import { type HeldLease, noteNotLive } from './leases.ts'
import { Ledger } from './ledger.ts'
import { noteProofs, proofsIn } from './proofs.ts'
import { Recorder } from './recording.ts'
import { replayLoop } from './recovery.ts'

let place: Workplace
let rows: LedgerRows
let person: number
const journals: Journal[] = []
beforeAll(async () => {
  place = await openWorkplace()
  rows = new LedgerRows(place.service, await place.service.tenant())
  person = place.person()
})
afterAll(async () => {
  await Promise.all(journals.map((journal) => journal.close()))
  await place.close()
})

interface Stage {
  readonly held: HeldLease
  readonly id: string
  readonly ways: Ways
  readonly account: DrivenAccount
  readonly session: Session
  /** The worker's own journal. */
  readonly journal_id: string
}

/** An account with a session, and one message queued for it. */
async function stage(app: App = rows.app): Promise<Stage> {
  const held = await rows.account()
  const listener = { updates: async () => {}, closed: () => {} }
  const { account_id } = held
  const connected = await place.sandbox.platform.connect(heldAccount({ account_id, name: 'Sales' }), listener)
  if (connected.kind !== 'accepted') throw new Error('The sandbox did not connect.')
  place.write(account_id, person, 'hello')
  const id = await rows.operation(held, { chat_id: String(person) })
  const instance = await rows.instance()
  const journal_id = newId()
  const journal = await openJournal(place.directory, journal_id)
  journals.push(journal)
  const ways: Ways = {
    boundary: operationBoundary(app, { instance: () => instance, behind: () => {} }),
    journal,
    recorder: new Recorder(app, { count: () => {}, noteTrouble }),
    echoes: new Echoes(app),
  }
  const account = { held, session: connected.value, awaits: () => {}, gapJitter: 0, paceMs: 0 }
  return { held, id, ways, account, session: connected.value, journal_id }
}

async function run(app: App, { id, ways, account }: Stage): Promise<void> {
  await attempt(app, ways, await rows.queued(id), account)
}

/** What the platform accepted from the account. */
function accepted({ held }: Stage): number {
  return place.sandbox.world.state.journal.filter(({ account_id }) => account_id === held.account_id).length
}

/** The database, with one of its methods replaced. */
function changed(change: Partial<Database>): App {
  const { app } = rows
  const db = new Proxy(app.db, {
    get(target, name) {
      if (name in change) return change[name as keyof Database]
      const value = target[name as keyof Database]
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return { ...app, db }
}

test('sends a queued message once and completes it', async () => {
  const one = await stage()
  await run(rows.app, one)
  expect(await rows.row(one.id)).toMatchObject({ state: 'completed', attempt_no: 1 })
  expect(accepted(one)).toBe(1)
})

test('sends nothing when the journal cannot be written', async () => {
  const one = await stage()
  await one.ways.journal.close()
  await run(rows.app, one)
  expect(await rows.row(one.id)).toMatchObject({
    state: 'released',
    reason: 'never_written',
    detail: 'journal',
  })
  expect(accepted(one)).toBe(0)
})

test('writes the journal before it calls the platform', async () => {
  const one = await stage()
  const send = one.session.send.bind(one.session)
  let written = ''
  Object.assign(one.session, {
    send: async (message: Parameters<Session['send']>[0]) => {
      written = await readFile(join(place.directory, `${one.journal_id}.0.jsonl`), 'utf8')
      return send(message)
    },
  })
  await run(rows.app, one)
  expect(written).toContain(one.id)
  expect(accepted(one)).toBe(1)
})

test('sends nothing where the database knows fewer writes than the worker saw', async () => {
  const one = await stage()
  one.held.writes.seen = '1'
  await run(rows.app, one)
  expect(await rows.row(one.id)).toMatchObject({ state: 'queued', attempt_no: 0 })
  expect(accepted(one)).toBe(0)
})

test('sends nothing while another transaction has the account', async () => {
  const one = await stage()
  await rows.db.transaction(async (tx) => {
    await tx.run(sql`select 1 from account_hosts where account_id = ${one.held.account_id} for no key update`)
    await run(rows.app, one)
  })
  expect(await rows.row(one.id)).toMatchObject({ state: 'queued', attempt_no: 0 })
  expect(accepted(one)).toBe(0)
})

/** A process that freezes for a long time when it asks the boundary. */
function heldUp(): App {
  const { sources } = rows.app
  let late = 0
  const slow = {
    ...sources,
    now: () => sources.now() + late,
    newToken: () => {
      late = 60_000
      return sources.newToken()
    },
  }
  return { ...rows.app, sources: slow }
}

test('sends nothing after a freeze that began before the boundary, and reports that', async () => {
  const app = heldUp()
  const one = await stage(app)
  await run(app, one)
  expect(await rows.row(one.id)).toMatchObject({
    state: 'released',
    reason: 'never_written',
    detail: 'deadline',
  })
  expect(accepted(one)).toBe(0)
})

test('does not send again when a stored message carries the random id, and completes it', async () => {
  const one = await stage()
  await rows.message(one.held, one.id, '900')
  await run(rows.app, one)
  const row = await rows.row(one.id)
  expect(row).toMatchObject({ state: 'completed', reply_body: { message_id: '900', operation_id: one.id } })
  expect(accepted(one)).toBe(0)
})

describe('when the answer to the crossing is lost', () => {
  /** The statement runs, and its connection breaks. */
  function losing(more: Partial<Database> = {}): App {
    const { db } = rows.app
    return changed({
      async rows<T>(statement: Parameters<Database['rows']>[0]) {
        const found = await db.rows<T>(statement)
        if (!statement.text.includes('accounts_given')) return found
        throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
      },
      ...more,
    })
  }

  test('sends nothing, and releases the row', async () => {
    const app = losing()
    const one = await stage(app)
    await run(app, one)
    expect(accepted(one)).toBe(0)
    expect(await rows.row(one.id)).toMatchObject({ state: 'released', reason: 'never_written' })
  })

  test('also when it crosses alone because its batch was rejected', async () => {
    const { db } = rows.app
    let rejected = false
    const app = changed({
      async rows<T>(statement: Parameters<Database['rows']>[0]) {
        if (!statement.text.includes('accounts_given')) return db.rows<T>(statement)
        if (!rejected) {
          rejected = true
          throw new Error('a row of the batch is wrong')
        }
        await db.rows(statement)
        throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
      },
    })
    const one = await stage(app)
    await run(app, one)
    expect(accepted(one)).toBe(0)
    expect(await rows.row(one.id)).toMatchObject({ state: 'released', reason: 'never_written' })
  })

  test('retries a release that fails at first until it succeeds', async () => {
    let failures = 2
    const app = losing({ transaction: (work) => (failures-- > 0 ? away() : rows.db.transaction(work)) })
    const one = await stage(app)
    await run(app, one)
    expect(await rows.row(one.id)).toMatchObject({ state: 'released', reason: 'never_written' })
  })
})

describe('when the answer to the crossing is lost, and the worker ends before the database is back', () => {
  test('its journal says that nothing was sent', async () => {
    const { db } = rows.app
    const app = changed({
      async rows<T>(statement: Parameters<Database['rows']>[0]) {
        const found = await db.rows<T>(statement)
        if (!statement.text.includes('accounts_given')) return found
        throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
      },
      transaction: () => away(),
    })
    const one = await stage(app)
    one.ways.recorder.stop()
    await expect(run(app, one)).rejects.toThrow()
    expect(await rows.row(one.id)).toMatchObject({ state: 'submitting' })
    const recorder = new Recorder(rows.app, { count: () => {}, noteTrouble })
    const loop = replayLoop({ directory: place.directory, worker_id: newId(), recorder })
    await loop.step(rows.app, new AbortController().signal)
    expect(await rows.row(one.id)).toMatchObject({
      state: 'released',
      reason: 'never_written',
      detail: 'lost_commit',
    })
  })
})

describe('when no answer comes', () => {
  test('it completes if the platform has already shown the random id, and no caller hears otherwise', async () => {
    const held = await rows.account()
    const token = newId()
    const id = await rows.operation(held, { state: 'submitting', token, chat_id: String(person) })
    const operation = await rows.queued(id)
    const at = new Date().toISOString()
    await noteProofs(rows.db, held.account_id, [{ random_id: operation.random_id, message_id: '70', at }])
    const recorder = new Recorder(rows.app, { count: () => {}, noteTrouble })
    const outcome = { kind: 'unknown', reason: 'timeout' } as const
    await recorder.record({ operation, public_id: id, token, outcome })
    expect(await rows.row(id)).toMatchObject({ state: 'completed', reply_body: { message_id: '70' } })
  })
})

test('it records a late answer, so that the unknown outcome becomes known', async () => {
  const { sources } = rows.app
  let asked = false
  // Once the platform is called, the time for its answer is up.
  const timer: typeof sources.timer = (ms, end) => sources.timer(asked ? 0 : ms, end)
  const app = { ...rows.app, sources: { ...sources, timer } }
  const one = await stage(app)
  const send = one.session.send.bind(one.session)
  const answer = Promise.withResolvers<void>()
  Object.assign(one.session, {
    send: async (message: Parameters<Session['send']>[0]) => {
      asked = true
      await answer.promise
      return send(message)
    },
  })
  await run(app, one)
  expect(await rows.row(one.id)).toMatchObject({ state: 'ambiguous', reason: 'timeout' })
  answer.resolve()
  await until('the late answer is recorded', hangMs, async () => {
    const { state } = await rows.row(one.id)
    return state === 'completed'
  })
  expect(accepted(one)).toBe(1)
})

function away(): Promise<never> {
  return Promise.reject(new ApiError('store_unavailable'))
}

test('retries an outcome until the database accepts it', async () => {
  let failures = 2
  const app = changed({ transaction: (work) => (failures-- > 0 ? away() : rows.db.transaction(work)) })
  const one = await stage(app)
  await run(app, one)
  expect(await rows.row(one.id)).toMatchObject({ state: 'completed' })
  expect(accepted(one)).toBe(1)
})

test('a stopping worker waits for what it has submitted', async () => {
  const one = await stage()
  const send = one.session.send.bind(one.session)
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<void>()
  Object.assign(one.session, {
    send: async (message: Parameters<Session['send']>[0]) => {
      asked.resolve()
      await answer.promise
      return send(message)
    },
  })
  const ledger = new Ledger(rows.app, one.ways, {
    lanes: new Lanes(),
    driven: () => new Map([[one.held.account_id, one.account]]),
  })
  await ledger.loop.step(rows.app, new AbortController().signal)
  await asked.promise
  const stopped = ledger.stop()
  setTimeout(answer.resolve, 50)
  await stopped
  expect(await rows.row(one.id)).toMatchObject({ state: 'completed' })
})

test('outcomes of several kinds at once lock their rows in the order of the ids', async () => {
  const held = await rows.account()
  const tokens = [newId(), newId()] as const
  const [low, high] = [
    await rows.operation(held, { state: 'submitting', token: tokens[0] }),
    await rows.operation(held, { state: 'submitting', token: tokens[1] }),
  ]
  expect(low < high).toBe(true)
  const recorder = new Recorder(rows.app, { count: () => {}, noteTrouble })
  const unknown = { kind: 'unknown', reason: 'timeout' } as const
  const accepted = { kind: 'accepted', value: { message_id: '31', at: new Date().toISOString() } } as const
  const [first, second] = [await rows.queued(low), await rows.queued(high)]
  let recorded: Promise<unknown> | undefined
  // An update that proves both does the same: the lower first, and then the other.
  await rows.db.transaction(async (tx) => {
    await tx.run(sql`select 1 from operations where id = ${low} for update`)
    recorded = Promise.all([
      recorder.record({ operation: second, public_id: high, token: tokens[1], outcome: accepted }),
      recorder.record({ operation: first, public_id: low, token: tokens[0], outcome: unknown }),
    ])
    await until('the recorder waits', hangMs, () =>
      rows.db.maybe(sql`
        select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`),
    )
    // No deadlock: the recorder has not locked the other row yet.
    await tx.run(sql`select 1 from operations where id = ${high} for update nowait`)
  })
  await recorded
  expect([(await rows.row(low)).state, (await rows.row(high)).state]).toEqual(['ambiguous', 'completed'])
})

test('records messages of two kinds of one account one kind after the other, without a deadlock with an update about both', async () => {
  const held = await rows.account()
  const { account_id, workspace_id } = held
  await rows.db.run(sql`
    insert into chats (account_id, workspace_id, chat_id, kind)
    select ${account_id}, ${workspace_id}, chat_id, 'private' from unnest('{9001,9002}'::bigint[]) as chat_id`)
  const token = newId()
  const at = new Date().toISOString()
  const outcome = (message_id: string) => ({ kind: 'accepted', value: { message_id, at } }) as const
  const row = { state: 'submitting', token } as const
  const single = await rows.operation(held, { ...row, chat_id: '9002' })
  const payload = { text: 'first', branch: null, variant: 0, found: false }
  const ofCampaign = { ...row, chat_id: '9001', kind: 'campaign_message', payload }
  const message = await rows.operation(held, ofCampaign)
  const recorder = new Recorder(rows.app, { count: () => {}, noteTrouble })
  const operations = [await rows.queued(single), await rows.queued(message)] as const
  let recorded: Promise<unknown> | undefined
  // An update about both does the same: in the order of the chats.
  await rows.db.transaction(async (tx) => {
    await tx.run(sql`select 1 from chats where account_id = ${account_id} and chat_id = 9001 for update`)
    recorded = Promise.all([
      recorder.record({ operation: operations[0], public_id: single, token, outcome: outcome('41') }),
      recorder.record({ operation: operations[1], public_id: message, token, outcome: outcome('42') }),
    ])
    await until('the recorder waits', hangMs, () =>
      rows.db.maybe(sql`
        select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`),
    )
    await tx.run(sql`
      select 1 from chats where account_id = ${account_id} and chat_id = 9002 for update nowait`)
  })
  await recorded
  const ended = [await rows.row(single), await rows.row(message)]
  expect(ended.map(({ state }) => state)).toEqual(['completed', 'completed'])
})

describe('before its preparation calls the platform', () => {
  test.each<[string, (held: HeldLease) => Promise<unknown>, string]>([
    ['sending is off', () => setDispatch(rows.app, 'system', false), 'dispatch_off'],
    [
      'a flood wait lasts',
      (held) => rows.host(held, sql`lookup_flood_until = domain_now() + interval '1 hour'`),
      'flood_wait',
    ],
  ])('%s: no look-up is made, and the row is released', async (_, hold, reason) => {
    const one = await stage()
    const payload = { identifier: { kind: 'username', value: 'mara' } }
    const id = await rows.operation(one.held, { kind: 'start_chat', chat_id: null, payload })
    let asked = 0
    Object.assign(one.session, { resolve: async () => ({ kind: 'unknown', reason: `${++asked}` }) })
    await hold(one.held)
    await attempt(rows.app, one.ways, await rows.queued(id), one.account)
    await setDispatch(rows.app, 'system', true)
    expect(asked).toBe(0)
    expect(await rows.row(id)).toMatchObject({ state: 'released', reason })
  })
})

test('leaves it queued when the account is given up during preparation', async () => {
  const one = await stage()
  const payload = { identifier: { kind: 'username', value: 'mara' } }
  const id = await rows.operation(one.held, { kind: 'start_chat', chat_id: null, payload })
  const closed = { kind: 'not_written', reason: 'The session is closed.' }
  Object.assign(one.session, {
    async resolve() {
      await noteNotLive(rows.db, one.held, 'given up')
      return closed
    },
  })
  await attempt(rows.app, one.ways, await rows.queued(id), one.account)
  expect(await rows.row(id)).toMatchObject({ state: 'queued' })
  // A session that was lost ends it: no worker gave the account up.
  await rows.host(one.held, sql`observed_at = real_now(), handed_over_at = null`)
  Object.assign(one.session, {
    async resolve() {
      await noteNotLive(rows.db, one.held, 'lost')
      return closed
    },
  })
  await attempt(rows.app, one.ways, await rows.queued(id), one.account)
  expect(await rows.row(id)).toMatchObject({ state: 'released', reason: 'not_prepared' })
})

test.each(['needs_login', 'restricted'] as const)(
  'an account that is %s releases the message, so that its key may run again, and reports it',
  async (reason) => {
    const one = await stage()
    Object.assign(one.session, { send: async () => ({ kind: 'refused', reason }) })
    await run(rows.app, one)
    const ended = { state: 'released', reason: 'platform_refused', detail: reason }
    expect(await rows.row(one.id)).toMatchObject(ended)
    expect(await place.status(one.held.account_id)).toBe(reason.toUpperCase())
  },
)

test.each(['needs_login', 'restricted'] as const)(
  'an account that is %s when it prepares releases the request, so that its key may run again, and reports it',
  async (reason) => {
    const one = await stage()
    const payload = { identifier: { kind: 'username', value: 'mara' } }
    const id = await rows.operation(one.held, { kind: 'start_chat', chat_id: null, payload })
    Object.assign(one.session, { resolve: async () => ({ kind: 'refused', reason }) })
    await attempt(rows.app, one.ways, await rows.queued(id), one.account)
    expect(await rows.row(id)).toMatchObject({ state: 'released', reason: 'not_prepared', detail: reason })
    expect(await place.status(one.held.account_id)).toBe(reason.toUpperCase())
  },
)

describe('trouble of an account', () => {
  const refused = { kind: 'refused', reason: 'needs_login' } as const

  test('that a call learns after its lease has passed on is not noted: the account may be logged in again', async () => {
    const one = await stage()
    const { account_id } = one.held
    const before = await place.status(account_id)
    Object.assign(one.session, {
      async send() {
        await rows.db.run(sql`
          update account_hosts set lease_epoch = lease_epoch + 1 where account_id = ${account_id}`)
        return refused
      },
    })
    await run(rows.app, one)
    expect(await rows.row(one.id)).toMatchObject({ state: 'released', detail: 'needs_login' })
    expect(await place.status(account_id)).toBe(before)
  })

  test('in a journal is not noted: the journal may be older than the login', async () => {
    const held = await rows.account()
    const before = await place.status(held.account_id)
    const token = newId()
    const id = await rows.operation(held, { state: 'submitting', token })
    const journal_id = newId()
    const journal = await openJournal(place.directory, journal_id)
    await journal.conclude({ id, token, outcome: refused })
    await journal.close()
    const recorder = new Recorder(rows.app, { count: () => {}, noteTrouble })
    const loop = replayLoop({ directory: place.directory, worker_id: newId(), recorder })
    await loop.step(rows.app, new AbortController().signal)
    expect(await rows.row(id)).toMatchObject({ state: 'released', detail: 'needs_login' })
    expect(await place.status(held.account_id)).toBe(before)
  })
})

test("another person's message proves nothing, whatever random id it shows", () => {
  const message = { id: '5', random_id: '77', timestamp: new Date().toISOString() } as Message
  expect(proofsIn([{ ...message, is_sender: false }])).toEqual([])
  expect(proofsIn([{ ...message, is_sender: true }])).toMatchObject([{ random_id: '77', message_id: '5' }])
})

describe('a flood wait', () => {
  async function floodOf({ account_id }: HeldLease): Promise<boolean> {
    const { flooded } = await rows.db.one<{ flooded: boolean }>(sql`
      select coalesce(flood_until > domain_now(), false) as flooded from account_hosts
      where account_id = ${account_id}`)
    return flooded
  }

  test('counts once against the account when its COMMIT is lost', async () => {
    let losing = true
    const app = changed({
      async transaction(work) {
        const result = await rows.db.transaction(work)
        if (!losing) return result
        losing = false
        throw new LostCommit('The answer to COMMIT was lost.')
      },
    })
    const held = await rows.account()
    const token = newId()
    const id = await rows.operation(held, { state: 'submitting', token })
    const outcome = { kind: 'flood_wait', retry_after_seconds: 60, stops: 'sends' } as const
    const recorder = new Recorder(app, { count: () => {}, noteTrouble })
    await recorder.record({ operation: await rows.queued(id), public_id: id, token, outcome })
    const strikes = await rows.db.rows(sql`
      select kind, seconds from account_strikes where account_id = ${held.account_id}`)
    expect(strikes).toEqual([{ kind: 'flood_wait', seconds: 60 }])
  })

  test.each([
    ['sends', 1],
    ['lookups', 1],
    ['reading', 0],
  ] as const)('for %s counts as %s strikes', async (stops, strikes) => {
    const held = await rows.account()
    const token = newId()
    const id = await rows.operation(held, { state: 'submitting', token })
    const outcome = { kind: 'flood_wait', retry_after_seconds: 60, stops } as const
    const recorder = new Recorder(rows.app, { count: () => {}, noteTrouble })
    await recorder.record({ operation: await rows.queued(id), public_id: id, token, outcome })
    expect(await findFloodWait(rows.db, held.account_id, stops)).toBeGreaterThan(0)
    const { count } = await rows.db.one<{ count: number }>(sql`
      select count(*)::int as count from account_strikes where account_id = ${held.account_id}`)
    expect(count).toBe(strikes)
  })

  test.each([
    ['from a journal counts from its own time', 100, false],
    ['of this moment lasts', 0, true],
  ])('%s', async (_, age, flooded) => {
    const held = await rows.account()
    const token = newId()
    const id = await rows.operation(held, { state: 'submitting', token })
    const outcome = { kind: 'flood_wait', retry_after_seconds: 60, stops: 'sends' } as const
    const at = new Date(Date.now() - age * 1000).toISOString()
    const recorder = new Recorder(rows.app, { count: () => {}, noteTrouble })
    await recorder.record({ operation: await rows.queued(id), public_id: id, token, outcome, at })
    expect(await rows.row(id)).toMatchObject({ state: 'released', reason: 'platform_refused' })
    expect(await floodOf(held)).toBe(flooded)
  })

  test('from a journal whose clock was ahead lasts no longer than the platform said', async () => {
    const held = await rows.account()
    const token = newId()
    const id = await rows.operation(held, { state: 'submitting', token })
    const outcome = { kind: 'flood_wait', retry_after_seconds: 60, stops: 'sends' } as const
    const at = new Date(Date.now() + 86_400_000).toISOString()
    const recorder = new Recorder(rows.app, { count: () => {}, noteTrouble })
    await recorder.record({ operation: await rows.queued(id), public_id: id, token, outcome, at })
    expect(await findFloodWait(rows.db, held.account_id, 'sends')).toBeLessThanOrEqual(60)
  })
})
