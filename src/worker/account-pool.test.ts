/** When a process gives up its accounts: another can do what it cannot, or may already have them. */
import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { hangMs, until } from '../../test/harness/process.ts'
import { openWorkplace, type Workplace } from '../../test/harness/worker.ts'
import type { App, Sources } from '../app.ts'
import { setAccountEnabled } from '../capabilities/accounts/accounts.ts'
import { sql } from '../db/sql.ts'
import { Echoes } from '../ledger/echoes.ts'
import { leaseSeconds, noteWrites } from '../ledger/leases.ts'
import { noteDrives, noteHeartbeat, noteStopped } from '../ledger/workers.ts'
import { ApiError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import type { AccountRef, Listener, Platform, Session } from '../platform/port.ts'
import { AccountPool } from './account-pool.ts'

let place: Workplace
beforeAll(async () => {
  place = await openWorkplace()
})
afterAll(() => place.close())

interface PoolGiven {
  readonly app?: App
  readonly platform?: Platform
  readonly behind?: () => void
  readonly mayDrive?: (worker_id: string) => Promise<boolean>
}

/** The pool of a new worker, whose loops a test runs step by step: the leases first, then history. */
async function openPool({ app = newApp(), platform = place.sandbox.platform, ...given }: PoolGiven = {}) {
  const { behind = () => {}, mayDrive = async () => true } = given
  const worker_id = newId()
  await noteHeartbeat(place.db, { worker_id, platforms: ['sandbox'] })
  const pool = new AccountPool(app, {
    worker_id,
    platforms: new Map([['sandbox', platform]]),
    echoes: new Echoes(app),
    instance: () => undefined,
    behind,
    mayDrive: () => mayDrive(worker_id),
    neighbours: async () => [],
  })
  const step = async (loop = 0) => pool.loops[loop]?.step(app, new AbortController().signal)
  const stop = async () => {
    await pool.stop()
    await noteStopped(place.db, worker_id)
  }
  return { worker_id, pool, step, stop }
}

/** The service's App, with metrics of its own: every pool registers the same ones. */
const newApp = (): App => ({ ...place.service.app, metrics: new Registry() })

test('ends the sessions when the database is unreachable for longer than a lease', async () => {
  const { app } = place.service
  await place.account(await place.service.tenant())
  let away = false
  const lost = () => Promise.reject(new ApiError('store_unavailable'))
  const db = new Proxy(app.db, {
    get(target, name) {
      const value = target[name as keyof typeof target]
      if (typeof value !== 'function') return value
      return (...given: never[]) =>
        away ? lost() : (value as (...all: never[]) => unknown).apply(target, given)
    },
  })
  const { pool, step, stop } = await openPool({
    app: { ...newApp(), db },
    platform: { ...place.sandbox.platform, gapJitter: 0.4, paceMs: 7 },
    mayDrive: async (worker_id) => (await noteDrives(db, worker_id, true)) || true,
  })
  await step()
  await until('its session is there', hangMs, async () => pool.driven().size === 1)
  expect([...pool.driven().values()]).toMatchObject([{ gapJitter: 0.4, paceMs: 7 }])
  away = true
  const now = performance.now.bind(performance)
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + (leaseSeconds + 1) * 1000)
  await expect(step()).rejects.toThrow()
  clock.mockRestore()
  expect(pool.driven().size).toBe(0)
  away = false
  await stop()
})

test('claims accounts, and gives them up while the journal cannot be written', async () => {
  const account_id = await place.account(await place.service.tenant())
  let writable = true
  const { worker_id, pool, step, stop } = await openPool({ mayDrive: async () => writable })
  const owner = async () => {
    const { lease_owner } = await place.db.one<{ lease_owner: string | null }>(
      sql`select lease_owner from account_hosts where account_id = ${account_id}`,
    )
    return lease_owner
  }
  await step()
  expect(await owner()).toBe(worker_id)
  writable = false
  await step()
  expect(pool.driven()).toEqual(new Map())
  await until('the lease is given back', hangMs, async () => (await owner()) === null)
  await step()
  expect(await owner()).toBe(null)
  await stop()
})

