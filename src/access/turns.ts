/** Costly work of requests, in turns of their workspaces: one workspace that wants much makes no other one wait for it. */
import type { App, Sources, WorkspaceTurn, WorkspaceTurns } from '../app.ts'
import { ApiError } from '../lib/errors.ts'
import { fairQueue } from '../lib/queue.ts'

interface TurnBounds {
  /** In this process. */
  readonly atOnceMax: number
  /** Of one workspace; one unless given. */
  readonly eachMax?: number
  /** Of one workspace. */
  readonly waitingMax: number
  readonly waitMsMax: number
  /** For the refusal: Too many … are running right now. */
  readonly what: string
}

/** A caller that would wait for too long, or finds too many of its workspace waiting, gets 429 with `Retry-After`. */
export function workspaceTurns({ what, ...bounds }: TurnBounds) {
  const inTurn = fairQueue({
    ...bounds,
    refuse: () =>
      new ApiError('rate_limited', {
        detail: `Too many ${what} are running right now. Retry in a few seconds.`,
        retry_after: 5,
      }),
  })
  const run = <T>({ timer }: Sources, { workspace_id, left }: WorkspaceTurn, work: () => Promise<T>) =>
    inTurn({ key: workspace_id, timer, left }, work)
  return Object.assign(run, { countWaiting: inTurn.countWaiting })
}

const waitMsMax = 10_000 // limit: wait for a costly read

interface Requests {
  /** How many connections requests have together; six by default. */
  readonly requestsMax: number
}

/**
 * Places for whatever holds a connection for long: a third of the connections that requests have is left to short ones. Each
 * kind of work has turns of its own, and its turn comes first: the holder of a place waits for nothing but a connection, so
 * it gets to its end. A workspace has half of the places, and two of the two that the smallest pool has: an import lasts for
 * minutes, and its workspace searches meanwhile.
 */
export function longTurns(sources: Sources, { requestsMax }: Requests): WorkspaceTurns {
  const most = Math.max(1, requestsMax - Math.max(1, Math.floor(requestsMax / 3))) // guard: connections beside long work
  return turnsWith(sources, {
    atOnceMax: most,
    eachMax: Math.max(2, Math.ceil(most / 2)), // guard: a share of long work
    waitingMax: Number.POSITIVE_INFINITY, // A workspace has a few turns of each kind.
    waitMsMax: longWaitMsMax,
    what: 'searches, previews, creations, imports and exports',
  })
}

const longWaitMsMax = 10_000

/**
 * Costly reads have half of the connections of requests: three at a time by default. A workspace has one: two searches would
 * keep two processors busy, in the database and in a thread, and smaller machines have no more.
 */
export function costlyTurns(
  sources: Sources,
  { requestsMax, long }: Requests & { readonly long: WorkspaceTurns },
): WorkspaceTurns {
  const inTurn = turnsWith(sources, {
    atOnceMax: Math.max(1, Math.floor(requestsMax / 2)), // guard: connections beside costly work
    eachMax: 1, // guard: a share of costly work
    waitingMax: 100,
    waitMsMax,
    what: 'searches and long lists of this workspace',
  })
  const run = <T>(turn: WorkspaceTurn, work: () => Promise<T>) => inTurn(turn, () => long(turn, work)) // guard: costly reads take places
  return Object.assign(run, { countWaiting: inTurn.countWaiting })
}

function turnsWith(sources: Sources, bounds: TurnBounds): WorkspaceTurns {
  const inTurn = workspaceTurns(bounds)
  const run = <T>(turn: WorkspaceTurn, work: () => Promise<T>) => inTurn(sources, turn, work)
  return Object.assign(run, { countWaiting: inTurn.countWaiting })
}

/**
 * Exports of any length. A caller who reads slowly keeps the place of the own workspace and one piece in memory; one who does
 * not read is cut off after a minute (`http/sockets.ts`). The pieces of one export have as many turns as those of any other.
 */
export function exportTurns({ own, others }: { readonly own: string; readonly others: string }) {
  const inTurn = fairQueue({ atOnceMax: 2, waitingMax: 1, waitMsMax: 30_000, refuse: () => busyWith(others) })
  /** The workspaces that have an export open in this process. */
  const exporting = new Set<string>()
  return async function* <Piece>(
    { sources: { timer }, long }: Pick<App, 'sources' | 'long'>,
    { workspace_id, left }: WorkspaceTurn,
    begin: () => AsyncGenerator<Piece, void>,
  ): AsyncGenerator<Piece, void> {
    if (exporting.has(workspace_id)) throw busyWith(own) // guard: one export of a workspace at a time
    exporting.add(workspace_id)
    try {
      const pieces = begin()
      const next = () => long({ workspace_id, left }, () => pieces.next()) // guard: pieces of exports take places
      const turn = { key: workspace_id, timer, left } // guard: a reader of an export who leaves waits no longer
      for (let piece = await inTurn(turn, next); !piece.done; piece = await inTurn(turn, next))
        yield piece.value
    } finally {
      exporting.delete(workspace_id) // guard: the place of an export is free again
    }
  }
}

function busyWith(why: string): ApiError {
  return new ApiError('rate_limited', { detail: `${why} Retry in some seconds.`, retry_after: 10 })
}
