/** The boundary of campaign messages: what it requires, what it writes, and that no message bypasses it. */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { insertCampaign, type NewCampaign } from '../../../../test/harness/campaigns.ts'
import type { LedgerRows } from '../../../../test/harness/ledger-rows.ts'
import {
  openPickedRows,
  type PickedRecipient,
  type PickedRows,
  type Standing,
} from '../../../../test/harness/picked.ts'
import { hangMs, until } from '../../../../test/harness/process.ts'
import { makeScratch } from '../../../../test/harness/scratch.ts'
import type { App } from '../../../app.ts'
import { LostCommit } from '../../../db/errors.ts'
import { sql } from '../../../db/sql.ts'
import { Echoes } from '../../../ledger/echoes.ts'
import { openJournal } from '../../../ledger/journal.ts'
import type { HeldLease } from '../../../ledger/leases.ts'
import { putBack } from '../../../ledger/put-back.ts'
import { Recorder } from '../../../ledger/recording.ts'
import { replayLoop } from '../../../ledger/recovery.ts'
import { settle } from '../../../ledger/settle.ts'
import { ApiError } from '../../../lib/errors.ts'
import { newId } from '../../../lib/ids.ts'
import type { Session } from '../../../platform/port.ts'
import { noteTrouble } from '../../accounts/accounts.ts'
import { addSuppression } from '../../suppressions/suppressions.ts'
import { type MessageBoundary, messageBoundary } from './crossing.ts'
import { identityOf } from './message.ts'
import { attemptMessage, gapMsOf, type MessageWays } from './message-attempt.ts'
import { chooseDue, listHeads } from './pick.ts'

let place: PickedRows
let rows: LedgerRows
let directory: string
beforeAll(async () => {
  directory = await makeScratch('parley-journal-')
  place = await openPickedRows()
  rows = place.rows
})
afterAll(async () => {
  await place.close()
  await rm(directory, { recursive: true, force: true })
})

const picked = (given?: NewCampaign, held?: HeldLease) => place.picked(given, held)
const pick = (held: HeldLease, campaign_id: string) => place.pick(held, campaign_id)
const stateOf = (one: PickedRecipient) => place.stateOf(one)
const operation = (one: PickedRecipient) => place.operation(one)
const control = (id: string, how: 'pause' | 'cancel') => place.control(id, how)
const boundary = () => place.boundary()

/** A person with this number is being erased, and may be contacted again. */
async function erasing(number: number | string): Promise<void> {
  const { workspace_id } = rows.tenant
  await rows.db.run(sql`
    with person as (
      insert into people (id, workspace_id, platform, number) values (${newId()}, ${workspace_id}, 'sandbox', ${number})
      on conflict (workspace_id, platform, number) do update set number = excluded.number returning id)
    insert into erasures (id, workspace_id, person_id, platform, number, actor, contact_allowed, tombstones)
    select ${newId()}, ${workspace_id}, id, 'sandbox', ${number}, 'cli:ana', true, '{}' from person`)
}

