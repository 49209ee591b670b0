/** When a process gives up its accounts: another can do what it cannot, or may already have them. */
import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { until } from '../../test/harness/process.ts'
import { openWorkplace, type Workplace } from '../../test/harness/worker.ts'
import type { Sources } from '../app.ts'
import { sql } from '../db/sql.ts'
import { Echoes } from '../ledger/echoes.ts'
import { leaseSeconds, noteWrites } from '../ledger/leases.ts'
import { noteDrives, noteHeartbeat, noteStopped } from '../ledger/workers.ts'
import { ApiError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import type { AccountRef, Platform, Session } from '../platform/port.ts'
import { AccountPool } from './account-pool.ts'

let place: Workplace
beforeAll(async () => {
  place = await openWorkplace()
})
afterAll(() => place.close())

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
  const far = { ...app, db, metrics: new Registry() }
  const worker_id = newId()
  await noteHeartbeat(app.db, { worker_id, platforms: ['sandbox'] })
  const pool = new AccountPool(far, {
    worker_id,
    platforms: new Map([['sandbox', { ...place.sandbox.platform, gapJitter: 0.4, paceMs: 7 }]]),
    echoes: new Echoes(far),
    instance: () => undefined,
    behind: () => {},
    mayDrive: async () => (await noteDrives(db, worker_id, true)) || true,
    neighbours: async () => [],
  })
  const step = () => pool.loops[0]?.step(far, new AbortController().signal)
  await step()
  await until('its session is there', 30_000, async () => pool.driven().size === 1)
  expect([...pool.driven().values()]).toMatchObject([{ gapJitter: 0.4, paceMs: 7 }])
  away = true
  const now = performance.now.bind(performance)
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + (leaseSeconds + 1) * 1000)
  await expect(step()).rejects.toThrow()
  clock.mockRestore()
  expect(pool.driven().size).toBe(0)
  away = false
  await pool.stop()
  await noteStopped(app.db, worker_id)
})

test('claims accounts, and gives them up while the journal cannot be written', async () => {
  const app = { ...place.service.app, metrics: new Registry() }
  const account_id = await place.account(await place.service.tenant())
  const worker_id = newId()
  let writable = true
  const pool = new AccountPool(app, {
    worker_id,
    platforms: new Map([['sandbox', place.sandbox.platform]]),
    echoes: new Echoes(app),
    instance: () => undefined,
    behind: () => {},
    mayDrive: async () => writable,
    neighbours: async () => [],
  })
  const step = () => pool.loops[0]?.step(app, new AbortController().signal)
  const owner = async () => {
    const { lease_owner } = await place.db.one<{ lease_owner: string | null }>(
      sql`select lease_owner from account_hosts where account_id = ${account_id}`,
    )
    return lease_owner
  }
  await noteHeartbeat(app.db, { worker_id, platforms: ['sandbox'] })
  await step()
  expect(await owner()).toBe(worker_id)
  writable = false
  await step()
  expect(pool.driven()).toEqual(new Map())
  await until('the lease is given back', 5_000, async () => (await owner()) === null)
  await step()
  expect(await owner()).toBe(null)
  await pool.stop()
})

test('knows how far the account had come when commits are lost, including its own lease', async () => {
  const app = { ...place.service.app, metrics: new Registry() }
  const account_id = await place.account(await place.service.tenant())
  const worker_id = newId()
  let noticed = 0
  const pool = new AccountPool(app, {
    worker_id,
    platforms: new Map([['sandbox', place.sandbox.platform]]),
    echoes: new Echoes(app),
    instance: () => undefined,
    behind: () => noticed++,
    mayDrive: async () => true,
    neighbours: async () => [],
  })
  const step = () => pool.loops[0]?.step(app, new AbortController().signal)
  const seen = () => pool.driven().get(account_id)?.held
  await noteHeartbeat(app.db, { worker_id, platforms: ['sandbox'] })
  await step()
  await until('its session is there', 30_000, async () => {
    await step()
    return seen() !== undefined
  })
  const held = seen()
  if (!held) throw new Error('It is not driven.')
  noteWrites(held, '50')
  await place.db.run(sql`
    update account_hosts set writes = 7, lease_owner = null, lease_until = null, lease_epoch = lease_epoch - 1
    where account_id = ${account_id}`)
  await until('it is noticed', 30_000, async () => {
    await step()
    return noticed > 0
  })
  await pool.stop()
  await noteStopped(app.db, worker_id)
})