test('knows how far the account had come when commits are lost, including its own lease', async () => {
  const account_id = await place.account(await place.service.tenant())
  let noticed = 0
  const { pool, step, stop } = await openPool({ behind: () => noticed++ })
  const seen = () => pool.driven().get(account_id)?.held
  await step()
  await until('its session is there', hangMs, async () => {
    await step()
    return seen() !== undefined
  })
  const held = seen()
  if (!held) throw new Error('It is not driven.')
  noteWrites(held, '50')
  await place.db.run(sql`
    update account_hosts set writes = 7, lease_owner = null, lease_until = null, lease_epoch = lease_epoch - 1
    where account_id = ${account_id}`)
  await until('it is noticed', hangMs, async () => {
    await step()
    return noticed > 0
  })
  await stop()
})

test('reports to a platform whether the lease still holds: while renewals arrive, and not after the session has ended', async () => {
  await place.account(await place.service.tenant())
  const refs: AccountRef[] = []
  const platform: Platform = {
    ...place.sandbox.platform,
    connect: (account, listener) => {
      refs.push(account)
      return place.sandbox.platform.connect(account, listener)
    },
  }
  const { pool, step, stop } = await openPool({ platform })
  await step()
  await until('its session is there', hangMs, async () => pool.driven().size > 0)
  const all = () => refs.map((account) => account.held())
  expect(all()).not.toContain(false)
  const later = (leaseSeconds + 1) * 1000
  const now = performance.now.bind(performance)
  const monotonic = vi.spyOn(performance, 'now').mockImplementation(() => now() + later)
  expect(all()).not.toContain(true)
  // A renewal in time extends it.
  await step()
  expect(all()).not.toContain(false)
  monotonic.mockRestore()
  await stop()
  expect(all()).not.toContain(true)
})

test('has the platform forget an account that it gives up, but not one that it has claimed again', async () => {
  const account_id = await place.account(await place.service.tenant())
  const forgotten: string[] = []
  const mayClose = Promise.withResolvers<void>()
  const platform: Platform = {
    ...place.sandbox.platform,
    forgetAccount: (id) => void forgotten.push(id),
    connect: async (account, listener) => {
      const outcome = await place.sandbox.platform.connect(account, listener)
      if (outcome.kind !== 'accepted' || account.account_id !== account_id) return outcome
      const session = outcome.value
      const close = session.close.bind(session)
      const slowly = async () => {
        await mayClose.promise
        await close()
      }
      return { ...outcome, value: Object.assign(session, { close: slowly }) }
    },
  }
  const { pool, step, stop } = await openPool({ platform })
  const held = () => pool.driven().get(account_id)?.held
  await step()
  await until('its session is there', hangMs, () => held() !== undefined)
  const { epoch } = held() ?? {}
  await place.db.run(sql`
    update account_hosts set lease_owner = null, lease_until = null where account_id = ${account_id}`)
  // Claimed again while the session before is slow to close.
  await until('it is there again', hangMs, async () => {
    await step()
    return held() !== undefined && held()?.epoch !== epoch
  })
  mayClose.resolve()
  await setAccountEnabled(place.service.app, 'system', { id: account_id, enabled: false })
  await until('it is forgotten', hangMs, async () => {
    await step()
    return forgotten.includes(account_id)
  })
  await stop()
  expect(forgotten.filter((id) => id === account_id)).toHaveLength(1)
})

test("waits out a platform's whole flood wait before it connects again", async () => {
  const { app, rests } = restingApp()
  await place.account(await place.service.tenant())
  const platform: Platform = {
    ...place.sandbox.platform,
    connect: async () => ({ kind: 'flood_wait', retry_after_seconds: 80_000, stops: 'reading' }),
  }
  const { step, stop } = await openPool({ app, platform })
  await step()
  await until('it waits', hangMs, async () => rests.includes(80_000_000))
  await stop()
})

/** An App that notes how long it rests. */
function restingApp() {
  const rests: number[] = []
  const { sources } = place.service.app
  const timer: Sources['timer'] = (ms, done) => {
    rests.push(ms)
    return sources.timer(ms, done)
  }
  const lines: object[] = []
  const log: App['log'] = Object.assign(Object.create(place.service.app.log), {
    info: (line: object) => void lines.push(line),
    warn: (line: object) => void lines.push(line),
  })
  return { app: { ...newApp(), log, sources: { ...sources, timer } }, rests, lines }
}

