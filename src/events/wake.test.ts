import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { copyDatabase, type TestDatabase } from '../../test/harness/database.ts'
import { hangMs, until } from '../../test/harness/process.ts'
import { openDatabase } from '../db/pool.ts'
import type { Database } from '../db/sql.ts'
import type { Mark } from '../mark.ts'
import { readNotification, toNotifications } from './mark-batch.ts'
import { localWake, sharedWake } from './wake.ts'

const onOutbox = { topic: 'outbox' }
const onAccounts = { topic: 'accounts' }

let copy: TestDatabase
let db: Database
beforeAll(async () => {
  copy = await copyDatabase()
  db = openDatabase({ connectionString: copy.url }, { pool_size: 2 })
})
afterAll(async () => {
  await db.close()
  await copy.drop()
})

/** The number of connections that listen now. */
async function listeners(): Promise<number> {
  const { rows } = await db.pool.query(`
    select count(*)::int as count from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
      and (query like 'listen%' or query like '%pg_notify%')`)
  return rows[0].count
}

describe('within one process', () => {
  test('wakes the listeners of the topic until they stop', () => {
    const wake = localWake()
    const received: string[] = []
    const off = wake.on(onOutbox, () => received.push('outbox'))
    wake.on(onAccounts, () => received.push('accounts'))
    wake.signal(onOutbox)
    off()
    wake.signal(onOutbox)
    wake.signal(onAccounts)
    expect(received).toEqual(['outbox', 'accounts'])
  })
})

