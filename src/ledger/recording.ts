/** T3: stores the outcomes of attempts, many in one transaction, and retries until the database has committed them. */

import type { App } from '../app.ts'
import type { AccountKey } from '../contract.ts'
import { codeOf, isAway } from '../db/errors.ts'
import { planOnce, type Tx } from '../db/sql.ts'
import { Gatherer } from '../lib/gatherer.ts'
import type { Operation } from '../operation.ts'
import type { Outcome } from '../platform/port.ts'
import { noteStrike, stopCold } from './account-usage.ts'
import { settled } from './enqueue.ts'
import { type FloodWait, noteFlood } from './floods.ts'
import { answerOf, countUnlisted, endUnlisted, errorName, lockHosts } from './holds.ts'
import type { HeldLease } from './leases.ts'
import { markOperations } from './operation-marks.ts'
import { completeShown } from './proofs.ts'
import {
  type AcceptedOperation,
  complete,
  type Ending,
  lockOperations,
  type Settlement,
  settle,
} from './settle.ts'

const batchMax = 100
const retryMs = { first: 100, most: 3_000 } as const
/** Retrying does not mend a wrong statement: after this many tries the sweep marks the attempt `ambiguous`. */
const triesMax = 5

/** An attempt and its outcome. */
interface AttemptOutcome {
  readonly operation: Operation
  /** The operation's id as callers know it. */
  readonly public_id: string
  readonly token: string
  readonly outcome: Outcome<unknown>
  /** The lease under which the platform was asked. A journal does not know it. */
  readonly held?: HeldLease | undefined
  /** A message with our random id proved the outcome, not the platform's answer. */
  readonly reconciled?: boolean
  /** When a journal recorded the outcome, if it comes from one: a flood wait counts from then. */
  readonly at?: string | undefined
}

/** This process knows an attempt's outcome but could not store it. The journal may supply it, or the sweep calls it unknown. */
export class NotStored extends Error {
  override readonly name = 'NotStored'

  constructor(cause: unknown) {
    super('The outcome of an operation could not be stored.', { cause })
  }
}

/** Whether it is stored; an error says why not. */
type Result = { readonly error?: unknown }

interface RecorderOptions {
  /** Counts an outcome that was stored. */
  readonly count: (kind: string, outcome: string) => void
  /** Marks an account that cannot act until an operator helps. */
  readonly noteTrouble: NoteTrouble
}

type NoteTrouble = (app: App, held: HeldLease, trouble: Trouble) => Promise<unknown>

interface Trouble {
  readonly status: 'needs_login' | 'restricted'
  readonly reason: string
}

export class Recorder {
  readonly #app: App
  readonly #options: RecorderOptions
  readonly #gatherer: Gatherer<AttemptOutcome, Result>
  #stopping = false

  constructor(app: App, options: RecorderOptions) {
    this.#app = app
    this.#options = options
    this.#gatherer = new Gatherer({ most: batchMax, work: (attempts) => this.#recordAll(attempts) })
  }

  /** Resolves once it is committed. */
  async record(attempts: AttemptOutcome): Promise<void> {
    await this.retryUntilStored(attempts.operation.id, async () => {
      const { error } = await this.#gatherer.add(attempts)
      if (error !== undefined) throw error
    })
    this.#options.count(attempts.operation.kind, attempts.outcome.kind)
    this.#app.wake.signal(settled)
    markOperations(this.#app, [attempts.operation])
    const { workspace_id, account_id } = attempts.operation
    if (answerOf(attempts.outcome)) this.#app.wake.mark({ workspace_id, kind: 'accounts', account_id })
  }

  /** A known outcome must not be lost because the database is away. The journal keeps it if the process ends first. */
  async retryUntilStored<T>(operation_id: string, work: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await work()
      } catch (err) {
        if (this.#stopping || (!isAway(err) && tries >= triesMax)) throw new NotStored(err) // guard: tried until stored
        const away = isAway(err)
        const line = { err, code: codeOf(err), operation_id, tries }
        this.#app.log[away ? 'warn' : 'error'](line, 'the worker could not write the ledger; it retries')
        await this.#app.sources.sleep(Math.min(retryMs.first * 2 ** tries, retryMs.most))
      }
    }
  }

  /** Leaves what cannot be stored now to the journal. */
  stop(): void {
    this.#stopping = true
  }

