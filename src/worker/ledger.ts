/**
 * Executes operations, each once: re-check and boundary in one statement, a line in the journal, the deadline, the one
 * call, and what was learnt. What fails before the boundary has not happened; what fails after it is never repeated.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { noteStrike } from '../access/ledger/account-usage.ts'
import {
  type Attempt,
  attemptSeconds,
  completeAttempt,
  crossBoundary,
  type Held,
  listQueued,
  releaseNeverSent,
  settleAttempt,
  settleQueued,
  settleUncrossed,
} from '../access/ledger/boundary.ts'
import { enqueued, settled as settledTopic } from '../access/ledger/enqueue.ts'
import { noteFlood } from '../access/ledger/floods.ts'
import { holdsLease } from '../access/ledger/leases.ts'
import type { App } from '../app.ts'
import { noteTrouble } from '../capabilities/accounts/accounts.ts'
import { LostCommit } from '../db/errors.ts'
import { ApiError } from '../lib/errors.ts'
import { toWellFormed } from '../lib/text.ts'
import type { Loop } from '../loop.ts'
import type { Forbidden, Operation, OperationKind, OperationKinds, Submit } from '../operation.ts'
import type { Outcome, Session } from '../platform/port.ts'
import type { Journal } from './journal.ts'
import { within } from './within.ts'

/** From before the boundary to the call: a process that was held up for longer does not submit. */
const submitMsMax = 10_000 // limit: from boundary to call
/** How long the platform may take; after that nobody knows, and a late answer is still welcome. */
const answerMsMax = { text: 20_000, file: 100_000 } as const // limit: answer of the platform
const prepareMsMax = { text: 15_000, file: 100_000 } as const
/** One account does several things at once, but only one in each chat, so that they arrive in order. */
const atOnceMax = 4
/** Files pass through this process in pieces; few at a time, so that its memory stays small. */
const filesAtOnceMax = 2
const retryMs = { first: 100, most: 3_000 } as const
const uncrossedMs = 500
/** A statement that is wrong does not become right: then the sweep says that nobody knows. */
const triesMax = 5
/** A process that stops waits this long for what it has submitted. */
const drainMsMax = 10_000

/** An account with a session, driven by this process. */
export interface Driven {
  readonly held: Held
  readonly session: Session
  /** The session stays open for this, at least for a while, when the account goes to another process. */
  readonly awaits: (work: Promise<unknown>) => void
}

export interface LedgerOptions {
  readonly kinds: OperationKinds
  readonly driven: () => ReadonlyMap<string, Driven>
  readonly journal: Journal
  /** The highest restore counter of the database that this process has seen. */
  readonly restoreCounter: () => string
  readonly settled: (kind: string, state: string) => void
}

export interface Ledger {
  readonly loop: Loop
  /** What a journal remembers is as good as an answer. */
  conclude(operation: Operation, held: Held, attempt: Attempt, outcome: Outcome<unknown>): Promise<void>
  stop(): Promise<void>
}

