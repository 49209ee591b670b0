/** What the log says about operations while the database is unreachable: which, why, and at the right level. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LedgerRows } from '../../test/harness/ledger-rows.ts'
import { openWorkplace, type Workplace } from '../../test/harness/worker.ts'
import type { App } from '../app.ts'
import { noteTrouble } from '../capabilities/accounts/accounts.ts'
import { makeLogger } from '../cli/log.ts'
import { LostCommit } from '../db/errors.ts'
import type { Database } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import type { Session } from '../platform/port.ts'
import type { DrivenAccount } from './attempt.ts'
import { operationBoundary } from './boundary.ts'
import { Echoes } from './echoes.ts'
import { type Journal, openJournal } from './journal.ts'
import { Lanes } from './lanes.ts'
import { Ledger } from './ledger.ts'
import { Recorder } from './recording.ts'

let place: Workplace
let rows: LedgerRows
let journal: Journal
beforeAll(async () => {
  place = await openWorkplace()
  rows = new LedgerRows(place.service, await place.service.tenant())
  journal = await openJournal(place.directory, newId())
})
afterAll(async () => {
  await journal.close()
  await place.close()
})

type Line = Record<'level' | 'msg' | 'code' | 'operation_id', string>

/** One round of the ledger on a database that fails in a given way, and what the log says about it. */
async function run(change: (db: Database) => Partial<Database>, kind: string) {
  const { app } = rows
  const lines: Line[] = []
  const db: Database = { ...app.db, ...change(app.db) }
  const log = makeLogger('info', { write: (line) => void lines.push(JSON.parse(line)) })
  const changed: App = { ...app, db, log }
  const held = await rows.account()
  const id = await rows.operation(held, { kind })
  const driven: DrivenAccount = { held, session: {} as Session, awaits: () => {}, gapJitter: 0, paceMs: 0 }
  const instance = await rows.instance()
  const ways = {
    boundary: operationBoundary(changed, { instance: () => instance, behind: () => {} }),
    journal,
    recorder: new Recorder(changed, { count: () => {}, noteTrouble }),
    echoes: new Echoes(changed),
  }
  const ledger = new Ledger(changed, ways, {
    lanes: new Lanes(),
    driven: () => new Map([[held.account_id, driven]]),
  })
  await ledger.loop.step(changed, new AbortController().signal)
  await ledger.stop()
  return {
    id,
    lines: lines.map(({ level, msg, code, operation_id }) => ({ level, msg, code, operation_id })),
  }
}

test('warns about an unsent operation whose COMMIT is lost, and leaves its row unchanged', async () => {
  let losing = true
  const { id, lines } = await run((db) => {
    return {
      async transaction(work) {
        const result = await db.transaction(work)
        if (!losing) return result
        losing = false
        throw new LostCommit('The answer to COMMIT was lost.')
      },
    }
  }, 'nobody_knows_this')
  const msg = 'the database did not respond; the operation was not sent, and its row is read again'
  expect(lines).toEqual([{ level: 'warn', msg, code: 'lost_commit', operation_id: id }])
  expect(await rows.row(id)).toMatchObject({ state: 'released', reason: 'unknown_kind' })
})

test("warns with the operation's name when the answers of the boundary and of the release's COMMIT are lost", async () => {
  let losses = 1
  const { id, lines } = await run((db) => {
    return {
      async rows(statement) {
        const found = await db.rows(statement)
        if (!statement.text.includes('accounts_given')) return found as never
        throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
      },
      async transaction(work) {
        const result = await db.transaction(work)
        if (losses-- > 0) throw new LostCommit('The answer to COMMIT was lost.')
        return result
      },
    }
  }, 'send_message')
  expect(lines.filter(({ level }) => level === 'error')).toEqual([])
  expect(lines.filter(({ operation_id }) => operation_id === id)).toEqual([
    {
      level: 'warn',
      msg: 'the database did not respond at the boundary; nothing was sent',
      code: 'lost_commit',
      operation_id: id,
    },
    {
      level: 'warn',
      msg: 'the worker could not write the ledger; it retries',
      code: 'lost_commit',
      operation_id: id,
    },
  ])
  expect(await rows.row(id)).toMatchObject({ state: 'released', reason: 'never_written' })
})