  async #recordAll(attempts: readonly AttemptOutcome[]): Promise<readonly Result[]> {
    await this.#noteTroubles(attempts)
    const results = new Map<AttemptOutcome, Result>()
    // guard: one kind of an account at a time
    for (const together of roundsOf(attempts)) {
      const stored = await this.#recordTogether(together)
      for (const [at, one] of together.entries()) results.set(one, stored[at] ?? {})
    }
    return attempts.map((one) => results.get(one) ?? {})
  }

  /** If the database rejects a batch, stores it row by row, so that one bad row does not hold up the others. */
  async #recordTogether(attempts: readonly AttemptOutcome[]): Promise<readonly Result[]> {
    const whole = await this.#tryToStore(attempts)
    if (whole.error === undefined || attempts.length === 1 || isAway(whole.error))
      return attempts.map(() => whole)
    this.#app.log.warn(
      { err: whole.error, rows: attempts.length },
      'the worker stores a batch of outcomes row by row',
    )
    const results: Result[] = []
    for (const one of attempts) results.push(await this.#tryToStore([one]))
    return results
  }

  #tryToStore(attempts: readonly AttemptOutcome[]): Promise<Result> {
    return this.#app.db
      .transaction((tx) => this.#store(tx, attempts))
      .then(
        () => ({}),
        (error) => ({ error }),
      )
  }

  async #noteTroubles(attempts: readonly AttemptOutcome[]): Promise<void> {
    for (const { held, outcome } of attempts) {
      if (outcome.kind !== 'refused' || !isTrouble(outcome.reason)) continue
      // An outcome from a journal may be older than the present login. The next session asks the platform itself.
      if (held) await this.noteTrouble(held, outcome.reason)
    }
  }

  async noteTrouble(held: HeldLease, reason: Trouble['status']): Promise<void> {
    await this.#options.noteTrouble(this.#app, held, { status: reason, reason })
  }

  /** Locks accounts before operations, as every transaction does. */
  async #store(tx: Tx, attempts: readonly AttemptOutcome[]): Promise<void> {
    const { operations, log, sources } = this.#app
    tx.run(planOnce).catch(() => {}) // If it fails, the next statement fails too.
    const answers = attempts.flatMap(({ operation, outcome }) => {
      const error = operations.get(operation.kind)?.stopped_by === 'sends' ? answerOf(outcome) : undefined // guard: sends alone are counted
      return error === undefined ? [] : [{ id: operation.id, account_id: operation.account_id, error }]
    })
    const hasUnlisted = answers.some(({ error }) => error !== null)
    if (hasUnlisted) await lockHosts(tx, accountsOf(attempts.map(({ operation }) => operation)))
    else if (answers.length > 0) endUnlisted(tx, accountsOf(answers)).catch(() => {}) // guard: an accepted send ends the row
    for (const { operation, outcome, at } of attempts.toSorted(byAccount)) {
      if (outcome.kind !== 'flood_wait') continue
      const retry_after_seconds = secondsLeft(outcome.retry_after_seconds, at, sources.date())
      // A journal of release 0.2 does not say what the wait stops.
      const { stops = 'sends' } = outcome
      await noteFlood(tx, operation.account_id, { stops, retry_after_seconds })
    }
    const accepted = attempts.flatMap((one): AcceptedOperation[] =>
      one.outcome.kind === 'accepted' ? [{ ...one, value: one.outcome.value }] : [],
    )
    const others = attempts.flatMap((one): Settlement[] => {
      const ending = endingOf(one.outcome)
      return ending ? [{ id: one.operation.id, token: one.token, ending }] : []
    })
    const ids = [...others.map(({ id }) => id), ...accepted.map(({ operation }) => operation.id)]
    if (others.length < ids.length && others.length > 0) await lockOperations(tx, ids) // guard: recorded in the order of ids
    const completed = await complete(tx, operations, accepted)
    const rows = await settle(tx, operations, others)
    // The platform may have shown the message before we gave up on its answer: then it is not reported as unknown.
    const shown = await completeShown(tx, operations, rows)
    if (hasUnlisted) {
      const changed = new Set([...completed, ...rows].map(({ id }) => id)) // guard: an answer counts once
      const told = answers.filter(({ id }) => changed.has(id))
      await countUnlisted(
        tx,
        told.map((one) => (shown.has(one.id) ? { ...one, error: null } : one)),
      )
    }
    const outcomes = new Map(attempts.map(({ operation, outcome }) => [operation.id, outcome]))
    // Only for rows that changed: an outcome that is recorded twice counts once.
    for (const { id, account_id, workspace_id, state, reason, detail } of rows) {
      const kind = detail === null ? undefined : strikes.get(detail)
      const outcome = outcomes.get(id)
      const wait = outcome?.kind === 'flood_wait' ? outcome : undefined
      if (kind !== undefined && (!wait || isStrike(wait))) {
        const strike = { kind, seconds: wait?.retry_after_seconds ?? null, operation_id: id }
        await noteStrike(tx, { account_id, workspace_id }, strike)
      }
      if (detail === 'cold_stopped') await stopCold(tx, account_id)
      if (state === 'ambiguous' && !shown.has(id))
        log.warn({ operation_id: id, account_id, reason, detail }, 'the outcome of an operation is unknown')
    }
  }
}

