/** Executes the operations queued for this process's accounts, each once. */

import type { App } from '../app.ts'
import { codeOf, isAway } from '../db/errors.ts'
import type { Loop } from '../loop.ts'
import { attempt, type DrivenAccount, type Ways } from './attempt.ts'
import { enqueued } from './enqueue.ts'
import type { Lanes } from './lanes.ts'
import { listQueued, type QueuedOperation } from './queue.ts'
import { NotStored } from './recording.ts'
import { openStages } from './timings.ts'
import { within } from './within.ts'

/** A process that stops waits this long for its submissions. */
const drainMsMax = 10_000

export interface Driving {
  readonly lanes: Lanes
  readonly driven: () => ReadonlyMap<string, DrivenAccount>
}

export class Ledger {
  readonly loop: Loop = {
    name: 'ledger',
    restMs: 1_000,
    wakeOn: enqueued,
    step: async () => {
      await this.#begin()
      return false
    },
  }
  readonly #app: App
  readonly #ways: Ways
  readonly #driven: () => ReadonlyMap<string, DrivenAccount>
  readonly #lanes: Lanes
  readonly #running = new Set<Promise<void>>()
  #stopping = false
  #beginning = false
  #again = false

  constructor(app: App, ways: Ways, { lanes, driven }: Driving) {
    this.#app = app
    this.#ways = ways
    this.#lanes = lanes
    this.#driven = driven
    openStages(app)
  }

  async stop(): Promise<void> {
    this.#stopping = true
    await within(this.#app.sources, drainMsMax, Promise.all(this.#running)) // guard: drain before the end
    this.#ways.recorder.stop()
  }

  /** Starts what can start now. Called when an operation is queued and when a lane becomes free. */
  async #begin(): Promise<void> {
    if (this.#beginning) {
      this.#again = true
      return
    }
    this.#beginning = true
    try {
      do {
        this.#again = false
        const accounts = this.#stopping ? new Map<string, DrivenAccount>() : this.#driven()
        const free = this.#lanes.free(accounts.keys())
        for (const operation of free.length > 0 ? await listQueued(this.#app.db, free) : []) {
          const account = accounts.get(operation.account_id)
          if (account && !this.#stopping) this.#start(operation, account)
        }
      } while (this.#again)
    } finally {
      this.#beginning = false
    }
  }

  #start(operation: QueuedOperation, account: DrivenAccount): void {
    const release = this.#lanes.take(operation)
    if (!release) return
    const { log } = this.#app
    const work = attempt(this.#app, this.#ways, operation, account)
      .catch((err) => this.#logFailed(operation, err))
      .finally(() => {
        release()
        this.#running.delete(work)
        void this.#begin().catch((err) => log.error({ err }, 'the worker could not read waiting operations'))
      })
    this.#running.add(work)
    account.awaits(work)
  }

  #logFailed({ id: operation_id, account_id }: QueuedOperation, err: unknown): void {
    const cause = err instanceof NotStored ? err.cause : err
    const line = { err, code: codeOf(cause), operation_id, account_id }
    const { log } = this.#app
    if (err instanceof NotStored) log.error(line, 'the worker could not store the outcome of an operation')
    // Every other query runs before the boundary, or reports that it was not crossed.
    else if (isAway(err))
      log.warn(line, 'the database did not respond; the operation was not sent, and its row is read again')
    else log.error(line, 'an operation failed')
  }
}