describe('a message', () => {
  test('crosses with its operation, its recipient and the use of its day', async () => {
    const one = await picked()
    expect(await one.cross()).toBe('crossed')
    expect(await stateOf(one)).toEqual({ status: 'submitting', operations: 1, used: 1 })
  })

  const steps = [{ wait_hours: 24 }]
  test.each<[string, (one: PickedRecipient) => Promise<unknown>, Partial<Standing>]>([
    [
      'of a campaign that is paused',
      ({ campaign_id }) => control(campaign_id, 'pause'),
      { status: 'queued' },
    ],
    [
      'of one that was cancelled',
      ({ campaign_id }) => control(campaign_id, 'cancel'),
      { status: 'cancelled' },
    ],
    [
      'to a person who is suppressed by now',
      ({ person_id }) =>
        addSuppression(rows.app, 'system', {
          workspace_id: rows.tenant.workspace_id,
          platform_id: String(person_id),
        }),
      { status: 'suppressed' },
    ],
    [
      'to a person who is being erased, also where they may be contacted again',
      ({ person_id }) => erasing(person_id),
      { status: 'suppressed' },
    ],
    [
      'of an account whose day is used up',
      ({ held }) =>
        rows.db.run(sql`
          insert into account_days (account_id, workspace_id, day, used)
          values (${held.account_id}, ${held.workspace_id}, (domain_now() at time zone 'UTC')::date, 30)`),
      { status: 'queued', used: 30 },
    ],
    [
      'of an account that must wait',
      ({ held }) => rows.host(held, sql`flood_until = domain_now() + interval '1 minute'`),
      {},
    ],
    [
      'of an account that keeps a gap',
      ({ held }) => rows.host(held, sql`next_campaign_at = domain_now() + interval '1 minute'`),
      {},
    ],
    ['of an account of another', ({ held }) => rows.host(held, sql`lease_epoch = lease_epoch + 1`), {}],
    [
      'to a recipient that has changed',
      ({ campaign_id }) =>
        rows.db.run(sql`update campaign_recipients set name = 'Other' where campaign_id = ${campaign_id}`),
      {},
    ],
    ['while the gate is closed', () => rows.service.shut('campaigns'), {}],
  ])('does not cross %s', async (_, change, expected) => {
    const one = await picked({ steps })
    await change(one)
    expect(await one.cross()).not.toBe('crossed')
    await rows.service.open('campaigns')
    expect(await stateOf(one)).toEqual({ status: 'queued', operations: 0, used: 0, ...expected })
  })

  test('of a sequence that a message by hand ends does not cross while that is undecided', async () => {
    const one = await picked({ steps, stop_on_own_message: true })
    const { held, campaign_id, person_id } = one
    await rows.db.run(sql`
      update campaign_recipients set status = 'waiting', step = 1, last_sent_at = domain_now() - interval '2 days',
        next_action_at = domain_now() - interval '1 day' where campaign_id = ${campaign_id}`)
    const cross = await pick(held, campaign_id)
    await rows.db.run(sql`
      insert into hand_messages (id, workspace_id, account_id, platform, chat_id, operation_id)
      select ${newId()}, workspace_id, id, platform, ${person_id}, ${newId()} from accounts where id = ${held.account_id}`)
    expect(await cross()).toBe('no')
    await rows.db.run(sql`delete from hand_messages`)
    expect(await cross()).toBe('crossed')
  })

  test('to a person whose number is listed in another spelling ends the recipient', async () => {
    const one = await picked({ steps })
    const { held, person_id } = one
    const { workspace_id } = rows.tenant
    await addSuppression(rows.app, 'system', { workspace_id, phone: `+49170${person_id}` })
    await rows.db.run(sql`
      insert into contacts (account_id, provider_id, workspace_id, name, sort_name, phone)
      values (${held.account_id}, ${person_id}, ${workspace_id}, 'Ines', 'ines', ${`+49 (0)170 ${person_id}`})
      on conflict (account_id, provider_id) do update set phone = excluded.phone`)
    expect(await one.cross()).toBe('ended')
    expect(await stateOf(one)).toEqual({ status: 'suppressed', operations: 0, used: 0 })
  })

  test('to a person who is suppressed at this very moment ends the recipient', async () => {
    const one = await picked({ steps })
    const { definition } = await rows.db.one<{ definition: string }>(sql`
      select pg_get_functiondef('recipient_forbidden'::regproc) as definition`)
    // What was read with the row is already a moment old.
    await rows.db.pool.query(`
      create or replace function recipient_forbidden(workspace uuid, account text, person bigint, known text[]) returns text
      language sql volatile as $$ select 'identity_suppressed' $$`)
    try {
      expect(await one.cross()).toBe('ended')
    } finally {
      await rows.db.pool.query(definition)
    }
    expect(await stateOf(one)).toEqual({ status: 'suppressed', operations: 0, used: 0 })
  })

  test('waits while another transaction adds to the list', async () => {
    const one = await picked({ steps })
    const { workspace_id } = rows.tenant
    await rows.db.transaction(async (tx) => {
      await tx.run(sql`select pg_advisory_xact_lock(suppressions_lock(${workspace_id}))`)
      expect(await one.cross()).toBe('busy')
    })
    expect(await one.cross()).toBe('crossed')
  })

  test('to a person whose name alone is on the list ends the recipient', async () => {
    const one = await picked({ steps })
    const { campaign_id, held } = one
    const username = `name_of_${one.person_id}`
    await rows.db.run(sql`
      update campaign_recipients set username = ${username} where campaign_id = ${campaign_id}`)
    const cross = await pick(held, campaign_id)
    const { workspace_id } = rows.tenant
    await addSuppression(rows.app, 'system', { workspace_id, username })
    // No known person has this name, so the new entry itself has ended no recipient.
    expect(await stateOf(one)).toMatchObject({ status: 'queued' })
    expect(await cross()).toBe('ended')
    expect(await stateOf(one)).toEqual({ status: 'suppressed', operations: 0, used: 0 })
  })

  test('waits while the account has another message in flight', async () => {
    const one = await picked()
    const other = await picked({}, one.held)
    expect(await one.cross()).toBe('crossed')
    await rows.host(one.held, sql`next_campaign_at = null`)
    expect(await other.cross()).toBe('no')
  })

  test('that was released crosses again under its id, and uses the quota once', async () => {
    const one = await picked()
    await one.cross()
    const first = await operation(one)
    await rows.db.transaction((tx) =>
      settle(tx, rows.app.operations, [
        { id: first.id, token: first.attempt_token, ending: { to: 'released', reason: 'never_written' } },
      ]),
    )
    expect(await stateOf(one)).toEqual({ status: 'queued', operations: 1, used: 0 })
    await rows.host(one.held, sql`next_campaign_at = null`)
    const again = await pick(one.held, one.campaign_id)
    expect(await again()).toBe('crossed')
    expect(await stateOf(one)).toEqual({ status: 'submitting', operations: 1, used: 1 })
    expect(await operation(one)).toMatchObject({ id: first.id, attempt_no: 2 })
  })

  test("is not sent when the ledger is ahead of its recipient: the recipient gets the ledger's state", async () => {
    const one = await picked({ steps })
    await one.cross()
    const { id, attempt_token: token } = await operation(one)
    await rows.db.transaction((tx) =>
      settle(tx, rows.app.operations, [{ id, token, ending: { to: 'ambiguous', reason: 'lease' } }]),
    )
    // As after a restore: the recipient was created again, the operation came back from a journal.
    await rows.db.run(sql`alter table campaign_recipients disable trigger recipients_guard`)
    await rows.db.run(sql`
      update campaign_recipients set status = 'queued', unknown_since = null, next_action_at = domain_now()
      where campaign_id = ${one.campaign_id}`)
    await rows.db.run(sql`alter table campaign_recipients enable trigger recipients_guard`)
    await rows.host(one.held, sql`next_campaign_at = null`)
    const again = await pick(one.held, one.campaign_id)
    expect(await again()).toBe('ended')
    expect(await stateOf(one)).toMatchObject({ status: 'submitting', operations: 1 })
  })

  test.each([
    ['its worker has died', sql`lease_until = real_now() - interval '1 second'`],
    ['its session is not live', sql`observed_at = null`],
    ['it was not observed for long', sql`observed_at = real_now() - interval '1 hour'`],
  ])('to a contact is left to the account with most quota left, unless %s', async (_, gone) => {
    const [one, other] = [await rows.account(), await rows.account()]
    const pool = [one.account_id, other.account_id]
    await insertCampaign(rows.db, rows.tenant, { kind: 'contacts', pool, contacts: [{ contact: newId() }] })
    await rows.db.run(sql`
      insert into account_days (account_id, workspace_id, day, used)
      select ${one.account_id}, id, (domain_now() at time zone timezone)::date, 1 from workspaces
      where id = ${one.workspace_id}`)
    const options = { account_ids: [one.account_id], avoid: [], due: true }
    expect(await listHeads(rows.app, rows.db, options)).toEqual([])
    await rows.host(other, gone)
    expect(await listHeads(rows.app, rows.db, options)).toHaveLength(1)
  })

  test('is not picked while a caller waits for a single send of the account', async () => {
    const one = await picked()
    const id = await rows.operation(one.held)
    const options = { account_ids: [one.held.account_id], avoid: [], due: true }
    expect(await listHeads(rows.app, rows.db, options)).toEqual([])
    await rows.db.run(sql`update operations set state = 'released', reason = 'withdrawn' where id = ${id}`)
    expect(await listHeads(rows.app, rows.db, options)).toHaveLength(1)
  })
})

