import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { copyDatabase, type TestDatabase } from '../../test/harness/database.ts'
import { until } from '../../test/harness/process.ts'
import { openDatabase } from '../db/pool.ts'
import type { Database } from '../db/sql.ts'
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
  test('wakes the other one, and sends many signals together', async () => {
    const [one, other] = [sharedWake(db), sharedWake(db)]
    let outbox = 0
    let accounts = 0
    other.on(onOutbox, () => outbox++)
    other.on(onAccounts, () => accounts++)
    await until('both listen', 30_000, async () => {
      one.signal(onOutbox)
      await sleep(10)
      return outbox > 0
    })
    await sleep(50)
    outbox = 0
    for (let n = 0; n < 1_000; n++) one.signal(n % 2 === 0 ? onOutbox : onAccounts)
    await until('the wake-up arrives', 30_000, () => outbox > 0 && accounts > 0)
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
      await until('the wake-up arrives', 30_000, async () => {
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
    await until('it hears others', 30_000, async () => {
      other.signal({ topic: 'probe' })
      await sleep(20)
      return probed > 0
    })
    await other.close()
    const command = sharedWake(db)
    command.signal(onAccounts)
    await command.close()
    await until('the wake-up arrives', 30_000, () => received > 0)
    await listener.close()
  })

  test('leaves no connection behind when it is closed while it connects', async () => {
    const wake = sharedWake(db)
    await wake.close()
    await until('every connection is closed', 30_000, async () => (await listeners()) === 0)
  })
})
