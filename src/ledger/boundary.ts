/** Crosses what waits to cross, many operations of many accounts in one statement. */

import type { App } from '../app.ts'
import { isConnectionLost } from '../db/errors.ts'
import { Gatherer } from '../lib/gatherer.ts'
import type { Sent } from '../platform/port.ts'
import { type Crossed, type Crossing, type CrossingAnswer, cross, type Instance } from './crossing.ts'
import { type Held, noteWrites } from './leases.ts'
import type { QueuedOperation } from './queue.ts'

const batchMax = 100
/** Another transaction holds the account for a moment: the next batches ask again, up to this long. */
const busy = { restMs: 2, msMax: 2_000 }

/** `lost`: the answer never came, so it may have crossed. */
export interface Answer {
  readonly token: string
  readonly status: Crossed | 'lost'
  /** It was accepted before; this is the message. */
  readonly proof?: Sent
  /** Why the re-check of its kind says no. */
  readonly forbidden?: string
}

export interface BoundaryOptions {
  /** What this process knows of the database; undefined while it must not cross anything. */
  readonly instance: () => Instance | undefined
  /** The database has forgotten what this process saw committed. */
  readonly behind: () => void
}

export class Boundary {
  readonly #app: App
  readonly #options: BoundaryOptions
  readonly #gatherer: Gatherer<Crossing, Answer>

  constructor(app: App, options: BoundaryOptions) {
    this.#app = app
    this.#options = options
    this.#gatherer = new Gatherer({ most: batchMax, work: (crossings) => this.#crossAll(crossings) })
  }

  async cross(
    { id, attempt_token: seen_token }: QueuedOperation,
    held: Held,
    seconds: number,
  ): Promise<Answer> {
    const startedAt = this.#app.sources.now()
    for (;;) {
      const token = this.#app.sources.newToken()
      const answer = await this.#gatherer.add({ id, token, seen_token, held, seconds })
      if (answer.status === 'behind') this.#options.behind()
      if (answer.status !== 'busy' || this.#app.sources.now() - startedAt > busy.msMax) return answer
      await this.#app.sources.sleep(busy.restMs)
    }
  }

  async #crossAll(crossings: readonly Crossing[]): Promise<Answer[]> {
    const instance = this.#options.instance()
    if (!instance) return crossings.map(({ token }) => ({ token, status: 'no' }))
    try {
      const answers = await cross(this.#app, instance, crossings)
      const byId = new Map(answers.map((answer) => [answer.id, answer]))
      return crossings.map((crossing) => answerOf(crossing, byId.get(crossing.id)))
    } catch (err) {
      this.#app.log.warn({ err, rows: crossings.length }, 'a batch did not cross the boundary')
      if (isConnectionLost(err)) return crossings.map(({ token }) => ({ token, status: 'lost' })) // guard: lost commit is not sent
      return this.#crossEach(instance, crossings)
    }
  }

  /** An error that the database told: nothing of the batch has crossed, and each is tried alone with a new token. */
  async #crossEach(instance: Instance, crossings: readonly Crossing[]): Promise<Answer[]> {
    const answers: Answer[] = []
    for (const crossing of crossings) {
      const alone = { ...crossing, token: this.#app.sources.newToken() }
      answers.push(
        await cross(this.#app, instance, [alone]).then(
          ([answer]) => answerOf(alone, answer),
          (err): Answer => ({ token: alone.token, status: isConnectionLost(err) ? 'lost' : 'no' }),
        ),
      )
    }
    return answers
  }
}

function answerOf({ token, held }: Crossing, answer: CrossingAnswer | undefined): Answer {
  if (!answer) return { token, status: 'no' }
  const { status, writes, message_id, sent_at, forbidden } = answer
  if (writes !== null) noteWrites(held, writes)
  if (status === 'forbidden') return { token, status, forbidden: forbidden ?? status }
  if (status !== 'proven' || message_id === null) return { token, status }
  return { token, status, proof: { message_id, at: (sent_at ?? new Date(0)).toISOString() } }
}