describe('the gap to the next message of the account', () => {
  const config = { ...({} as App['config']), pacing_seconds: 15 }
  const sources = { ...({} as App['sources']), random: () => 0.5 }

  test('is longer by a random share on a platform that asks for it, and exact on the others', () => {
    expect(gapMsOf({ config, sources }, { gapJitter: 0.4 })).toBe(18_000)
    expect(gapMsOf({ config, sources }, { gapJitter: 0 })).toBe(15_000)
  })

  test('starts at the crossing', async () => {
    const { held } = await picked()
    const heads = await listHeads(rows.app, rows.db, { account_ids: [held.account_id], avoid: [], due: true })
    const [due] = chooseDue(rows.app, heads)
    if (!due) throw new Error('Nothing is due.')
    await (await boundary()).cross({
      id: newId(),
      wanted: { row: due.row, found: null, gapMs: 18_000 },
      held,
    })
    const { seconds } = await rows.db.one<{ seconds: number }>(sql`
      select extract(epoch from h.next_campaign_at - o.crossed_at)::float8 as seconds from account_hosts h
      join operations o on o.account_id = h.account_id where h.account_id = ${held.account_id}`)
    expect(Math.round(seconds)).toBe(18)
  })
})

describe('a message whose crossing gets no answer', () => {
  /** The database commits, and its answer does not arrive. */
  function losing(): App {
    const { app } = rows
    const transaction: typeof app.db.transaction = async (work) => {
      await app.db.transaction(work)
      throw new LostCommit('lost')
    }
    return { ...app, db: { ...app.db, transaction } }
  }

  /** A due message, the boundary that loses its COMMIT, and a session that must not be asked to send. */
  async function begin() {
    const one = await picked()
    const heads = await listHeads(rows.app, rows.db, {
      account_ids: [one.held.account_id],
      avoid: [],
      due: true,
    })
    const instance = await rows.instance()
    const messages = messageBoundary(losing(), { instance: () => instance, behind: () => {} })
    const [due] = chooseDue(rows.app, heads)
    if (!due) throw new Error('Nothing is due.')
    const session = { send: () => Promise.reject(new Error('It was sent.')) } as unknown as Session
    return { one, held: one.held, messages, due, session }
  }

  test('is not sent, and its worker reports that', async () => {
    const { one, held, messages, due, session } = await begin()
    const recorder = new Recorder(rows.app, { count: () => {}, noteTrouble })
    const journal = await openJournal(directory, newId())
    const ways = { messages, recorder, journal } as unknown as MessageWays
    expect(
      await attemptMessage(rows.app, ways, due, { held, session, awaits: () => {}, gapJitter: 0, paceMs: 0 }),
    ).toBe('done')
    expect(await stateOf(one)).toEqual({ status: 'queued', operations: 1, used: 0 })
    expect(await rows.row((await operation(one)).id)).toMatchObject({
      state: 'released',
      reason: 'never_written',
    })
    await journal.close()
  })

  test('is journaled as not sent when its worker ends before the database is back', async () => {
    const { one, held, messages, due, session } = await begin()
    const away = {
      ...rows.app,
      db: { ...rows.app.db, transaction: () => Promise.reject(new ApiError('store_unavailable')) },
    } as App
    const stopped = new Recorder(away, { count: () => {}, noteTrouble })
    stopped.stop()
    const journal = await openJournal(directory, newId())
    const ways = { messages, recorder: stopped, journal } as unknown as MessageWays
    await expect(
      attemptMessage(away, ways, due, { held, session, awaits: () => {}, gapJitter: 0, paceMs: 0 }),
    ).rejects.toThrow()
    await journal.close()
    const { id } = await operation(one)
    expect(await rows.row(id)).toMatchObject({ state: 'submitting' })
    const recorder = new Recorder(rows.app, { count: () => {}, noteTrouble })
    const loop = replayLoop({ directory, worker_id: newId(), recorder })
    await loop.step(rows.app, new AbortController().signal)
    expect(await rows.row(id)).toMatchObject({ state: 'released', detail: 'lost_commit' })
    expect(await stateOf(one)).toEqual({ status: 'queued', operations: 1, used: 0 })
  })
})

