/**
 * Crosses messages of campaigns, of many accounts in one transaction. Two flights: locks and facts, in the order that
 * everybody keeps; then, decided on what is locked, the operations, the recipients and the day's use, and COMMIT.
 */

import type { App } from '../app.ts'
import {
  adoptOutcomes,
  type Crossable,
  decideCrossing,
  type LockedRow,
  lockFound,
  lockRecipients,
  markEnded,
  markSubmitting,
  type Wanted,
} from '../capabilities/campaigns/campaigns.ts'
import { isConnectionLost, LostCommit } from '../db/errors.ts'
import { planOnce, type Tx } from '../db/sql.ts'
import type { BoundaryOptions } from '../ledger/boundary.ts'
import type { Instance } from '../ledger/crossing.ts'
import {
  insertAttempts,
  type LockedDay,
  lockAccounts,
  lockDays,
  type NewAttempt,
} from '../ledger/direct-crossing.ts'
import { type Held, noteWrites } from '../ledger/leases.ts'
import { Gatherer } from '../lib/gatherer.ts'
import type { Operation } from '../operation.ts'
import type { Sent } from '../platform/port.ts'

const batchMax = 100
/** Another transaction holds the account, the campaign or the recipient for a moment: the next batches ask again. */
const busy = { restMs: 2, msMax: 2_000 }

/** A message that wants to cross, and the lease under which. */
export interface Message {
  readonly wanted: Omit<Wanted, 'id' | 'token'>
  readonly held: Held
}

interface Crossing {
  readonly wanted: Wanted
  readonly held: Held
}

/**
 * `ended`: nothing is sent, and the recipient knows why. `failed`: the database refused this row. `lost`: the answer never
 * came, so it may have crossed.
 */
export type MessageAnswer =
  | {
      readonly status: 'crossed'
      readonly token: string
      readonly operation: Operation
      readonly proof: Sent | null
    }
  /** `id`: the operation's, if it is a new one. */
  | { readonly status: 'lost'; readonly token: string; readonly id: string }
  | { readonly status: 'ended' | 'busy' | 'behind' | 'no' | 'failed'; readonly token: string }

export class MessageBoundary {
  readonly #app: App
  readonly #options: BoundaryOptions
  readonly #gatherer: Gatherer<Crossing, MessageAnswer>

  constructor(app: App, options: BoundaryOptions) {
    this.#app = app
    this.#options = options
    this.#gatherer = new Gatherer({ most: batchMax, work: (crossings) => this.#crossAll(crossings) })
  }

  async cross({ wanted, held }: Message): Promise<MessageAnswer> {
    const { newId, newToken, now, sleep } = this.#app.sources
    const startedAt = now()
    for (;;) {
      const answer = await this.#gatherer.add({ wanted: { ...wanted, id: newId(), token: newToken() }, held })
      if (answer.status === 'behind') this.#options.behind()
      if (answer.status !== 'busy' || now() - startedAt > busy.msMax) return answer
      await sleep(busy.restMs)
    }
  }

  async #crossAll(crossings: readonly Crossing[]): Promise<MessageAnswer[]> {
    const instance = this.#options.instance()
    if (!instance) return crossings.map(({ wanted: { token } }) => ({ token, status: 'no' }))
    try {
      return await this.#crossTogether(instance, crossings)
    } catch (err) {
      this.#app.log.warn({ err, rows: crossings.length }, 'a batch of messages did not cross the boundary')
      if (isLost(err)) return crossings.map(({ wanted: { id, token } }) => ({ id, token, status: 'lost' })) // guard: lost commit of a message is not sent
      return this.#crossEach(instance, crossings)
    }
  }

  /** An error that the database told: nothing of the batch has crossed, and each is tried alone with a new token. */
  async #crossEach(instance: Instance, crossings: readonly Crossing[]): Promise<MessageAnswer[]> {
    const answers: MessageAnswer[] = []
    for (const { wanted, held } of crossings) {
      const alone = { wanted: { ...wanted, token: this.#app.sources.newToken() }, held }
      const { id, token } = alone.wanted
      answers.push(
        await this.#crossTogether(instance, [alone]).then(
          ([answer]) => answer ?? { token, status: 'no' },
          (err): MessageAnswer => (isLost(err) ? { id, token, status: 'lost' } : { token, status: 'failed' }),
        ),
      )
    }
    return answers
  }

  async #crossTogether(instance: Instance, crossings: readonly Crossing[]): Promise<MessageAnswer[]> {
    const { decisions, writes } = await this.#app.db.transaction(async (tx) => {
      const facts = await lockAll(this.#app, tx, { instance, crossings })
      // crash point 3b: everything is locked, nothing is written
      const decisions = decideAll(
        this.#app,
        crossings.map(({ wanted }) => wanted),
        facts,
      )
      const writes = await writeAll(tx, instance, { decisions, rows: facts.rows })
      // crash point 3c: everything is written, nothing is committed
      return { decisions, writes }
    })
    for (const { wanted, held } of crossings) {
      const seen = writes.get(wanted.row.recipient_id)
      if (seen !== undefined) noteWrites(held, seen) // guard: writes of messages are remembered
    }
    return crossings.map(({ wanted }) => answerOf(wanted, decisions.get(wanted)))
  }
}

