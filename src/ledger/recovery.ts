/** Recovers what other processes left open: journals of ended processes, attempts without an owner, late outcomes. */

import type { App } from '../app.ts'
import { toWellFormed } from '../lib/text.ts'
import type { Loop } from '../loop.ts'
import type { DrivenAccount } from './attempt.ts'
import { settled } from './enqueue.ts'
import { noteFlood } from './floods.ts'
import { type JournalFile, listJournals, markReplayed, readJournal } from './journal.ts'
import { markOperations } from './operation-marks.ts'
import {
  completeProven,
  listUnproven,
  noteLookedFor,
  noteProofs,
  takeProven,
  type Unproven,
} from './proofs.ts'
import { listOpen } from './put-back.ts'
import type { Recorder } from './recording.ts'
import { sweep } from './sweep.ts'
import { messageKinds } from './unsent.ts'
import { within } from './within.ts'
import { listEnded } from './workers.ts'

const sweepMs = 1_000
const replayMs = 10_000
const lookMs = 5_000
const historyPage = 50
const historyMsMax = 20_000

/** Any number of processes may run it: each statement names the state it expects. */
export function sweepLoop(): Loop {
  return {
    name: 'sweep',
    restMs: sweepMs,
    async step(app) {
      const swept = await sweep(app)
      const proven = await settleProven(app)
      if (swept + proven > 0) app.wake.signal(settled)
      return proven > 0
    },
  }
}

const provenMax = 100

/** The platform has shown our random id, so the message was sent, once. One that cannot be stored does not hold up the others. */
async function settleProven(app: App): Promise<number> {
  const count = await takeAndComplete(app, provenMax).catch((err) => {
    app.log.error({ err }, 'the worker stores proven outcomes one by one')
    return undefined
  })
  if (count !== undefined) return count
  let alone = 0
  for (let at = 0; at < provenMax; at++) {
    const one = await takeAndComplete(app, 1, at).catch((err) => {
      app.log.error({ err }, 'the worker could not store a proven outcome')
      return 0
    })
    alone += one
  }
  return alone
}

async function takeAndComplete(app: App, limit: number, offset = 0): Promise<number> {
  const completed = await app.db.transaction(async (tx) => {
    const rows = await takeProven(tx, { limit, offset })
    return completeProven(tx, app.operations, rows)
  })
  for (const { id: operation_id, account_id } of completed) {
    app.log.info({ operation_id, account_id }, 'an ambiguous operation is proven: it was sent')
  }
  markOperations(app, completed)
  return completed.length
}

/** Looks for unknown outcomes in the platform's history. Only reads, never sends. */
export function observeLoop({ operations }: App, driven: () => ReadonlyMap<string, DrivenAccount>): Loop {
  const findable = messageKinds(operations)
  return {
    name: 'observe',
    restMs: lookMs,
    async step(app) {
      const accounts = driven()
      if (accounts.size === 0) return false
      const rows = await listUnproven(app.db, { account_ids: [...accounts.keys()], kinds: findable })
      // An account that does not answer holds up only its own look-ups.
      const looks = [...Map.groupBy(rows, ({ account_id }) => account_id)].map(async ([account_id, own]) => {
        const account = accounts.get(account_id)
        if (account) for (const row of own) await lookFor(app, account, row)
      })
      await Promise.all(looks)
      return false
    },
  }
}

async function lookFor(app: App, { session }: DrivenAccount, row: Unproven): Promise<void> {
  const page = session.history({ chat_id: row.chat_id, before: null, limit: historyPage })
  const outcome = await within(app.sources, historyMsMax, page)
  if (outcome?.kind === 'flood_wait') await noteFlood(app.db, row.account_id, outcome)
  if (outcome?.kind !== 'accepted') return noteLookedFor(app.db, row.id, null)
  const own = toWellFormed(outcome.value).filter(({ is_sender }) => is_sender)
  const proven = own.filter(({ random_id }) => random_id === row.random_id) // guard: another message of ours is no proof
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

/** Replaying is harmless: every line is fenced by its token. A file is done once it is replayed and its process has ended. */
export function replayLoop({ directory, worker_id, recorder }: Replay): Loop {
  /** How much of each file was replayed. A live process's journal is read again when it has grown. */
  const replayedSizes = new Map<string, number>()
  return {
    name: 'journals',
    restMs: replayMs,
    async step(app) {
      const files = (await listJournals(directory)).filter(
        (file) => !file.done && file.worker_id !== worker_id,
      )
      if (files.length === 0) return false
      const ended = await listEnded(
        app.db,
        files.map((file) => file.worker_id),
      )
      for (const file of files) {
        const { name, size } = file
        if (replayedSizes.get(name) !== size && (await replay(app, { directory, recorder }, file)))
          replayedSizes.set(name, size)
        // guard: a living journal is not set aside
        if (replayedSizes.get(name) === size && ended.has(file.worker_id)) await markReplayed(directory, file)
      }
      return false
    },
  }
}

interface Replay {
  readonly directory: string
  readonly worker_id: string
  readonly recorder: Recorder
}

/** Replays every journal, including this process's own, after the database went back in time. */
export async function replayAll(app: App, parts: Pick<Replay, 'directory' | 'recorder'>): Promise<void> {
  for (const file of await listJournals(parts.directory)) {
    // guard: a failed replay is no put back
    if (!(await replay(app, parts, file))) throw new Error(`The journal ${file.name} could not be replayed.`)
  }
}

const replayBatch = 1_000

/** False: something could not be stored. One line that fails must not hold up those behind it. */
async function replay(
  app: App,
  { directory, recorder }: Pick<Replay, 'directory' | 'recorder'>,
  file: JournalFile,
): Promise<boolean> {
  let complete = true
  const { entries, damaged } = await readJournal(directory, file)
  if (damaged > 0)
    app.log.error({ file: file.name, damaged }, 'the worker skipped damaged lines of a journal')
  const outcomes = entries.filter((entry) => entry.entry === 'outcome')
  for (let at = 0; at < outcomes.length; at += replayBatch) {
    const batch = new Map(outcomes.slice(at, at + replayBatch).map((entry) => [entry.token, entry]))
    for (const operation of await listOpen(app.db, [...batch.keys()])) {
      const { id, attempt_token: token, public_id } = operation
      const entry = batch.get(token)
      if (!entry) continue
      try {
        await recorder.record({ operation, public_id, token, outcome: entry.outcome, at: entry.at })
        app.log.info(
          { operation_id: id, outcome: entry.outcome.kind },
          'the worker recovered the outcome of an operation from a journal',
        )
      } catch (err) {
        complete = false // guard: a journal that failed is not done
        app.log.error(
          { err, operation_id: id, file: file.name },
          'the worker could not replay a line of a journal',
        )
      }
    }
  }
  return complete
}
