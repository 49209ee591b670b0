/** The truth table of the boundary: what crosses, and each single fault that must prevent it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { type Sql, sql } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import { type Crossing, type CrossingStatus, cross, type Instance, releaseNeverSent } from './crossing.ts'
import { withdraw } from './enqueue.ts'
import type { HeldLease } from './leases.ts'

let rows: LedgerRows
beforeAll(async () => {
  rows = await openLedgerRows()
})
afterAll(() => rows.close())

async function crossOne(
  crossing: Crossing,
  more: Partial<Instance> = {},
): Promise<CrossingStatus | undefined> {
  const [answer] = await cross(rows.app, { ...(await rows.instance()), ...more }, [crossing])
  return answer?.status
}

const untouched = { state: 'queued', attempt_no: 0, attempt_token: null }

test('a queued row of an account that may act crosses', async () => {
  const held = await rows.account()
  const crossing = await rows.crossing(held)
  expect(await crossOne(crossing)).toBe('crossed')
  const { id, token: attempt_token } = crossing
  expect(await rows.row(id)).toMatchObject({ state: 'submitting', attempt_no: 1, attempt_token })
  expect(await rows.writes(held)).toBe('1')
  expect(await crossOne(crossing)).toBe('no')
})

interface Wrong {
  readonly what: string
  /** What the account's row is changed to. */
  readonly set?: Sql
  readonly instance?: Partial<Instance>
  /** The result of the crossing instead. */
  readonly crossing?: Partial<Crossing>
  readonly held?: Partial<HeldLease>
  readonly status?: CrossingStatus
}

const wrongs: readonly Wrong[] = [
  { what: 'another worker holds the lease', set: sql`lease_owner = ${newId()}` },
  { what: 'no worker holds the lease', set: sql`lease_owner = null, lease_until = null` },
  { what: 'the lease has a later epoch', set: sql`lease_epoch = lease_epoch + 1` },
  { what: 'the lease has run out', set: sql`lease_until = real_now() - interval '1 ms'` },
  { what: 'a flood wait lasts', set: sql`flood_until = domain_now() + interval '1 minute'` },
  { what: 'the session was last observed long ago', set: sql`observed_at = real_now() - interval '1 hour'` },
  { what: 'the session is not caught up', set: sql`observed_at = null` },
  { what: 'the database knows fewer writes', held: { writes: { seen: '1' } }, status: 'behind' },
  { what: 'the restore counter is lower', instance: { restore_counter: '1000000' } },
  { what: 'the generation is another', instance: { generation: newId() } },
  { what: 'the server was started again', instance: { server_run: 'an earlier one' } },
  { what: 'the row has another token than was read', crossing: { seen_token: newId() } },
]

describe('does not cross', () => {
  test.each(wrongs)('$what', async ({ set, instance, crossing, held, status = 'no' }) => {
    const account = { ...(await rows.account()), ...held }
    const one = { ...(await rows.crossing(account)), ...crossing }
    if (set) await rows.host(account, set)
    expect(await crossOne(one, instance)).toBe(status)
    expect(await rows.row(one.id)).toMatchObject(untouched)
    expect(await rows.writes(account)).toBe('0')
  })

  test.each(['DISABLED', 'CONNECTING', 'NEEDS_LOGIN', 'RESTRICTED'])('the account is %s', async (status) => {
    const held = await rows.account()
    const crossing = await rows.crossing(held)
    await rows.db.run(sql`update accounts set status = ${status} where id = ${held.account_id}`)
    expect(await crossOne(crossing)).toBe('no')
    expect(await rows.row(crossing.id)).toMatchObject(untouched)
  })

  test('dispatch is off', async () => {
    const crossing = await rows.crossing(await rows.account())
    await rows.db.run(sql`update settings set value = 'false' where name = 'dispatch'`)
    const status = await crossOne(crossing).finally(() =>
      rows.db.run(sql`update settings set value = 'true' where name = 'dispatch'`),
    )
    expect(status).toBe('no')
    expect(await rows.row(crossing.id)).toMatchObject(untouched)
  })

  test('a worker still has to put its journals back', async () => {
    const crossing = await rows.crossing(await rows.account())
    const id = newId()
    await rows.db.run(sql`insert into workers (id, owes) values (${id}, true)`)
    const status = await crossOne(crossing).finally(() =>
      rows.db.run(sql`delete from workers where id = ${id}`),
    )
    expect(status).toBe('no')
    expect(await rows.row(crossing.id)).toMatchObject(untouched)
  })

  test('it has expired', async () => {
    const crossing = await rows.crossing(await rows.account(), { expires: -1 })
    expect(await crossOne(crossing)).toBe('no')
    expect(await rows.row(crossing.id)).toMatchObject(untouched)
  })

  test('its caller has withdrawn it', async () => {
    const crossing = await rows.crossing(await rows.account())
    await withdraw(rows.app, { id: crossing.id, queued_no: 1 })
    expect(await crossOne(crossing)).toBe('no')
    expect(await rows.row(crossing.id)).toMatchObject({
      state: 'released',
      reason: 'withdrawn',
      attempt_no: 0,
    })
  })

  test('another transaction has locked the account: busy, and it crosses afterwards', async () => {
    const held = await rows.account()
    const crossing = await rows.crossing(held)
    await rows.db.transaction(async (tx) => {
      await tx.run(sql`select 1 from account_hosts where account_id = ${held.account_id} for no key update`)
      expect(await crossOne(crossing)).toBe('busy')
    })
    expect(await rows.row(crossing.id)).toMatchObject(untouched)
    expect(await crossOne(crossing)).toBe('crossed')
  })
})

