/** The conformance suite's listener: records its calls, and can be slow or fail on demand. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Closed, Listener, Outcome, Update, UpdateBatch } from '../../src/platform/port.ts'

type Kind = Update['kind']

const waitMsMax = 5000

export class Recorder implements Listener {
  readonly updatesTaken: Update[] = []
  /** As an account session stores it: with the batch. */
  position: string | null
  handed = 0
  concurrentMax = 0
  closedWith: Closed | null = null
  readonly closedReason: Promise<Closed>
  #tellClosed: (closed: Closed) => void = () => {}
  #concurrent = 0
  #gate: Promise<void> = Promise.resolve()
  #failing = false

  constructor(position: string | null = null) {
    this.position = position
    this.closedReason = new Promise((resolve) => {
      this.#tellClosed = resolve
    })
  }

  async updates(batch: UpdateBatch): Promise<void> {
    this.handed++
    this.#concurrent++
    this.concurrentMax = Math.max(this.concurrentMax, this.#concurrent)
    await this.#gate
    this.#concurrent--
    if (this.#failing) throw new Error('The batch could not be stored.')
    this.updatesTaken.push(...batch.updates)
    this.position = batch.position
  }

  closed(closed: Closed): void {
    this.closedWith = closed
    this.#tellClosed(closed)
  }

  /** Does not finish any batch before the answer is called. */
  hold(): () => void {
    const gate = Promise.withResolvers<void>()
    this.#gate = gate.promise
    return gate.resolve
  }

  fail(): void {
    this.#failing = true
  }

  /** The listener of the next session, which starts where this one ended. */
  continued(): Recorder {
    return new Recorder(this.position)
  }

  of<K extends Kind>(kind: K): Extract<Update, { kind: K }>[] {
    return this.updatesTaken.filter((update): update is Extract<Update, { kind: K }> => update.kind === kind)
  }

  get messages(): Extract<Update, { kind: 'message' }>[] {
    return this.of('message')
  }

  /** What the other side wrote. */
  get texts(): string[] {
    return this.messages.filter(({ message }) => !message.is_sender).map(({ message }) => message.text)
  }

  get sentIds(): string[] {
    return this.of('sent').map(({ random_id }) => random_id)
  }

  async until(condition: () => boolean): Promise<void> {
    const end = performance.now() + waitMsMax
    while (!condition()) {
      if (performance.now() > end) throw new Error('It did not happen in time.')
      await sleep(2)
    }
  }
}

export function expectAccepted<T>(outcome: Outcome<T>): T {
  if (outcome.kind !== 'accepted') throw new Error(`Expected accepted, got ${JSON.stringify(outcome)}.`)
  return outcome.value
}

export async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  const timer = new AbortController()
  const late = sleep(ms, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`No answer within ${ms} ms.`)
  })
  late.catch(() => {})
  try {
    return await Promise.race([promise, late])
  } finally {
    timer.abort()
  }
}
