/** What others left open: journals of processes that have ended, attempts without an owner, outcomes that show up late. */
import { forgetOperations, listOpen, sweep } from '../access/ledger/boundary.ts'
import { settled } from '../access/ledger/enqueue.ts'
import { forgetFiles } from '../access/ledger/files.ts'
import { noteFlood } from '../access/ledger/floods.ts'
import {
  completeProven,
  listProven,
  listUnproven,
  noteLookedFor,
  noteProofs,
  type Proven,
  type Unproven,
} from '../access/ledger/proofs.ts'
import type { App } from '../app.ts'
import { type Db, sql } from '../db/sql.ts'
import { toWellFormed } from '../lib/text.ts'
import type { Loop } from '../loop.ts'
import type { OperationKinds } from '../operation.ts'
import { type JournalFile, listJournals, markReplayed, readJournal } from './journal.ts'
import type { Driven, Ledger } from './ledger.ts'
import { within } from './within.ts'

const sweepMs = 1_000
const replayMs = 10_000
const lookMs = 5_000
const forgetMs = 60_000
const historyPage = 50
const historyMsMax = 20_000
/** A worker that has not beaten for this long has ended: its journal will not grow any more. */
const silentSeconds = 30

/** Any process, any number of them: each statement says what it expects to find. */
export function sweepLoop(kinds: OperationKinds): Loop {
  return {
    name: 'sweep',
    restMs: sweepMs,
    async step(app) {
      const swept = await sweep(app.db)
      const proven = await settleProven(app, kinds)
      if (swept + proven > 0) app.wake.signal(settled)
      return proven > 0
    },
  }
}

export function forgetLoop(): Loop {
  return {
    name: 'forget',
    restMs: forgetMs,
    async step({ db }) {
      await forgetFiles(db)
      await forgetOperations(db)
      return false
    },
  }
}

/** The platform has shown our random id: it was sent, once. One that cannot be stored does not hold up the others. */
async function settleProven(app: App, kinds: OperationKinds): Promise<number> {
  let count = 0
  for (const row of await listProven(app.db)) {
    const { id: operation_id, account_id } = row
    try {
      if (await settleOne(app, kinds, row)) count++
      app.log.info({ operation_id, account_id }, 'an unknown outcome is known: it was sent')
    } catch (err) {
      app.log.error({ err, operation_id, account_id }, 'an outcome that is known could not be stored')
    }
  }
  return count
}

async function settleOne(app: App, kinds: OperationKinds, row: Proven): Promise<boolean> {
  const kind = kinds.get(row.kind)
  if (!kind) return false
  const sent = { message_id: row.message_id, at: row.at.toISOString() }
  const known = { ...row, id: row.public_id }
  return app.db.transaction(async (tx) => {
    if (!(await completeProven(tx, row.id, await kind.reply(tx, known, sent)))) return false
    await kind.store(tx, row, row, sent)
    kind.count(tx, row, row)
    return true
  })
}

/** Looks in the platform's history for what nobody knows of. Reading only, never sending. */
export function observeLoop(kinds: OperationKinds, driven: () => ReadonlyMap<string, Driven>): Loop {
  const findable = [...kinds.values()].filter((one) => one.found_in_history).map(({ kind }) => kind)
  return {
    name: 'observe',
    restMs: lookMs,
    async step(app) {
      const accounts = driven()
      if (accounts.size === 0) return false
      const rows = await listUnproven(app.db, { account_ids: [...accounts.keys()], kinds: findable })
      // One account that does not answer holds up its own look-ups only.
      const looks = [...Map.groupBy(rows, ({ account_id }) => account_id)].map(async ([account_id, own]) => {
        const account = accounts.get(account_id)
        if (account) for (const row of own) await lookFor(app, account, row)
      })
      await Promise.all(looks)
      return false
    },
  }
}

async function lookFor(app: App, { session }: Driven, row: Unproven): Promise<void> {
  const page = session.history({ chat_id: row.chat_id, before: null, limit: historyPage })
  const outcome = await within(historyMsMax, page)
  if (outcome?.kind === 'flood_wait') await noteFlood(app.db, row.account_id, outcome.retry_after_seconds)
  if (outcome?.kind !== 'accepted') return noteLookedFor(app.db, row.id, null)
  const own = toWellFormed(outcome.value).filter(({ is_sender }) => is_sender)
  const proven = own.filter(({ random_id }) => random_id === row.random_id)
  await noteProofs(
    app.db,
    row.account_id,
    proven.map(({ id, timestamp }) => ({ random_id: row.random_id, message_id: id, at: timestamp })),
  )
  const alike = own.find(
    ({ random_id, text, timestamp }) =>
      random_id === null && text === row.text && Date.parse(timestamp) >= row.created_at.getTime() - 1_000,
  )
  await noteLookedFor(app.db, row.id, alike?.id ?? null)
}

/** Replaying is harmless: every line is fenced by its token. A file is done once its process has ended. */
export function replayLoop(directory: string, own: string, ledger: Ledger): Loop {
  /** How much of each file has been told; the journal of a process that lives is read again when it has grown. */
  const told = new Map<string, number>()
  return {
    name: 'journals',
    restMs: replayMs,
    async step(app) {
      const files = (await listJournals(directory)).filter(
        ({ done, worker_id }) => !done && worker_id !== own,
      )
      if (files.length === 0) return false
      const ended = await listEnded(app.db, files)
      for (const file of files) {
        const { name, size, worker_id } = file
        if (told.get(name) !== size && (await replay(app, directory, file, ledger))) told.set(name, size)
        if (told.get(name) === size && ended.has(worker_id)) await markReplayed(directory, file)
      }
      return false
    },
  }
}

/** Workers that are not known any more have ended long ago. */
async function listEnded(db: Db, files: readonly JournalFile[]): Promise<Set<string>> {
  const ids = files.map(({ worker_id }) => worker_id)
  const alive = await db.rows<{ id: string }>(sql`
    select id from workers where id = any(${ids}::uuid[]) and stopped_at is null
      and beat_at > clock_timestamp() - make_interval(secs => ${silentSeconds})`)
  return new Set(ids.filter((id) => !alive.some((worker) => worker.id === id)))
}

/** After the database went back in time every journal speaks again, this process's own as well. */
export async function replayAll(app: App, directory: string, ledger: Ledger): Promise<void> {
  for (const file of await listJournals(directory)) await replay(app, directory, file, ledger)
}

const replayBatch = 1_000

/** False: something could not be written. One line that fails must not silence those behind it. */
async function replay(app: App, directory: string, file: JournalFile, ledger: Ledger): Promise<boolean> {
  let told = true
  const entries = await readJournal(directory, file)
  const outcomes = entries.filter((entry) => entry.entry === 'outcome')
  for (let at = 0; at < outcomes.length; at += replayBatch) {
    const batch = new Map(outcomes.slice(at, at + replayBatch).map((entry) => [entry.token, entry.outcome]))
    for (const operation of await listOpen(app.db, [...batch.keys()])) {
      const { id, attempt_token: token, account_id, workspace_id } = operation
      const outcome = batch.get(token)
      if (!outcome) continue
      const held = { worker_id: '', epoch: '0', account_id, workspace_id }
      try {
        await ledger.conclude({ ...operation, id: operation.public_id }, held, { id, token }, outcome)
        app.log.info({ operation_id: id, outcome: outcome.kind }, 'a journal told how an operation ended')
        app.wake.signal(settled)
      } catch (err) {
        told = false
        app.log.error({ err, operation_id: id, file: file.name }, 'a line of a journal could not be replayed')
      }
    }
  }
  return told
}