test('an attempt under an earlier lease does not cross in one batch with one under the present lease', async () => {
  const held = await rows.account()
  const [early, present] = [await rows.crossing({ ...held, epoch: '2' }), await rows.crossing(held)]
  const answers = await cross(rows.app, await rows.instance(), [early, present])
  const statusOf = ({ id }: Crossing) => answers.find((answer) => answer.id === id)?.status
  expect([statusOf(early), statusOf(present)]).toEqual(['no', 'crossed'])
  expect(await rows.row(early.id)).toMatchObject(untouched)
})

test('a stored message with the random id is proof: no worker may submit it', async () => {
  const held = await rows.account()
  const crossing = await rows.crossing(held)
  await rows.message(held, crossing.id, '77')
  const [answer] = await cross(rows.app, await rows.instance(), [crossing])
  expect(answer).toMatchObject({ status: 'proven', message_id: '77', sent_at: expect.any(Date) })
  expect(await rows.row(crossing.id)).toMatchObject({ state: 'submitting', attempt_token: crossing.token })
})

test("another account's message with the same random id proves nothing", async () => {
  const crossing = await rows.crossing(await rows.account())
  await rows.message(await rows.account(), crossing.id, '77')
  expect(await crossOne(crossing)).toBe('crossed')
})

describe('many rows at once', () => {
  test('exactly the right ones of 50 rows of 20 accounts cross', async () => {
    const accounts = await Promise.all(Array.from({ length: 20 }, () => rows.account()))
    const at = (n: number) => accounts[n % 20] as HeldLease
    const expected: CrossingStatus[] = []
    const crossings: Crossing[] = []
    for (let n = 0; n < 50; n++) {
      const held = at(n)
      const account = n % 20
      // Every account from 16 on has a fault; of the others some single rows.
      const row = n % 7 === 3 ? { expires: -1 } : {}
      const crossing = await rows.crossing(held, row)
      const stale = n % 11 === 5 ? { seen_token: newId() } : {}
      if (n === 8) await rows.message(held, crossing.id, '5')
      crossings.push({ ...crossing, ...stale })
      const own = n % 7 === 3 || n % 11 === 5 ? 'no' : n === 8 ? 'proven' : 'crossed'
      expected.push(account < 16 ? own : account === 18 ? 'behind' : 'no')
    }
    await rows.host(at(16), sql`lease_epoch = 9`)
    await rows.host(at(17), sql`flood_until = domain_now() + interval '1 minute'`)
    at(18).writes.seen = '4'
    await rows.host(at(19), sql`lease_owner = ${newId()}`)
    const answers = await cross(rows.app, await rows.instance(), crossings)
    const statuses = new Map(answers.map(({ id, status }) => [id, status]))
    expect(crossings.map(({ id }) => statuses.get(id))).toEqual(expected)
    const states = await Promise.all(crossings.map(async ({ id }) => (await rows.row(id)).state))
    expect(states).toEqual(
      expected.map((status) => (status === 'crossed' || status === 'proven' ? 'submitting' : 'queued')),
    )
    // Once per account, however many of its rows crossed.
    expect(await rows.writes(at(0))).toBe('1')
    expect(await rows.writes(at(16))).toBe('0')
  })

  test('each row crosses once in two batches over the same rows', async () => {
    const accounts = await Promise.all(Array.from({ length: 5 }, () => rows.account()))
    for (let round = 0; round < 5; round++) {
      const one = await Promise.all(
        Array.from({ length: 40 }, (_, n) => rows.crossing(accounts[n % 5] as HeldLease)),
      )
      const other = one.map((crossing) => ({ ...crossing, token: newId() })).toReversed()
      const instance = await rows.instance()
      const batches = await Promise.all([cross(rows.app, instance, one), cross(rows.app, instance, other)])
      const crossed = batches.flat().filter(({ status }) => status === 'crossed')
      expect(crossed.map(({ id }) => id).toSorted()).toEqual(one.map(({ id }) => id).toSorted())
      for (const { id } of one) expect(await rows.row(id)).toMatchObject({ attempt_no: 1 })
    }
  })
})

