/** Parses large JSON texts in threads, one at a time for each source: the thread that serves requests only gets the value. */
import { ApiError } from './errors.ts'
import type { JsonAnswer } from './json-thread.ts'
import { fairQueue } from './queue.ts'
import { noteWellFormed } from './text.ts'
import { threadCalls } from './threads.ts'

/** A smaller text costs less than the way to a thread and back. */
export const largeBytes = 256 * 1024

const inTurn = fairQueue({
  atOnceMax: 2,
  // Their bytes are bounded too, by `http/body-budget.ts`.
  waitingMax: 30,
  waitMsMax: 10_000,
  refuse: () =>
    new ApiError('rate_limited', {
      detail: 'Too many large requests are waiting to be read. Retry in a few seconds.',
      retry_after: 5,
    }),
})

const askThread = threadCalls<Uint8Array, JsonAnswer>(new URL('./json-thread.ts', import.meta.url))

interface JsonTurn {
  /** For whom the text is parsed. */
  readonly source: string
  readonly timer: (ms: number, done: () => void) => () => void
  /** Aborted once the caller has left. */
  readonly left: AbortSignal | undefined
}

/** The same as `parseJson`, with the same refusals. The bytes are moved to the thread: they are gone afterwards. */
export function parseLargeJson(bytes: Buffer, { source, timer, left }: JsonTurn): Promise<unknown> {
  return inTurn({ key: source, timer, left }, async () => {
    const { value, refusal } = await askThread(bytes, [bytes.buffer as ArrayBuffer])
    if (refusal) throw new ApiError(refusal.code, { detail: refusal.detail })
    noteWellFormed(value)
    return value
  })
}