export function makeLedger(
  app: App,
  { kinds, driven, journal, restoreCounter, settled }: LedgerOptions,
): Ledger {
  const running = new Map<string, Promise<void>>()
  const lanes = new Map<string, Set<string>>()
  let files = 0
  let stopping = false
  let pumping = false
  let again = false

  /** Takes what can be taken now. Called when a wish comes and when a lane is free again. */
  async function pump(): Promise<void> {
    if (pumping) {
      again = true
      return
    }
    pumping = true
    try {
      do {
        again = false
        const accounts = stopping ? new Map<string, Driven>() : driven()
        const free = [...accounts.keys()].filter((id) => (lanes.get(id)?.size ?? 0) < atOnceMax)
        for (const operation of free.length > 0 ? await listQueued(app.db, free) : []) {
          const account = accounts.get(operation.account_id)
          if (account && !stopping) begin(operation, account)
        }
      } while (again)
    } finally {
      pumping = false
    }
  }

  function begin(operation: Operation, account: Driven): void {
    const { id, account_id } = operation
    const lane = operation.chat_id ?? id
    const taken = lanes.get(account_id) ?? new Set()
    if (running.has(id) || taken.has(lane) || taken.size >= atOnceMax) return
    const file = operation.file_id !== null
    if (file && files >= filesAtOnceMax) return
    if (file) files++
    lanes.set(account_id, taken.add(lane))
    const work = execute(operation, account)
      .catch((err) => app.log.error({ err, operation_id: id, account_id }, 'an operation failed'))
      .finally(() => {
        running.delete(id)
        taken.delete(lane)
        if (file) files--
        app.wake.signal(settledTopic)
        void pump().catch((err) => app.log.error({ err }, 'waiting operations could not be read'))
      })
    running.set(id, work)
    account.awaits(work)
  }

  async function execute(operation: Operation, { held, session }: Target): Promise<void> {
    const size = operation.file_id === null ? 'text' : 'file'
    const kind = kinds.get(operation.kind)
    if (!kind) return settleQueued(app.db, operation.id, { reason: 'unknown_kind' })
    if (kind.asks(operation) && !(await mayAsk(operation, held))) return
    const prepared = await within(prepareMsMax[size], prepare(kind, operation, { held, session }))
    if (prepared?.kind !== 'accepted') return settleUnprepared(operation, held, prepared)
    const attempt = { id: operation.id, token: randomUUID() }
    // Before the boundary, so that a pause anywhere after it counts.
    const startedAt = performance.now() // guard: clock starts before the boundary
    // crash point 3a: it is prepared, the boundary is not crossed
    const crossed = await cross(held, attempt, attemptSeconds[size])
    if (crossed === 'unknown') return
    if (crossed === 'no') {
      // For another host, or for a better moment: asked again at once it would be prepared again and again.
      if (!(await settleUncrossed(app.db, held, operation.id))) await sleep(uncrossedMs)
      return
    }
    // crash point 5: the boundary is committed, the journal is not written
    const intended = await intend(operation, attempt) // guard: journal before call
    // crash point 12: the journal is written, the deadline is not checked
    // guard: deadline
    if (!intended || performance.now() - startedAt > submitMsMax) {
      const detail = intended ? 'deadline' : 'journal'
      return conclude(operation, held, attempt, { kind: 'not_written', reason: detail })
    }
    // crash point 5a: the journal is written, nothing is submitted
    const answer = ask(prepared.value)
    const outcome = await within(answerMsMax[size], answer)
    // crash point 7: the answer is read, nothing is recorded
    // guard: no answer is unknown
    await conclude(operation, held, attempt, outcome ?? { kind: 'unknown', reason: 'timeout' })
    if (!outcome) {
      void answer
        .then((late) => conclude(operation, held, attempt, late))
        .then(() => app.wake.signal(settledTopic))
        .catch((err) => app.log.error({ err, operation_id: operation.id }, 'a late answer was lost'))
    }
  }

  /** What asks the platform before the boundary must be ours to ask and welcome there, too. */
  async function mayAsk({ id }: Operation, held: Held): Promise<boolean> {
    if (await settleUncrossed(app.db, held, id)) return false
    if (await holdsLease(app.db, held.worker_id, held)) return true
    await sleep(uncrossedMs)
    return false
  }

  /** What fails here has cost nothing; the caller may try again. */
  async function prepare(
    kind: OperationKind,
    operation: Operation,
    { held, session }: Target,
  ): Promise<Prepared> {
    try {
      return await kind.prepare({ app, account: held, session }, operation)
    } catch (err) {
      app.log.error({ err, operation_id: operation.id }, 'an operation could not be prepared')
      return { kind: 'not_written', reason: 'preparation failed' }
    }
  }

  /** Nothing has happened yet, so nothing can be unknown. */
  async function settleUnprepared(
    { id }: Operation,
    held: Held,
    outcome: Exclude<Prepared, { kind: 'accepted' }> | undefined,
  ): Promise<void> {
    if (outcome?.kind === 'refused') {
      const { reason } = outcome
      if (reason !== 'needs_login' && reason !== 'restricted')
        return settleQueued(app.db, id, { refused: reason })
      await noteTrouble(app, held.account_id, { status: reason, reason })
      return settleQueued(app.db, id, { detail: reason })
    }
    // A session that was closed because the account is somebody else's by now: it is theirs to do.
    const lost = outcome === undefined || outcome.kind === 'not_written' || outcome.kind === 'unknown'
    if (lost && !(await holdsLease(app.db, held.worker_id, held))) return
    if (outcome?.kind === 'flood_wait') await noteFloodWait(held, id, outcome.retry_after_seconds)
    const detail = outcome?.kind === 'forbidden' ? outcome.detail : (outcome?.kind ?? 'timeout')
    await settleQueued(app.db, id, { detail })
  }

  /** When the answer is lost the row may be `submitting`: nothing is sent, and that is said until it is heard. */
  async function cross(held: Held, attempt: Attempt, seconds: number): Promise<'yes' | 'no' | 'unknown'> {
    try {
      return (await crossBoundary(app.db, held, { ...attempt, restore_counter: restoreCounter(), seconds }))
        ? 'yes'
        : 'no'
    } catch (err) {
      app.log.warn({ err, operation_id: attempt.id }, 'the boundary gave no answer; nothing is sent')
      // crash point 4: the answer to COMMIT is lost, its owner has not said that nothing is sent
      await retryUntilStored(() => releaseNeverSent(app.db, attempt)) // guard: lost commit is released
      return 'unknown' // guard: lost commit is not sent
    }
  }

  async function intend(operation: Operation, { token }: Attempt): Promise<boolean> {
    const { id, workspace_id, kind, account_id, chat_id, random_id, idempotency_key: key } = operation
    const fingerprint = operation.fingerprint.toString('hex')
    try {
      await journal.intend({
        id,
        token,
        workspace_id,
        kind,
        account_id,
        chat_id,
        random_id,
        key,
        fingerprint,
      })
      return true
    } catch (err) {
      app.log.error({ err, operation_id: id }, 'the journal cannot be written; nothing is sent')
      return false
    }
  }

  async function conclude(
    operation: Operation,
    held: Held,
    attempt: Attempt,
    outcome: Outcome<unknown>,
  ): Promise<void> {
    const sound = toWellFormed(outcome)
    // crash point 10: the outcome is read, the journal does not know it
    await journal.conclude({ ...attempt, outcome: sound }).catch((err) => {
      app.log.warn({ err, operation_id: attempt.id }, 'an outcome could not be written to the journal')
    })
    // crash point 8: the outcome is in the journal, the row does not know it
    await record(operation, held, attempt, sound)
  }

  /** T3, until the database has taken it. */
  async function record(
    operation: Operation,
    held: Held,
    attempt: Attempt,
    outcome: Outcome<unknown>,
  ): Promise<void> {
    const { db } = app
    const detail =
      outcome.kind === 'not_written' || outcome.kind === 'unknown' ? outcome.reason : outcome.kind
    switch (outcome.kind) {
      case 'accepted':
        await retryUntilStored(() => complete(operation, held, attempt, outcome.value))
        break
      case 'refused':
        await retryUntilStored(() => refuse(operation, held, attempt, outcome.reason))
        break
      case 'flood_wait':
        await retryUntilStored(() => noteFloodWait(held, operation.id, outcome.retry_after_seconds))
        await retryUntilStored(() =>
          settleAttempt(db, attempt, { kind: 'released', reason: 'platform_refused', detail }),
        )
        break
      case 'not_written':
        await retryUntilStored(() =>
          settleAttempt(db, attempt, { kind: 'released', reason: 'never_written', detail }),
        )
        break
      case 'unknown': {
        const reason = detail === 'timeout' ? 'timeout' : 'unknown'
        await retryUntilStored(() => settleAttempt(db, attempt, { kind: 'ambiguous', reason, detail }))
        const { account_id } = held
        app.log.warn({ operation_id: operation.id, account_id, reason: detail }, 'an outcome is unknown')
      }
    }
    settled(operation.kind, outcome.kind)
  }

  async function complete(operation: Operation, held: Held, attempt: Attempt, value: unknown): Promise<void> {
    const kind = kinds.get(operation.kind)
    if (!kind) return
    await app.db.transaction(async (tx) => {
      const reply = await kind.reply(tx, operation, value)
      const [first] = await Promise.all([
        completeAttempt(tx, attempt, reply),
        kind.store(tx, held, operation, value),
      ])
      if (first) kind.count(tx, held, operation)
    })
  }

  async function refuse(
    operation: Operation,
    held: Held,
    attempt: Attempt,
    reason: Extract<Outcome<never>, { kind: 'refused' }>['reason'],
  ): Promise<void> {
    const { db } = app
    if (reason === 'needs_login' || reason === 'restricted') {
      await noteTrouble(app, held.account_id, { status: reason, reason })
      await noteStrike(db, held, { kind: reason, seconds: null, operation_id: operation.id })
      await settleAttempt(db, attempt, { kind: 'released', reason: 'platform_refused', detail: reason })
      return
    }
    const settledNow = await settleAttempt(db, attempt, { kind: 'refused', refusal: reason })
    if (settledNow && reason === 'blocked_by_person') {
      await noteStrike(db, held, { kind: reason, seconds: null, operation_id: operation.id })
    }
  }

  async function noteFloodWait(held: Held, operation_id: string, seconds: number): Promise<void> {
    await noteFlood(app.db, held.account_id, seconds)
    await noteStrike(app.db, held, { kind: 'flood_wait', seconds, operation_id })
    app.log.warn({ account_id: held.account_id, operation_id, seconds }, 'the platform asks to slow down')
  }

  /** What is known must not be lost because the database is away. The journal keeps it if the process ends first. */
  async function retryUntilStored(work: () => Promise<unknown>): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await work()
        return
      } catch (err) {
        app.log.error({ err, tries }, 'the ledger could not be written')
        if (stopping || (!isAway(err) && tries >= triesMax)) throw err
        await sleep(Math.min(retryMs.first * 2 ** tries, retryMs.most))
      }
    }
  }

  return {
    loop: {
      name: 'ledger',
      restMs: 1_000,
      wakeOn: enqueued,
      async step() {
        await pump()
        return false
      },
    },
    conclude: record,
    async stop() {
      stopping = true
      await within(drainMsMax, Promise.all(running.values()))
    },
  }
}

function isAway(error: unknown): boolean {
  return error instanceof LostCommit || (error instanceof ApiError && error.code === 'store_unavailable')
}

type Target = Pick<Driven, 'held' | 'session'>
type Prepared = Outcome<Submit> | Forbidden

/** A call that throws instead of answering leaves everything open. */
async function ask(call: () => Promise<Outcome<unknown>>): Promise<Outcome<unknown>> {
  try {
    return await call()
  } catch (error) {
    return { kind: 'unknown', reason: error instanceof Error ? error.message : String(error) }
  }
}