describe('a crossing whose answer was lost', () => {
  test('is released when it crossed with our token', async () => {
    const crossing = await rows.crossing(await rows.account())
    await crossOne(crossing)
    await releaseNeverSent(rows.app, crossing)
    expect(await rows.row(crossing.id)).toMatchObject({ state: 'released', reason: 'never_written' })
  })

  test('is also released when the sweep gave it up as unknown in the meantime', async () => {
    const token = newId()
    const id = await rows.operation(await rows.account(), { state: 'ambiguous', token })
    await releaseNeverSent(rows.app, { id, token })
    expect(await rows.row(id)).toMatchObject({ state: 'released', reason: 'never_written' })
  })

  test('does nothing when it arrives late on a row that is still queued, and the next attempt crosses', async () => {
    const crossing = await rows.crossing(await rows.account())
    await releaseNeverSent(rows.app, crossing)
    expect(await crossOne(crossing)).toBe('no')
    const { state, attempt_token: seen_token } = await rows.row(crossing.id)
    expect(state).toBe('queued')
    expect(await crossOne({ ...crossing, token: newId(), seen_token })).toBe('crossed')
  })

  test('does nothing when it arrives late on a row that was withdrawn and queued again', async () => {
    const crossing = await rows.crossing(await rows.account())
    await withdraw(rows.app, { id: crossing.id, queued_no: 1 })
    await releaseNeverSent(rows.app, crossing)
    await rows.db.run(sql`
      update operations set state = 'queued', queued_no = queued_no + 1, reason = null, finished_at = null
      where id = ${crossing.id}`)
    expect(await crossOne(crossing)).toBe('no')
    expect(await rows.row(crossing.id)).toMatchObject({ state: 'queued', attempt_no: 0 })
  })

  test('changes nothing when the token belongs to another attempt', async () => {
    const crossing = await rows.crossing(await rows.account())
    await crossOne(crossing)
    await releaseNeverSent(rows.app, { id: crossing.id, token: newId() })
    expect(await rows.row(crossing.id)).toMatchObject({ state: 'submitting', attempt_token: crossing.token })
  })

  test('is released after its pending commit, which the release waits for', async () => {
    const crossing = await rows.crossing(await rows.account())
    let released: Promise<void> | undefined
    await rows.db.transaction(async (tx) => {
      const [answer] = await cross({ ...rows.app, db: tx }, await rows.instance(), [crossing])
      expect(answer?.status).toBe('crossed')
      released = releaseNeverSent(rows.app, crossing)
      await waitForLock()
    })
    await released
    expect(await rows.row(crossing.id)).toMatchObject({ state: 'released', reason: 'never_written' })
  })
})

/** Until a statement waits for a lock of this database. */
async function waitForLock(): Promise<void> {
  for (;;) {
    const { waiting } = await rows.db.one<{ waiting: boolean }>(sql`
      select exists (select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock') as waiting`)
    if (waiting) return
  }
}
