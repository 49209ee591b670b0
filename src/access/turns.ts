/** Costly work of requests, in turns of their workspaces: one workspace that wants much makes no other one wait for it. */
import type { Costly, CostlyTurn, Sources } from '../app.ts'
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
  const run = <T>({ timer }: Sources, { workspace_id, left }: CostlyTurn, work: () => Promise<T>) =>
    inTurn({ key: workspace_id, timer, left }, work)
  return Object.assign(run, { countWaiting: inTurn.countWaiting })
}

const waitMsMax = 10_000 // limit: wait for a costly read

/**
 * All costly work together never takes more than half of the connections that requests have, so that a short request finds
 * one. `db.requestsMax` is six by default: three at a time. A workspace has one: two searches would keep two processors busy,
 * in the database and in a thread, and smaller machines have no more.
 */
export function costlyTurns(sources: Sources, { requestsMax }: { readonly requestsMax: number }): Costly {
  const inTurn = workspaceTurns({
    atOnceMax: Math.max(1, Math.floor(requestsMax / 2)), // guard: connections beside costly work
    eachMax: 1, // guard: a share of costly work
    waitingMax: 100,
    waitMsMax,
    what: 'searches and long lists of this workspace',
  })
  const run = <T>(turn: CostlyTurn, work: () => Promise<T>) => inTurn(sources, turn, work)
  return Object.assign(run, { countWaiting: inTurn.countWaiting })
}