/**
 * One kind per account at a time. Each kind stores its messages and chats in its own statements. With two kinds in one
 * transaction, an update that concerns both locks the chats in their order and would deadlock with it.
 */
function roundsOf(attempts: readonly AttemptOutcome[]): AttemptOutcome[][] {
  const kinds = new Map<string, string[]>()
  const rounds: AttemptOutcome[][] = []
  for (const one of attempts) {
    const { account_id, kind } = one.operation
    const own = kinds.get(account_id) ?? []
    kinds.set(account_id, own)
    if (!own.includes(kind)) own.push(kind)
    const at = own.indexOf(kind)
    const round = rounds[at] ?? []
    rounds[at] = round
    round.push(one)
  }
  return rounds
}

/** Outcomes that count as a strike against the account: the row's detail, and the strike's kind. */
const strikes: ReadonlyMap<string, string> = new Map([
  ...['flood_wait', 'needs_login', 'restricted', 'blocked_by_person'].map((each) => [each, each] as const),
  ['cold_stopped', 'peer_flood'],
])

/** What remains of a flood wait that a journal recorded. */
function secondsLeft(seconds: number, at: string | undefined, now: Date): number {
  if (at === undefined) return seconds
  // If the clock ran ahead when the line was written, the wait is still no longer than the platform said.
  const passed = Math.max(0, now.getTime() - Date.parse(at)) / 1000
  return Math.max(0, Math.ceil(seconds - passed)) // guard: flood wait from its own time
}

function accountsOf(rows: readonly { readonly account_id: string }[]): string[] {
  return [...new Set(rows.map(({ account_id }) => account_id))]
}

function byAccount({ operation: one }: AttemptOutcome, { operation: other }: AttemptOutcome): number {
  return one.account_id < other.account_id ? -1 : 1
}

export function isTrouble(reason: string): reason is 'needs_login' | 'restricted' {
  return reason === 'needs_login' || reason === 'restricted'
}

/** Notes a flood wait that ended a preparation or a look-up. */
export async function noteFloodWait(
  tx: Tx,
  { id, account_id, workspace_id }: AccountKey & { readonly id: string | null },
  wait: FloodWait,
): Promise<void> {
  await noteFlood(tx, account_id, wait)
  if (!isStrike(wait)) return
  const strike = { kind: 'flood_wait', seconds: wait.retry_after_seconds, operation_id: id }
  await noteStrike(tx, { account_id, workspace_id }, strike)
}

/** Platforms make every reader wait now and then; only waits for sends and look-ups count against an account. */
function isStrike({ stops }: FloodWait): boolean {
  return stops !== 'reading' // guard: a wait on reading is no strike
}

/** Undefined when it was accepted: `complete` then stores more than an ending. */
function endingOf(outcome: Outcome<unknown>): Ending | undefined {
  switch (outcome.kind) {
    case 'accepted':
      return undefined
    case 'refused':
      // guard: trouble of the account releases
      if (!isTrouble(outcome.reason) && outcome.reason !== 'cold_stopped')
        return { to: 'refused', refusal: outcome.reason }
      return { to: 'released', reason: 'platform_refused', detail: outcome.reason }
    case 'flood_wait':
      return { to: 'released', reason: 'platform_refused', detail: 'flood_wait' }
    case 'not_written':
      return { to: 'released', reason: 'never_written', detail: outcome.reason }
    case 'unknown': {
      const reason = outcome.reason === 'timeout' ? 'timeout' : 'unknown'
      const { error } = outcome
      return { to: 'ambiguous', reason, detail: error === undefined ? outcome.reason : errorName(error) }
    }
  }
}
