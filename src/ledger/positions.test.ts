/**
 * The fence of updates, and of workers that claim an account: one worker at a time stores, and none is live too
 * early.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { type Sql, sql } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import {
  claimAccount,
  claimAccounts,
  type HeldLease,
  holdsLease,
  isHeldSince,
  LeaseLost,
  leaseSeconds,
  readShares,
  releaseLease,
  renewLeases,
  requireLease,
  shareOf,
} from './leases.ts'
import { advancePositions } from './positions.ts'

let rows: LedgerRows
beforeAll(async () => {
  rows = await openLedgerRows()
})
afterAll(() => rows.close())

function host({ account_id }: HeldLease) {
  return rows.db.one<{
    position: string | null
    writes: string
    live: boolean
    owner: string | null
    epoch: string
  }>(sql`
    select position, writes::text, observed_at is not null as live, lease_owner as owner, lease_epoch::text as epoch
    from account_hosts where account_id = ${account_id}`)
}

const advance = (held: HeldLease, caught_up = true) =>
  advancePositions(rows.db, [{ held, position: '9', caught_up }])

describe('advancePositions', () => {
  test('moves the position of an account that is ours, and counts the write', async () => {
    const held = await rows.account()
    expect(await advance(held)).toEqual([{ account_id: held.account_id, writes: '1' }])
    expect(await host(held)).toMatchObject({ position: '9', writes: '1', live: true })
  })

  test.each<[string, Sql, Partial<HeldLease>]>([
    ['another worker holds the lease', sql`lease_owner = ${newId()}`, {}],
    ['the lease has a later epoch', sql`lease_epoch = lease_epoch + 1`, {}],
    ['the database knows fewer writes', sql`writes = 3`, { writes: { seen: '4' } }],
  ])('moves nothing where %s', async (_, set, more) => {
    const held = { ...(await rows.account()), ...more }
    await rows.host(held, set)
    expect(await advance(held)).toEqual([])
    expect(await host(held)).toMatchObject({ position: null })
  })

  test('makes the session live with the first batch that was read to the end, and not before', async () => {
    const held = await rows.account()
    await rows.host(held, sql`observed_at = null`)
    await advance(held, false)
    expect(await host(held)).toMatchObject({ position: '9', live: false })
    await advance(held, true)
    expect(await host(held)).toMatchObject({ live: true })
    await advance(held, false)
    expect(await host(held)).toMatchObject({ live: true })
  })

  test('of many accounts moves those that are ours', async () => {
    const accounts = await Promise.all(Array.from({ length: 9 }, () => rows.account()))
    const lost = accounts.filter((_, n) => n % 3 === 1)
    for (const held of lost) await rows.host(held, sql`lease_epoch = 8`)
    const moved = await advancePositions(
      rows.db,
      accounts.map((held) => ({ held, position: '5', caught_up: true })),
    )
    const expected = accounts.filter((held) => !lost.includes(held)).map(({ account_id }) => account_id)
    expect(moved.map(({ account_id }) => account_id).toSorted()).toEqual(expected.toSorted())
  })
})

describe('claimAccounts', () => {
  const claim = async (
    worker_id = newId(),
    more: { takeover_seconds?: number; neighbours?: readonly string[] } = {},
  ) => {
    const wanted = { worker_id, platform: 'sandbox', limit: 1_000, takeover_seconds: 0, neighbours: [] }
    const claimed = await claimAccounts(rows.db, { ...wanted, ...more })
    return new Map(claimed.map((lease) => [lease.account_id, lease]))
  }

  test('skips an account whose owner is alive, and claims one whose lease has expired', async () => {
    const [kept, over] = [await rows.account(), await rows.account()]
    await rows.host(kept, sql`lease_until = real_now() + make_interval(secs => ${leaseSeconds - 1})`)
    await rows.host(over, sql`lease_until = real_now() - interval '1 ms'`)
    const claimed = await claim()
    expect([claimed.has(kept.account_id), claimed.has(over.account_id)]).toEqual([false, true])
    expect(claimed.get(over.account_id)?.epoch).toBe('4')
  })

  test('claims one whose lease is further ahead than possible: the clock was set back', async () => {
    const held = await rows.account()
    await rows.host(held, sql`lease_until = real_now() + interval '1 hour'`)
    expect((await claim()).has(held.account_id)).toBe(true)
  })

  test.each(['DISABLED', 'NEEDS_LOGIN'])(
    'skips one that is %s, whichever worker drove it before',
    async (status) => {
      const held = await rows.account()
      await rows.host(held, sql`lease_until = null`)
      await rows.db.run(sql`update accounts set status = ${status} where id = ${held.account_id}`)
      expect((await claim()).has(held.account_id)).toBe(false)
    },
  )

  test('skips those of a disabled workspace, also while it is being disabled', async () => {
    const held = await rows.account()
    const { workspace_id } = held
    await rows.host(held, sql`lease_until = null`)
    const disable = sql`update workspaces set disabled_at = domain_now() where id = ${workspace_id}`
    const during = await rows.db.transaction(async (tx) => {
      await tx.run(disable)
      return claim()
    })
    expect(during.has(held.account_id)).toBe(false)
    expect((await claim()).has(held.account_id)).toBe(false)
    await rows.db.run(sql`update workspaces set disabled_at = null where id = ${workspace_id}`)
    expect((await claim()).has(held.account_id)).toBe(true)
  })

  test('claims one immediately whose owner has stopped', async () => {
    const held = await rows.account()
    const owner = newId()
    await rows.db.run(sql`insert into workers (id, stopped_at) values (${owner}, real_now())`)
    await rows.host(held, sql`lease_owner = ${owner}, lease_until = real_now() + interval '10 s'`)
    expect((await claim()).has(held.account_id)).toBe(true)
  })

  describe('when a platform requires 75 seconds before another worker takes over', () => {
    const takeover = { takeover_seconds: 75 }

    test('skips an account whose lease expired 74 seconds ago, and claims one after 76', async () => {
      const [early, late] = [await rows.account(), await rows.account()]
      await rows.host(early, sql`lease_until = real_now() - interval '74 s'`)
      await rows.host(late, sql`lease_until = real_now() - interval '76 s'`)
      const claimed = await claim(newId(), takeover)
      expect([claimed.has(early.account_id), claimed.has(late.account_id)]).toEqual([false, true])
    })

    test('stores that time with the lease', async () => {
      const held = await rows.account()
      await rows.host(held, sql`lease_until = null`)
      expect((await claim(newId(), takeover)).has(held.account_id)).toBe(true)
      const row = await rows.db.one(
        sql`select takeover_seconds from account_hosts where account_id = ${held.account_id}`,
      )
      expect(row).toEqual({ takeover_seconds: 75 })
    })

    test('claims one immediately that was released, or whose owner signed off or died on this disk', async () => {
      const [given, stopped, beside] = [await rows.account(), await rows.account(), await rows.account()]
      const [owner, neighbour] = [newId(), newId()]
      await rows.db.run(sql`insert into workers (id, stopped_at) values (${owner}, real_now())`)
      await rows.host(given, sql`lease_owner = null, lease_until = null`)
      await rows.host(stopped, sql`lease_owner = ${owner}, lease_until = real_now() + interval '10 s'`)
      await rows.host(beside, sql`lease_owner = ${neighbour}, lease_until = real_now() - interval '1 ms'`)
      expect((await claim(newId(), takeover)).has(beside.account_id)).toBe(false)
      const [again, other] = [await rows.account(), await rows.account()]
      await rows.host(again, sql`lease_owner = null, lease_until = null`)
      await rows.host(other, sql`lease_owner = ${owner}, lease_until = real_now() + interval '10 s'`)
      const claimed = await claim(newId(), { ...takeover, neighbours: [neighbour] })
      expect([again, other, beside].map(({ account_id }) => claimed.has(account_id))).toEqual([
        true,
        true,
        true,
      ])
    })
  })

  test('skips an account that a living worker of the same disk drives', async () => {
    const [held, neighbour] = [await rows.account(), newId()]
    await rows.host(held, sql`lease_owner = ${neighbour}, lease_until = real_now() + interval '10 s'`)
    for (const takeover_seconds of [0, 75]) {
      const claimed = await claim(newId(), { takeover_seconds, neighbours: [neighbour] })
      expect(claimed.has(held.account_id)).toBe(false)
    }
    expect(await host(held)).toMatchObject({ owner: neighbour })
  })

  test('makes it not live, and renewing the lease does not change that', async () => {
    const held = await rows.account()
    await rows.host(held, sql`lease_until = real_now() - interval '1 ms'`)
    const worker_id = newId()
    const lease = (await claim(worker_id)).get(held.account_id)
    expect(await host(held)).toMatchObject({ live: false, owner: worker_id })
    const renewal = { account_id: held.account_id, epoch: lease?.epoch ?? '', silent_ms: 5 }
    await renewLeases(rows.db, worker_id, [renewal])
    expect(await host(held)).toMatchObject({ live: false })
  })

  test('gives two callers at once different accounts', async () => {
    const accounts = await Promise.all(Array.from({ length: 10 }, () => rows.account()))
    for (const held of accounts) await rows.host(held, sql`lease_until = null`)
    const [one, other] = await Promise.all([claim(), claim()])
    expect([...one.keys()].filter((id) => other.has(id))).toEqual([])
    expect(accounts.every(({ account_id }) => one.has(account_id) || other.has(account_id))).toBe(true)
  })
})

describe('requireLease', () => {
  const require = (held: HeldLease) => rows.db.transaction((tx) => requireLease(tx, held))

  test('throws when another worker has claimed the account, or this one has claimed it anew', async () => {
    const [kept, taken, again] = [await rows.account(), await rows.account(), await rows.account()]
    await rows.host(taken, sql`lease_owner = ${newId()}`)
    await rows.host(again, sql`lease_epoch = lease_epoch + 1`)
    await require(kept)
    await expect(require(taken)).rejects.toThrow(LeaseLost)
    await expect(require(again)).rejects.toThrow(LeaseLost)
  })
})

describe('claimAccount, for a login', () => {
  const claim = async ({ account_id }: HeldLease) =>
    (await claimAccount(rows.db, { worker_id: newId(), account_id }))?.epoch

  test('takes an account whose lease has expired, but none that a worker drives', async () => {
    const [driven, over] = [await rows.account(), await rows.account()]
    await rows.host(driven, sql`lease_until = real_now() + make_interval(secs => ${leaseSeconds - 1})`)
    await rows.host(over, sql`lease_until = real_now() - interval '1 ms'`)
    expect([await claim(driven), await claim(over)]).toEqual([undefined, '4'])
    expect((await host(driven)).owner).toBe(driven.worker_id)
  })

  test('takes one immediately that was released, or whose worker has stopped', async () => {
    const [released, left] = [await rows.account(), await rows.account()]
    const owner = newId()
    await rows.db.run(sql`insert into workers (id, stopped_at) values (${owner}, real_now())`)
    await rows.host(released, sql`lease_owner = null, lease_until = null`)
    await rows.host(left, sql`lease_owner = ${owner}`)
    expect([await claim(released), await claim(left)]).toEqual(['4', '4'])
  })
})

describe('readShares', () => {
  test('counts the workers of each platform', async () => {
    const count = async () =>
      Object.fromEntries(
        (await readShares(rows.db, newId(), ['sandbox', 'elsewhere'])).map(({ platform, workers }) => [
          platform,
          workers,
        ]),
      )
    const before = await count()
    await rows.db.run(sql`
      insert into workers (id, beat_at, platforms) values (${newId()}, real_now(), '{elsewhere}')`)
    expect(await count()).toEqual({ ...before, elsewhere: (before.elsewhere ?? 0) + 1 })
  })

  test('leaves out the accounts of a disabled workspace', async () => {
    const [account, worker_id] = [await rows.account(), newId()]
    await rows.db.run(sql`
      insert into workers (id, beat_at, platforms) values (${worker_id}, real_now(), '{telegram}')`)
    await rows.db.run(
      sql`update accounts set platform = 'telegram', status = 'READY' where id = ${account.account_id}`,
    )
    const share = async () => (await readShares(rows.db, worker_id, ['telegram']))[0]?.share
    const disable = (at: Sql) =>
      rows.db.run(sql`
        update workspaces set disabled_at = ${at}
        where id = (select workspace_id from accounts where id = ${account.account_id})`)
    expect(await share()).toBe(1)
    await disable(sql`real_now()`)
    expect(await share()).toBe(0)
    await disable(sql`null`)
  })

  test('gives all accounts out, and to no worker over one more than to another, also over two platforms', () => {
    for (let workers = 1; workers <= 5; workers++) {
      for (let first = 0; first <= 11; first++) {
        for (let second = 0; second <= 11; second++) {
          const ranks = Array.from({ length: workers }, (_, rank) => rank)
          const ofFirst = ranks.map((rank) => shareOf({ accounts: first, before: 0, workers, rank }))
          const ofSecond = ranks.map((rank) => shareOf({ accounts: second, before: first, workers, rank }))
          const all = ranks.map((rank) => (ofFirst[rank] ?? 0) + (ofSecond[rank] ?? 0))
          for (const shares of [ofFirst, ofSecond, all]) {
            expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1)
          }
          expect(all.reduce((sum, share) => sum + share)).toBe(first + second)
        }
      }
    }
  })
})

describe('a lease checked without the database', () => {
  const ms = leaseSeconds * 1_000
  const since = { monotonic: 1_000, wall: 50_000 }

  test.each([
    ['holds while neither clock has passed it', { monotonic: 999 + ms, wall: 49_999 + ms }, true],
    ['ends by the monotonic clock', { monotonic: 1_000 + ms, wall: 50_000 }, false],
    [
      'ends by the wall clock, which goes on while a machine sleeps',
      { monotonic: 1_001, wall: 50_000 + ms },
      false,
    ],
  ])('%s', (_, now, held) => {
    expect(isHeldSince(since, now)).toBe(held)
  })

  test('is renewed only while it is still ours', async () => {
    const [ours, lost] = [await rows.account(), await rows.account()]
    await rows.host(lost, sql`lease_epoch = lease_epoch + 1`)
    const renewals = [ours, lost].map(({ account_id, epoch }) => ({ account_id, epoch, silent_ms: 5 }))
    expect(await renewLeases(rows.db, ours.worker_id, renewals)).toEqual(new Set([ours.account_id]))
  })
})

describe('releaseLease', () => {
  test('ends the lease of this epoch only: its worker may have claimed the account again', async () => {
    const held = await rows.account()
    await rows.host(held, sql`lease_epoch = lease_epoch + 1`)
    await releaseLease(rows.db, held.worker_id, held)
    expect(await host(held)).toMatchObject({ owner: held.worker_id, epoch: '4' })
    await releaseLease(rows.db, held.worker_id, { ...held, epoch: '4' })
    expect(await host(held)).toMatchObject({ owner: null })
  })
})

describe('holdsLease', () => {
  test.each<[string, Sql, boolean]>([
    ['the lease is ours', sql`lease_epoch = lease_epoch`, true],
    ['it has run out', sql`lease_until = real_now() - interval '1 ms'`, false],
    ['it has a later epoch', sql`lease_epoch = lease_epoch + 1`, false],
    ['another worker holds it', sql`lease_owner = ${newId()}`, false],
  ])('where %s', async (_, set, holds) => {
    const held = await rows.account()
    await rows.host(held, set)
    expect(await holdsLease(rows.db, held.worker_id, held)).toBe(holds)
  })
})

describe('a clock that was set back', () => {
  test('a worker whose heartbeat is in the future does not count for shares of the accounts', async () => {
    const workers = async () => (await readShares(rows.db, newId(), ['sandbox']))[0]?.workers
    const before = (await workers()) ?? 0
    const id = newId()
    await rows.db.run(
      sql`insert into workers (id, beat_at, platforms) values (${id}, real_now(), '{sandbox}')`,
    )
    expect(await workers()).toBe(before + 1)
    await rows.db.run(sql`update workers set beat_at = real_now() + interval '1 hour' where id = ${id}`)
    expect(await workers()).toBe(before)
  })

  test('renewing a lease resets a session time that is in the future', async () => {
    const held = await rows.account()
    await rows.host(held, sql`observed_at = real_now() + interval '1 hour'`)
    const { account_id, epoch, worker_id } = held
    await renewLeases(rows.db, worker_id, [{ account_id, epoch, silent_ms: 80_000 }])
    const { ahead } = await rows.db.one<{ ahead: boolean }>(sql`
      select observed_at > real_now() as ahead from account_hosts where account_id = ${account_id}`)
    expect(ahead).toBe(false)
  })
})
