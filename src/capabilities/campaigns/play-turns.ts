/** Simulates campaigns in threads: one at a time per workspace, and never for longer than a caller waits. */
import { workspaceTurns } from '../../access/turns.ts'
import type { App } from '../../app.ts'
import type { Paging } from '../../lib/cursor.ts'
import { threadCalls } from '../../lib/threads.ts'
import { Json } from '../../route.ts'
import type { PlayAnswer, PlayHead, PlayJob } from './play.ts'

export interface PlayPage {
  readonly limit: number
  readonly paging: Paging
  /** Aborted when the caller disconnects. */
  readonly left?: AbortSignal | undefined
}

export interface PlayFacts {
  readonly head: PlayHead
  readonly rows: readonly string[]
  readonly now: Date
}

/** A play that takes longer stops early and has no `end`; the longest possible campaign takes a quarter of this. */
const cpuMsMax = 2_000 // limit: processor time of a play
const waitMsMax = 10_000 // limit: wait for a play

/** Each play takes a core, unless another thread wants it. */
const inTurn = workspaceTurns({
  atOnceMax: 2,
  // A waiting request holds its body, which may be 8 MiB.
  waitingMax: 20,
  waitMsMax,
  what: 'previews and forecasts',
})

const askThread = threadCalls<PlayJob, PlayAnswer | undefined>(new URL('./play-thread.ts', import.meta.url))

/** `read` runs when it is the caller's turn, so that waiting callers hold no facts in memory. `head` starts the answer. */
export function playInTurn(
  { sources, long }: App,
  workspace_id: string,
  { limit, paging, left }: PlayPage,
  read: () => Promise<{ readonly head: object; readonly facts: PlayFacts }>,
): Promise<Json> {
  return inTurn(sources, { workspace_id, left }, async () => {
    const { head, facts } = await long({ workspace_id, left }, read) // guard: reads of plays take places
    const after = Number(paging.after?.[0] ?? -1)
    const { text, next } = await play(facts, { after, limit, left })
    const cursor = next === null ? 'null' : JSON.stringify(paging.next([next]))
    const end = `"next_cursor":${cursor},"has_more":${next !== null}`
    return new Json(`${JSON.stringify(head).slice(0, -1)},${text.slice(1, -1)},${end}}`)
  })
}

interface PlayRequest {
  readonly after: number
  readonly limit: number
  readonly left: AbortSignal | undefined
}

async function play(
  { head, rows, now }: PlayFacts,
  { after, limit, left }: PlayRequest,
): Promise<PlayAnswer> {
  left?.throwIfAborted()
  const stop = new Int32Array(new SharedArrayBuffer(4))
  const halt = () => Atomics.store(stop, 0, 1)
  left?.addEventListener('abort', halt) // guard: the thread learns that the caller left
  try {
    const job = { rows, stop, after, limit, cpu_ms: cpuMsMax, now: now.getTime() }
    const answer = await askThread({ ...job, head: JSON.stringify(head) })
    if (answer) return answer
    throw left?.reason
  } finally {
    left?.removeEventListener('abort', halt)
  }
}