describe('a message whose process freezes after it has crossed', () => {
  test('is not sent after a cancel in the meantime, and its worker reports that', async () => {
    const one = await picked({ steps: [{ wait_hours: 24 }] })
    const { held } = one
    const [due] = chooseDue(
      rows.app,
      await listHeads(rows.app, rows.db, { account_ids: [held.account_id], avoid: [], due: true }),
    )
    if (!due) throw new Error('Nothing is due.')
    const { sources } = rows.app
    let stoodMs = 0
    const app = { ...rows.app, sources: { ...sources, now: () => sources.now() + stoodMs } }
    const crossing = await boundary()
    const cross: MessageBoundary['cross'] = async (message) => {
      const answer = await crossing.cross(message)
      await control(one.campaign_id, 'cancel')
      stoodMs = 60_000
      return answer
    }
    let sent = 0
    const send = async () => ({ kind: 'unknown', reason: `sent ${++sent} times` })
    const journal = await openJournal(directory, newId())
    const recorder = new Recorder(app, { count: () => {}, noteTrouble })
    const ways = { messages: { cross }, recorder, journal, echoes: new Echoes(app) } as unknown as MessageWays
    const account = {
      held,
      session: { send } as unknown as Session,
      awaits: () => {},
      gapJitter: 0,
      paceMs: 0,
    }
    expect(await attemptMessage(app, ways, due, account)).toBe('done')
    await journal.close()
    expect(sent).toBe(0)
    const ended = { state: 'released', reason: 'never_written', detail: 'deadline' }
    expect(await rows.row((await operation(one)).id)).toMatchObject(ended)
    expect(await stateOf(one)).toEqual({ status: 'cancelled', operations: 1, used: 0 })
  })
})