/** The first flight. The statements are sent one behind the other, and the database takes them in this order. */
async function lockAll(
  app: App,
  tx: Tx,
  { instance, crossings }: { instance: Instance; crossings: readonly Crossing[] },
): Promise<LockedFacts> {
  const wanted = crossings.map((one) => one.wanted)
  const held = [...new Map(crossings.map((one) => [one.held.account_id, one.held])).values()]
  const account_ids = held.map(({ account_id }) => account_id)
  const [, accounts, contended, rows, days] = await Promise.all([
    tx.run(planOnce),
    lockAccounts(tx, instance, held),
    lockFound(tx, wanted),
    lockRecipients(app, tx, wanted),
    lockDays(tx, account_ids),
  ])
  return {
    statuses: new Map(accounts.map(({ account_id, status }) => [account_id, status])),
    rows: new Map(rows.map((row) => [row.recipient_id, row])),
    days: new Map(days.map((day) => [day.account_id, day])),
    contended,
  }
}

interface LockedFacts {
  readonly statuses: ReadonlyMap<string, 'held' | 'busy' | 'behind' | 'no'>
  readonly rows: ReadonlyMap<string, LockedRow>
  readonly days: ReadonlyMap<string, LockedDay>
  /** Recipients that turned out to be somebody whom another transaction is at. */
  readonly contended: ReadonlySet<string>
}

type Decision = Crossable | { readonly do: 'busy' | 'behind' | 'no' }
type Decisions = ReadonlyMap<Wanted, Decision>

/**
 * One message of each account, and one to each person of a campaign, whichever accounts would write to them. In the order of
 * the recipients, so that of two contacts who are one person the first is written to, whenever it is asked.
 */
function decideAll(app: App, wanted: readonly Wanted[], facts: LockedFacts): Decisions {
  const decisions = new Map<Wanted, Decision>()
  const sending = new Set<string>()
  const ordered = wanted.toSorted((one, other) => (one.row.recipient_id < other.row.recipient_id ? -1 : 1))
  for (const one of ordered) {
    const decision = decideOne(app, one, facts)
    const places = decision.do === 'send' ? placesOf(one, decision.attempt) : []
    const taken = places.some((place) => sending.has(place)) // guard: one message of an account in a batch
    for (const place of places) sending.add(place)
    decisions.set(one, taken ? { do: 'busy' } : decision)
  }
  return decisions
}

/** What nothing else of the batch may take. In a campaign of chats the same person in two accounts is two recipients. */
function placesOf({ row }: Wanted, { chat_id }: NewAttempt): readonly string[] {
  const { account_id, campaign_id, kind } = row
  const person = kind === 'contacts' ? chat_id : `${account_id} ${chat_id}` // guard: one person of a batch
  return [account_id, `${campaign_id} ${person}`]
}

function decideOne(app: App, wanted: Wanted, { statuses, rows, days, contended }: LockedFacts): Decision {
  const { account_id, recipient_id } = wanted.row
  const status = statuses.get(account_id) ?? 'no'
  if (status !== 'held') return { do: status }
  const row = rows.get(recipient_id)
  const day = days.get(account_id)
  // Another transaction holds it, or it is not as it was picked: that is for the next pick to see.
  if (!row || !day) return { do: 'no' }
  // guard: what another transaction holds is left alone
  if (day.busy || row.forbidden === 'busy' || contended.has(recipient_id)) return { do: 'busy' }
  return decideCrossing(app, wanted, row, day)
}

interface Written {
  readonly decisions: Decisions
  readonly rows: ReadonlyMap<string, LockedRow>
}

/** The second flight. Answers the accounts' counts of writes, by recipient. */
async function writeAll(
  tx: Tx,
  instance: Instance,
  { decisions, rows }: Written,
): Promise<ReadonlyMap<string, string>> {
  const attempts: NewAttempt[] = []
  const ended: Parameters<typeof markEnded>[1][number][] = []
  const adopted: string[] = []
  for (const [{ row }, decision] of decisions) {
    if (decision.do === 'send') attempts.push(decision.attempt)
    else if (decision.do === 'end') ended.push({ ...decision, recipient_id: row.recipient_id })
    else if (decision.do === 'adopt') adopted.push(decision.operation_id)
  }
  const [inserted] = await Promise.all([
    insertAttempts(tx, instance.worker_id, attempts),
    markSubmitting(tx, attempts, rows), // guard: the recipient crosses with its operation
    markEnded(tx, ended),
  ])
  if (adopted.length > 0) await adoptOutcomes(tx, adopted)
  // guard: a message without its operation does not cross
  if (inserted.length !== attempts.length) throw new Error('A message of the batch has an operation already.')
  return new Map(inserted.map((one) => [one.recipient_id, one.writes]))
}

function answerOf({ token }: Wanted, decision: Decision | undefined): MessageAnswer {
  switch (decision?.do) {
    case 'send': {
      const { proof } = decision.attempt
      return { status: 'crossed', token, operation: operationOf(decision.attempt), proof } // guard: proven message is not sent
    }
    case 'end':
    case 'adopt':
      return { status: 'ended', token }
    case 'busy':
    case 'behind':
      return { status: decision.do, token }
    default:
      return { status: 'no', token }
  }
}

function operationOf(attempt: NewAttempt): Operation {
  return { ...attempt, idempotency_key: null, file_id: null }
}

function isLost(error: unknown): boolean {
  return error instanceof LostCommit || isConnectionLost(error)
}