test('an account that the platform refuses waits, also under its next lease; the one next to it connects', async () => {
  const tenant = await place.service.tenant()
  const [refused, well] = [await place.account(tenant), await place.account(tenant)]
  const { app, rests, lines } = restingApp()
  let connects = 0
  const platform: Platform = {
    ...place.sandbox.platform,
    connect: async (account, listener) => {
      if (account.account_id !== refused) return place.sandbox.platform.connect(account, listener)
      connects++
      return {
        kind: 'not_written',
        reason: 'Too many connections.',
        cause: 'refused',
        retry_after_seconds: 60,
      }
    },
  }
  const { pool, step, stop } = await openPool({ app, platform })
  /** At most one and a half of the wait, or what is left of it. A quiet session rests for 30 s. */
  const waits = (leastMs: number) => rests.filter((ms) => ms >= leastMs && ms <= 90_000)
  const isThere = async (leastMs: number) => {
    await step()
    return pool.driven().has(well) && waits(leastMs).length > 0
  }
  await until('one waits, the other is there', hangMs, () => isThere(60_000))
  rests.length = 0
  pool.restart()
  await until('one still waits, the other is there again', hangMs, () => isThere(31_000))
  expect(connects).toBe(1)
  expect(pool.driven().has(refused)).toBe(false)
  expect(await app.metrics.getSingleMetricAsString('parley_connects_total')).toContain(
    '{outcome="refused"} 1',
  )
  const ofRefused = lines.filter((line) => 'account_id' in line && line.account_id === refused)
  expect(ofRefused).toEqual([
    {
      account_id: refused,
      state: 'connecting',
      outcome: 'refused',
      failures: 0,
      reason: 'Too many connections.',
    },
  ])
  await stop()
})

test('an account whose session the platform ends with a wait connects no sooner', async () => {
  const account_id = await place.account(await place.service.tenant())
  const { app, rests, lines } = restingApp()
  // A sync that the end interrupts has its own line, without a state.
  const changes = () =>
    lines.flatMap((line) =>
      'account_id' in line && line.account_id === account_id && 'state' in line ? [line] : [],
    )
  const platform: Platform = {
    ...place.sandbox.platform,
    connect: async (account, listener) => {
      const outcome = await place.sandbox.platform.connect(account, listener)
      const closed = { status: 'lost', reason: 'Too many connections.', retry_after_seconds: 60 } as const
      if (account.account_id === account_id) {
        const isConnected = () => changes().some((line) => line.state === 'connected')
        void until('it is connected', hangMs, isConnected).then(() => listener.closed(closed))
      }
      return outcome
    },
  }
  const { step, stop } = await openPool({ app, platform })
  await until('it waits', hangMs, async () => {
    await step()
    return rests.some((ms) => ms >= 60_000 && ms <= 90_000)
  })
  expect(await app.metrics.getSingleMetricAsString('parley_sessions_ended_total')).toContain(
    '{reason="lost"} 1',
  )
  expect(changes()).toMatchObject([
    { state: 'connected' },
    { state: 'lost', reason: 'Too many connections.' },
  ])
  await stop()
})

test('an account fetches two at a time of many chats whose history callers wait for', async () => {
  const tenant = await place.service.tenant()
  const account_id = await place.account(tenant)
  const awaited = ['901', '902', '903', '904', '905']
  let asked = 0
  const answers: (() => void)[] = []
  const answerAll = () => {
    for (const answer of answers.splice(0)) answer()
  }
  const platform: Platform = {
    ...place.sandbox.platform,
    connect: async (account, listener) => {
      const outcome = await place.sandbox.platform.connect(account, listener)
      if (outcome.kind !== 'accepted' || account.account_id !== account_id) return outcome
      const history: Session['history'] = async (page) => {
        // The first sync of its own chats runs at the same time.
        if (!awaited.includes(page.chat_id)) return outcome.value.history(page)
        asked++
        await new Promise<void>((resolve) => answers.push(resolve))
        return { kind: 'accepted', value: [] }
      }
      const value = new Proxy(outcome.value, {
        get(target, name) {
          if (name === 'history') return history
          const member = target[name as keyof Session]
          return typeof member === 'function' ? member.bind(target) : member
        },
      })
      return { kind: 'accepted', value }
    },
  }
  const { pool, step, stop } = await openPool({ platform })
  await until('its session is there', hangMs, async () => {
    await step()
    return pool.driven().has(account_id)
  })
  await place.db.run(sql`
    insert into chat_sync (account_id, chat_id, workspace_id, wanted_at)
    select ${account_id}, n, ${tenant.workspace_id}, domain_now() from unnest(${awaited}::bigint[]) as n`)
  const fetchHistory = () => step(1)
  await until('the first two are asked', hangMs, async () => {
    await fetchHistory()
    return asked >= 2
  })
  await fetchHistory()
  expect(asked).toBe(2)
  answerAll()
  await until('the next two are asked', hangMs, async () => {
    await fetchHistory()
    return asked === 4
  })
  expect(asked).toBe(4)
  const answering = setInterval(answerAll, 10)
  await stop()
  clearInterval(answering)
})

