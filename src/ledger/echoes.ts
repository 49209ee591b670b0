/**
 * The platform repeats what we sent in its updates. If a batch only repeats what this process has just recorded, only the
 * position needs storing, and one statement stores the positions of many accounts.
 */

import type { App, Sources } from '../app.ts'
import { Gatherer } from '../lib/gatherer.ts'
import type { Message, Update, UpdateBatch } from '../platform/port.ts'
import { noteWrites } from './leases.ts'
import { type Advance, advancePositions } from './positions.ts'
import { within } from './within.ts'

/** How long a batch waits for the answer to the call. After that it may be the only trace of the message, so it is stored. */
const answerMsMax = 250
/**
 * How long a batch waits until the answer is recorded. Storing the batch instead costs a transaction for each account,
 * which slows down a recording that is slow already, so this is as long as a batch of outcomes may take.
 */
const recordingMsMax = 5_000
/** An echo that arrives later than this after its recording is stored like any other update. */
const expectedMsMax = 10_000
const batchMax = 200

/** What was recorded of a submission: the resulting message. */
export interface RecordedMessage {
  readonly chat_id: string
  readonly message_id: string
  readonly text: string
}

export interface Expectation {
  /** The platform has answered, and the answer is being recorded. */
  answered(): void
  /** Undefined: nothing was recorded, so the update must be stored. */
  resolve(recorded: RecordedMessage | undefined): void
}

interface ExpectedEcho {
  readonly answer: Promise<true>
  readonly recording: Promise<RecordedMessage | undefined>
}

export class Echoes {
  readonly #sources: Sources
  readonly #expected = new Map<string, ExpectedEcho>()
  /** When each submission was recorded, oldest first. */
  readonly #recorded = new Map<string, number>()
  readonly #positions: Gatherer<Advance, { readonly writes: string | null }>

  constructor({ db, sources }: App) {
    this.#sources = sources
    this.#positions = new Gatherer({
      most: batchMax,
      work: async (advances) => {
        const advanced = new Map(
          (await advancePositions(db, advances)).map(({ account_id, writes }) => [account_id, writes]),
        )
        return advances.map(({ held }) => ({ writes: advanced.get(held.account_id) ?? null }))
      },
    })
  }

  /** Call it before submitting: the echo may arrive before the answer. */
  expect(account_id: string, random_id: string): Expectation {
    const answer = Promise.withResolvers<true>()
    const recording = Promise.withResolvers<RecordedMessage | undefined>()
    const place = `${account_id}:${random_id}`
    this.#forget()
    this.#expected.set(place, { answer: answer.promise, recording: recording.promise })
    return {
      answered: () => answer.resolve(true),
      resolve: (recorded) => {
        answer.resolve(true)
        recording.resolve(recorded)
        this.#recorded.set(place, this.#sources.now())
      },
    }
  }

  #forget(): void {
    const now = this.#sources.now()
    for (const [place, at] of this.#recorded) {
      if (now - at < expectedMsMax) return
      this.#recorded.delete(place)
      this.#expected.delete(place)
    }
  }

  /** Undefined: the batch contains more than this process has recorded. Otherwise whether the lease still held. */
  async take(advance: Advance, { updates }: UpdateBatch): Promise<boolean | undefined> {
    this.#forget()
    // guard: an empty batch may report a gap
    if (updates.length === 0 || !updates.every((update) => this.#isExpected(advance, update)))
      return undefined
    for (const update of updates) if (!(await this.#isRecorded(advance, update))) return undefined
    const { writes } = await this.#positions.add(advance)
    if (writes === null) return false
    noteWrites(advance.held, writes)
    return true
  }

  #isExpected({ held: { account_id } }: Advance, update: Update): boolean {
    const random_id = randomIdOf(update)
    return random_id !== null && this.#expected.has(`${account_id}:${random_id}`)
  }

  /** Moves the position only after the recording has committed. */
  async #isRecorded({ held: { account_id } }: Advance, update: Update): Promise<boolean> {
    const expected = this.#expected.get(`${account_id}:${randomIdOf(update)}`)
    if (!expected || !(await within(this.#sources, answerMsMax, expected.answer))) return false
    const recorded = await within(this.#sources, recordingMsMax, expected.recording)
    if (!recorded) return false // guard: an echo whose recording failed is stored
    if (update.kind === 'sent') return update.message_id === recorded.message_id
    return update.kind === 'message' && isSame(update.message, update.chat.id, recorded)
  }
}

function isSame({ id, text, edited_at }: Message, chat_id: string, recorded: RecordedMessage): boolean {
  const isOurs = id === recorded.message_id && chat_id === recorded.chat_id
  return isOurs && text === recorded.text && edited_at === null // guard: what the platform changed is stored
}

function randomIdOf(update: Update): string | null {
  if (update.kind === 'sent') return update.random_id
  return update.kind === 'message' && update.message.is_sender ? update.message.random_id : null
}
