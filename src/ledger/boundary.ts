/**
 * The boundary: crossings gather, and those of many accounts cross in one transaction. One mechanism serves two kinds of
 * statement: `crossQueued` below, for operations that callers queued, and the campaigns' own, for messages that a campaign
 * plans only once it has locked their recipients.
 */
import type { App } from '../app.ts'
import { isConnectionLost, LostCommit } from '../db/errors.ts'
import { Gatherer } from '../lib/gatherer.ts'
import type { Sent } from '../platform/port.ts'
import { type CrossingStatus, cross, type Instance } from './crossing.ts'
import { type HeldLease, noteWrites } from './leases.ts'

const batchMax = 100
/** Another transaction holds a row for a moment: the next batches retry for up to this long. */
const busy = { restMs: 2, msMax: 2_000 }

/** What is to cross, and under which lease. */
export interface Crossing<Wanted> {
  readonly id: string
  /** Of the new attempt. */
  readonly token: string
  readonly held: HeldLease
  readonly wanted: Wanted
}

/** What a statement returns for one crossing. */
export interface StatementAnswer {
  readonly status: string
  /** The account's count of writes as of this commit; null where nothing of the account crossed. */
  readonly writes: string | null
}

/** Crosses all of them in one transaction, or none. Returns the answers in the order of the crossings. */
type CrossingStatement<Wanted, Answer extends StatementAnswer> = (
  instance: Instance,
  crossings: readonly Crossing<Wanted>[],
) => Promise<readonly Answer[]>

/** `lost`: the answer to COMMIT was lost, so it may have crossed. `failed`: the database refused this row. */
type UncrossedAnswer = StatementAnswer & { readonly status: 'lost' | 'failed' | 'no' }

type BoundaryAnswer<Answer> = (Answer | UncrossedAnswer) & {
  readonly id: string
  readonly token: string
}

export interface BoundaryOptions {
  /** What this process knows of the database; undefined while it must not cross anything. */
  readonly instance: () => Instance | undefined
  /** The database has forgotten what this process saw committed. */
  readonly behind: () => void
}

export class Boundary<Wanted, Answer extends StatementAnswer> {
  readonly #app: App
  readonly #options: BoundaryOptions
  readonly #statement: CrossingStatement<Wanted, Answer>
  readonly #gatherer: Gatherer<Crossing<Wanted>, BoundaryAnswer<Answer>>

  constructor(app: App, options: BoundaryOptions, statement: CrossingStatement<Wanted, Answer>) {
    this.#app = app
    this.#options = options
    this.#statement = statement
    this.#gatherer = new Gatherer({ most: batchMax, work: (crossings) => this.#crossAll(crossings) })
  }

  async cross(wanting: Omit<Crossing<Wanted>, 'token'>): Promise<BoundaryAnswer<Answer>> {
    const { newToken, now, sleep } = this.#app.sources
    const startedAt = now()
    for (;;) {
      const answer = await this.#gatherer.add({ ...wanting, token: newToken() })
      if (answer.status === 'behind') this.#options.behind()
      if (answer.status !== 'busy' || now() - startedAt > busy.msMax) return answer
      await sleep(busy.restMs)
    }
  }

  async #crossAll(crossings: readonly Crossing<Wanted>[]): Promise<BoundaryAnswer<Answer>[]> {
    const instance = this.#options.instance()
    if (!instance) return crossings.map((one) => uncrossed(one, 'no'))
    try {
      return await this.#crossTogether(instance, crossings)
    } catch (err) {
      this.#app.log.warn({ err, rows: crossings.length }, 'a batch did not cross the boundary')
      if (isLost(err)) return crossings.map((one) => uncrossed(one, 'lost')) // guard: lost commit is not sent
      return this.#crossEach(instance, crossings)
    }
  }

  /** The database returned an error, so nothing of the batch crossed. Retries each alone with a new token. */
  async #crossEach(
    instance: Instance,
    crossings: readonly Crossing<Wanted>[],
  ): Promise<BoundaryAnswer<Answer>[]> {
    const answers: BoundaryAnswer<Answer>[] = []
    for (const crossing of crossings) {
      const alone = { ...crossing, token: this.#app.sources.newToken() }
      answers.push(
        await this.#crossTogether(instance, [alone]).then(
          ([answer]) => answer ?? uncrossed(alone, 'no'),
          (err) => uncrossed(alone, isLost(err) ? 'lost' : 'failed'), // guard: lost commit of one alone
        ),
      )
    }
    return answers
  }

  async #crossTogether(
    instance: Instance,
    crossings: readonly Crossing<Wanted>[],
  ): Promise<BoundaryAnswer<Answer>[]> {
    const answers = await this.#statement(instance, crossings)
    return crossings.map((crossing, at) => {
      const { id, token, held } = crossing
      const answer = answers[at]
      if (!answer) return uncrossed(crossing, 'no')
      if (answer.writes !== null) noteWrites(held, answer.writes) // guard: writes are remembered
      return { ...answer, id, token }
    })
  }
}

function uncrossed(
  { id, token }: Crossing<unknown>,
  status: UncrossedAnswer['status'],
): UncrossedAnswer & { readonly id: string; readonly token: string } {
  return { id, token, status, writes: null }
}

function isLost(error: unknown): boolean {
  return error instanceof LostCommit || isConnectionLost(error)
}

/** A queued operation, as its row was read. */
interface WantedOperation {
  readonly seen_token: string | null
  readonly seconds: number
}

interface OperationAnswer extends StatementAnswer {
  readonly status: CrossingStatus
  /** The platform accepted it before; this is the message. */
  readonly proof?: Sent
  /** Why its kind's re-check forbids it. */
  readonly forbidden?: string
}

export type OperationBoundary = Boundary<WantedOperation, OperationAnswer>

export function operationBoundary(app: App, options: BoundaryOptions): OperationBoundary {
  return new Boundary(app, options, (instance, crossings) => crossQueued(app, instance, crossings))
}

async function crossQueued(
  app: App,
  instance: Instance,
  crossings: readonly Crossing<WantedOperation>[],
): Promise<OperationAnswer[]> {
  const given = crossings.map(({ wanted, ...crossing }) => ({ ...crossing, ...wanted }))
  const rows = new Map((await cross(app, instance, given)).map((row) => [row.id, row]))
  return crossings.map(({ id }) => {
    const row = rows.get(id)
    if (!row) return { status: 'no', writes: null }
    const { status, writes, message_id, sent_at, forbidden } = row
    if (status === 'forbidden') return { status, writes, forbidden: forbidden ?? status }
    if (status !== 'proven' || message_id === null) return { status, writes }
    return { status, writes, proof: { message_id, at: (sent_at ?? new Date(0)).toISOString() } }
  })
}