test('syncs the account again when updates go missing in a session, without a new connection', async () => {
  const account_id = await place.account(await place.service.tenant())
  let listener: Listener | undefined
  let [connects, lists] = [0, 0]
  const platform: Platform = {
    ...place.sandbox.platform,
    connect: async (account, given) => {
      const outcome = await place.sandbox.platform.connect(account, given)
      if (outcome.kind !== 'accepted' || account.account_id !== account_id) return outcome
      listener = given
      connects++
      const chats: Session['chats'] = (page) => {
        lists++
        return outcome.value.chats(page)
      }
      const value = new Proxy(outcome.value, {
        get(target, name) {
          if (name === 'chats') return chats
          const member = target[name as keyof Session]
          return typeof member === 'function' ? member.bind(target) : member
        },
      })
      return { kind: 'accepted', value }
    },
  }
  const { step, stop } = await openPool({ platform })
  const synced = () =>
    until('the account is synced', hangMs, async () => {
      await step()
      const row = await place.db.maybe(sql`
        select from account_sync s join account_hosts h on h.account_id = s.account_id
        where s.account_id = ${account_id} and s.phase = 'done' and h.gap_since is null`)
      return row !== undefined
    })
  await synced()
  const before = lists
  await listener?.updates({ updates: [{ kind: 'gap', chat_id: null }], position: '0', caught_up: true })
  await synced()
  expect([connects, lists > before]).toEqual([1, true])
  await stop()
})

test('restricts an account before it stores the gap for which it does', async () => {
  const account_id = await place.account(await place.service.tenant())
  let listener: Listener | undefined
  const platform: Platform = {
    ...place.sandbox.platform,
    connect: (account, given) => {
      if (account.account_id === account_id) listener = given
      return place.sandbox.platform.connect(account, given)
    },
  }
  const { step, stop } = await openPool({ platform })
  await until('the account is READY', hangMs, async () => {
    await step()
    return (await place.status(account_id)) === 'READY'
  })
  // A worker that is killed after this batch never reports the end of the session.
  const gap = { kind: 'gap', chat_id: null } as const
  await listener?.updates({ updates: [gap], position: '0', caught_up: false, restricts: 'Missed.' })
  const row = await place.db.one(sql`
    select a.status, a.status_reason, h.gap_since is not null as is_gap
    from accounts a join account_hosts h on h.account_id = a.id where a.id = ${account_id}`)
  expect(row).toEqual({ status: 'RESTRICTED', status_reason: 'Missed.', is_gap: true })
  await stop()
})

test('connects ten of many accounts at a time', async () => {
  const tenant = await place.service.tenant()
  const own = new Set<string>()
  for (let n = 0; n < 14; n++) own.add(await place.account(tenant))
  const waiting: (() => void)[] = []
  let most = 0
  const platform: Platform = {
    ...place.sandbox.platform,
    connect: async (account, listener) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.push(resolve)
      most = Math.max(most, waiting.length)
      await promise
      return place.sandbox.platform.connect(account, listener)
    },
  }
  const { pool, step, stop } = await openPool({ platform })
  await until('ten wait for the platform', hangMs, async () => {
    await step()
    return waiting.length === 10
  })
  await until('all are connected', hangMs, async () => {
    await step()
    waiting.shift()?.()
    return [...own].every((id) => pool.driven().has(id))
  })
  expect(most).toBe(10)
  for (const go of waiting) go()
  await stop()
})