describe('a message that the platform has shown before', () => {
  test('crosses with its proof, and no worker submits it', async () => {
    const one = await picked()
    const { held, person_id } = one
    const heads = await listHeads(rows.app, rows.db, { account_ids: [held.account_id], avoid: [], due: true })
    const [due] = chooseDue(rows.app, heads)
    if (!due) throw new Error('Nothing is due.')
    await rows.db.run(sql`
      insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at, random_id)
      values (${held.account_id}, ${person_id}, 7, ${held.workspace_id}, 'sent before', true, now(),
        ${identityOf(rows.app, due.row).random_id}::bigint)`)
    const answer = await (await boundary()).cross({
      id: newId(),
      wanted: { row: due.row, found: null, gapMs: 0 },
      held,
    })
    expect(answer).toMatchObject({ status: 'crossed', proof: { message_id: '7' } })
  })
})

describe('while a cancel is in progress', () => {
  async function cancelling<T>(
    campaign_id: string,
    work: (commit: () => Promise<unknown>) => Promise<T>,
  ): Promise<T> {
    const client = await rows.db.client()
    try {
      await client.query('begin')
      await client.query(
        `update campaigns set status = 'cancelled', cancelled_at = domain_now() where id = '${campaign_id}'`,
      )
      return await work(() => client.query('commit'))
    } finally {
      await client.end()
    }
  }

  test('no message crosses on what was read before it', async () => {
    const one = await picked()
    await cancelling(one.campaign_id, async (commit) => {
      expect(await one.cross()).toBe('no')
      await commit()
    })
    expect(await stateOf(one)).toMatchObject({ operations: 0, used: 0 })
  })

  test('a recipient that ends in the meantime waits for it, so that none stays pending', async () => {
    const one = await picked({ steps: [{ wait_hours: 1 }] })
    await one.cross()
    const { id, attempt_token: token } = await operation(one)
    const reply = { message_id: '5', timestamp: new Date().toISOString() }
    await cancelling(one.campaign_id, async (commit) => {
      const settling = rows.db.transaction((tx) =>
        settle(tx, rows.app.operations, [{ id, token, ending: { to: 'completed', reply } }]),
      )
      await until('it waits for the cancel', hangMs, async () => {
        const waiting = await rows.db.maybe(sql`
          select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`)
        return waiting !== undefined
      }).catch(() => {})
      await commit()
      await settling
    })
    expect(await stateOf(one)).toMatchObject({ status: 'completed' })
  })
})