describe('between processes', () => {
  test('one that does not send is woken by another, gets its marks, and sends nothing itself', async () => {
    const [service, command] = [sharedWake(db, { sends: false }), sharedWake(db)]
    const received: string[] = []
    service.on(onOutbox, () => received.push('outbox'))
    service.onMarks((marks) => received.push(...marks.map(({ kind }) => kind)))
    command.on(onAccounts, () => received.push('sent'))
    command.onMarks((marks) => received.push(...marks.map(({ kind }) => `sent ${kind}`)))
    await until('both listen', hangMs, async () => (await listeners()) === 2)
    service.signal(onAccounts)
    service.mark({ workspace_id: null, kind: 'instance' })
    command.signal(onOutbox)
    command.mark({ workspace_id: null, kind: 'gates' })
    await until(
      'it has received both',
      hangMs,
      () => received.includes('outbox') && received.includes('gates'),
    )
    // Whatever the service would send goes out before it closes.
    await service.close()
    await command.close()
    expect(received.toSorted()).toEqual(['gates', 'instance', 'outbox', 'sent gates'])
  })

  test('wakes the other one, and sends many signals together', async () => {
    const [one, other] = [sharedWake(db), sharedWake(db)]
    let outbox = 0
    let accounts = 0
    other.on(onOutbox, () => outbox++)
    other.on(onAccounts, () => accounts++)
    await until('both listen', hangMs, async () => {
      one.signal(onOutbox)
      await sleep(10)
      return outbox > 0
    })
    await sleep(50)
    outbox = 0
    for (let n = 0; n < 1_000; n++) one.signal(n % 2 === 0 ? onOutbox : onAccounts)
    await until('the wake-up arrives', hangMs, () => outbox > 0 && accounts > 0)
    await sleep(50)
    expect(outbox).toBe(1)
    expect(accounts).toBe(1)
    await one.close()
    await other.close()
  })

  test('reconnects after its connection was cut', async () => {
    const [one, other] = [sharedWake(db), sharedWake(db)]
    let received = 0
    other.on(onAccounts, () => received++)
    const untilHeard = async () => {
      received = 0
      await until('the wake-up arrives', hangMs, async () => {
        one.signal(onAccounts)
        await sleep(20)
        return received > 0
      })
    }
    await untilHeard()
    await db.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and usename = current_user and pid <> pg_backend_pid()`,
    )
    await untilHeard()
    await one.close()
    await other.close()
  })

  test('sends the last signals before it closes, as a command does that made a change', async () => {
    const listener = sharedWake(db)
    let received = 0
    listener.on(onAccounts, () => received++)
    // Connections of other tests that are about to end are also listed as listening: it listens once it receives.
    const other = sharedWake(db)
    let probed = 0
    listener.on({ topic: 'probe' }, () => probed++)
    await until('it hears others', hangMs, async () => {
      other.signal({ topic: 'probe' })
      await sleep(20)
      return probed > 0
    })
    await other.close()
    const command = sharedWake(db)
    command.signal(onAccounts)
    await command.close()
    await until('the wake-up arrives', hangMs, () => received > 0)
    await listener.close()
  })

  test('leaves no connection behind when it is closed while it connects', async () => {
    const wake = sharedWake(db)
    await wake.close()
    await until('every connection is closed', hangMs, async () => (await listeners()) === 0)
  })
})

describe('marks', () => {
  const workspace_id = '0199a1f0-0000-7000-8000-000000000001'
  const others = '0199a1f0-0000-7000-8000-000000000002'
  const inChat = (n: number, workspace = workspace_id): Mark => ({
    workspace_id: workspace,
    kind: 'messages',
    account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
    chat_id: `platform:chat:${n}`,
  })
  const many = (count: number) => Array.from({ length: count }, (_, n) => inChat(n))

  test('of a few milliseconds arrive together, equal ones once', async () => {
    const wake = localWake()
    const received: (readonly Mark[])[] = []
    wake.onMarks((marks) => received.push(marks))
    wake.mark(inChat(1), inChat(2))
    wake.mark(inChat(1))
    await until('they arrive', hangMs, () => received.length > 0)
    expect(received).toEqual([[inChat(1), inChat(2)]])
  })

  test('the last presence of a user counts', async () => {
    const wake = localWake()
    const received: Mark[] = []
    wake.onMarks((marks) => received.push(...marks))
    const presence = { ...inChat(1), kind: 'presence', user_id: others } as const
    wake.mark({ ...presence, state: 'typing' }, { ...presence, state: 'gone' })
    await wake.close()
    expect(received).toEqual([{ ...presence, state: 'gone' }])
  })

  test('of a workspace beyond 100 become one, and those of another stay', async () => {
    const wake = localWake()
    const received: Mark[] = []
    wake.onMarks((marks) => received.push(...marks))
    wake.mark(...many(100))
    await wake.close()
    expect(received.splice(0)).toEqual(many(100))
    wake.mark(...many(101), inChat(500), inChat(1, others))
    await wake.close()
    expect(received).toEqual([{ workspace_id, kind: 'everything' }, inChat(1, others)])
  })

  test('travel to the other process in notifications that PostgreSQL accepts, and come back to none', async () => {
    const [one, other] = [sharedWake(db), sharedWake(db)]
    const here: Mark[] = []
    const there: Mark[] = []
    one.onMarks((marks) => here.push(...marks))
    other.onMarks((marks) => there.push(...marks))
    await until('both listen', hangMs, async () => {
      one.mark({ workspace_id: others, kind: 'keys' })
      await sleep(30)
      return there.length > 0
    })
    const ofOurs = (marks: readonly Mark[]) => marks.filter((mark) => mark.workspace_id === workspace_id)
    one.mark(...many(100))
    await until('all arrive', hangMs, () => ofOurs(there).length >= 100)
    other.mark({ workspace_id, kind: 'notes' })
    await until('the answer arrives', hangMs, () => here.some(({ kind }) => kind === 'notes'))
    expect(ofOurs(there)).toEqual([...many(100), { workspace_id, kind: 'notes' }])
    expect(ofOurs(here)).toEqual([...many(100), { workspace_id, kind: 'notes' }])
    await one.close()
    await other.close()
  })

  test('everything may have changed after the connection was cut', async () => {
    const wake = sharedWake(db)
    const received: Mark[] = []
    wake.onMarks((marks) => received.push(...marks))
    await until('it listens', hangMs, async () => (await listeners()) > 0)
    await until('it says so', hangMs, async () => {
      await db.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and usename = current_user and pid <> pg_backend_pid()`,
      )
      await sleep(50)
      return received.length > 0
    })
    expect(received[0]).toEqual({ workspace_id: null, kind: 'everything' })
    await wake.close()
  })

  test('fill notifications below 8,000 bytes', () => {
    const marks = many(1_000)
    const payloads = toNotifications('0199a1f0-0000-7000-8000-000000000003', marks)
    const longest = Math.max(...payloads.map((payload) => Buffer.byteLength(payload)))
    expect(longest).toBeLessThan(8_000)
    expect(longest).toBeGreaterThan(7_000)
    expect(payloads.flatMap((payload) => readNotification(payload).marks)).toEqual(marks)
    expect(readNotification('not ours')).toEqual({ origin: '', marks: [] })
  })
})