test('tells a platform whether the lease still holds: while renewals arrive, and not after the session has ended', async () => {
  const app = { ...place.service.app, metrics: new Registry() }
  await place.account(await place.service.tenant())
  const worker_id = newId()
  const refs: AccountRef[] = []
  const platform: Platform = {
    ...place.sandbox.platform,
    connect: (account, listener) => {
      refs.push(account)
      return place.sandbox.platform.connect(account, listener)
    },
  }
  const pool = new AccountPool(app, {
    worker_id,
    platforms: new Map([['sandbox', platform]]),
    echoes: new Echoes(app),
    instance: () => undefined,
    behind: () => {},
    mayDrive: async () => true,
    neighbours: async () => [],
  })
  const step = () => pool.loops[0]?.step(app, new AbortController().signal)
  await noteHeartbeat(app.db, { worker_id, platforms: ['sandbox'] })
  await step()
  await until('its session is there', 30_000, async () => pool.driven().size > 0)
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
  await pool.stop()
  expect(all()).not.toContain(true)
  await noteStopped(app.db, worker_id)
})

test("waits out a platform's whole flood wait before it connects again", async () => {
  const rests: number[] = []
  const { sources } = place.service.app
  const timer: Sources['timer'] = (ms, done) => {
    rests.push(ms)
    return sources.timer(ms, done)
  }
  const app = { ...place.service.app, metrics: new Registry(), sources: { ...sources, timer } }
  await place.account(await place.service.tenant())
  const worker_id = newId()
  const platform: Platform = {
    ...place.sandbox.platform,
    connect: async () => ({ kind: 'flood_wait', retry_after_seconds: 80_000, stops: 'reading' }),
  }
  const pool = new AccountPool(app, {
    worker_id,
    platforms: new Map([['sandbox', platform]]),
    echoes: new Echoes(app),
    instance: () => undefined,
    behind: () => {},
    mayDrive: async () => true,
    neighbours: async () => [],
  })
  await noteHeartbeat(app.db, { worker_id, platforms: ['sandbox'] })
  await pool.loops[0]?.step(app, new AbortController().signal)
  await until('it waits', 30_000, async () => rests.includes(80_000_000))
  await pool.stop()
  await noteStopped(app.db, worker_id)
})

test('an account fetches two at a time of many chats whose history callers wait for', async () => {
  const app = { ...place.service.app, metrics: new Registry() }
  const tenant = await place.service.tenant()
  const account_id = await place.account(tenant)
  const worker_id = newId()
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
        if (page.chat_id < 901) return outcome.value.history(page)
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
  const pool = new AccountPool(app, {
    worker_id,
    platforms: new Map([['sandbox', platform]]),
    echoes: new Echoes(app),
    instance: () => undefined,
    behind: () => {},
    mayDrive: async () => true,
    neighbours: async () => [],
  })
  await noteHeartbeat(app.db, { worker_id, platforms: ['sandbox'] })
  await pool.loops[0]?.step(app, new AbortController().signal)
  await until('its session is there', 30_000, async () => pool.driven().has(account_id))
  await place.db.run(sql`
    insert into chat_sync (account_id, chat_id, workspace_id, wanted_at)
    select ${account_id}, n, ${tenant.workspace_id}, domain_now() from generate_series(901, 905) as n`)
  const step = () => pool.loops[1]?.step(app, new AbortController().signal)
  await step()
  await step()
  expect(asked).toBe(2)
  answerAll()
  await until('the next two are asked', 30_000, async () => {
    await step()
    return asked === 4
  })
  expect(asked).toBe(4)
  const answering = setInterval(answerAll, 10)
  await pool.stop()
  clearInterval(answering)
  await noteStopped(app.db, worker_id)
})