describe('a message that a restored database has lost', () => {
  async function remembered(one: PickedRecipient) {
    const { account_id, workspace_id } = one.held
    const [recipient] = await rows.db.rows<{ id: string }>(
      sql`select id from campaign_recipients where campaign_id = ${one.campaign_id}`,
    )
    return {
      ...{ id: newId(), token: newId(), workspace_id, kind: 'campaign_message', account_id, random_id: '77' },
      ...{ chat_id: `${one.person_id}` as const, key: null, fingerprint: '00'.repeat(32) },
      ...{ campaign_id: one.campaign_id, recipient_id: recipient?.id ?? '', step_no: 0, cold: false },
      quota_day: new Date().toISOString().slice(0, 10),
    }
  }

  test('is restored with its recipient and its use of the quota', async () => {
    const one = await picked({ steps: [{ wait_hours: 24 }] })
    const entry = await remembered(one)
    const back = () => rows.db.transaction((tx) => putBack(tx, rows.app.operations, entry))
    expect([await back(), await back()]).toEqual([true, false])
    expect(await stateOf(one)).toEqual({ status: 'submitting', operations: 1, used: 1 })
  })

  const reply = { message_id: '5', timestamp: new Date().toISOString() }
  test.each(['suppressed', 'cancelled'])(
    'is recorded, and a recipient that was %s in the meantime stays so',
    async (status) => {
      const one = await picked({})
      const entry = await remembered(one)
      await rows.db.run(sql`
      update campaign_recipients set status = ${status}, ended_at = domain_now(), next_action_at = null
      where id = ${entry.recipient_id}`)
      await rows.db.transaction((tx) => putBack(tx, rows.app.operations, entry))
      await rows.db.transaction((tx) =>
        settle(tx, rows.app.operations, [
          { id: entry.id, token: entry.token, ending: { to: 'completed', reply } },
        ]),
      )
      const told = await rows.db.one(sql`
      select r.status, r.step, o.state from campaign_recipients r join operations o on o.recipient_id = r.id
      where r.id = ${entry.recipient_id}`)
      expect(told).toEqual({ status, step: 1, state: 'completed' })
    },
  )
})

describe('a batch of a hundred', () => {
  test('lets 99 cross when the database refuses one', async () => {
    await rows.db.run(sql`
      create function refuse_poison() returns trigger language plpgsql as $$
      begin
        if new.payload ->> 'text' = 'poison' then raise exception 'poison'; end if;
        return new;
      end $$`)
    await rows.db.run(sql`
      create trigger poison before insert on operations for each row execute function refuse_poison()`)
    const all: PickedRecipient[] = []
    for (let n = 0; n < 100; n++) all.push(await picked({ message_text: n === 41 ? 'poison' : 'Hello' }))
    const messages = await boundary()
    const heads = await listHeads(rows.app, rows.db, {
      account_ids: all.map(({ held }) => held.account_id),
      avoid: [],
      due: true,
    })
    const held = new Map(all.map((one) => [one.held.account_id, one.held]))
    const answers = await Promise.all(
      chooseDue(rows.app, heads).map(({ row }) =>
        messages.cross({
          id: newId(),
          wanted: { row, found: null, gapMs: 0 },
          held: held.get(row.account_id) as HeldLease,
        }),
      ),
    )
    await rows.db.run(sql`drop trigger poison on operations`)
    expect(Object.groupBy(answers, ({ status }) => status)).toMatchObject({ failed: [{}] })
    expect(answers.filter(({ status }) => status === 'crossed')).toHaveLength(99)
  })
})
