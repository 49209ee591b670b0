/**
 * Sends the request of a form until its outcome is known, always with the same key: only one tab at a time, and a lost answer
 * or a busy service repeats the same request.
 */
import { Refused } from './api.ts'
import { type FormDraft, type FormState, isStarting } from './form-draft.ts'
import { endSession } from './queries.ts'

const backoffMs = [1_000, 2_000, 4_000, 8_000] as const
/** A start older than this is not repeated by itself: its user no longer expects it. */
const staleMs = 10 * 60_000

export const isStale = ({ starting }: FormDraft<unknown>) =>
  starting !== null && Date.now() - new Date(starting.at).getTime() > staleMs

/** Why it is not done yet, and until when it waits. */
export interface Waiting {
  readonly because: string
  readonly until: string
}

interface Attempt<A> {
  readonly ask: (body: unknown, key: string) => Promise<A>
  readonly onWait: (waiting: Waiting | null) => void
  /** Whether the request may have left before, from a page that was reloaded or from another tab. */
  readonly resumed: boolean
  /** Called before a refusal that does not prove that nothing was created: the draft is back with the same key. */
  readonly onUnsure: () => void
}

/**
 * The service looks at gates, roles and allowlists before it looks the key up, so these refusals of a repeat say nothing about
 * the attempts before it.
 */
const unprovenStatuses = [403, 404, 503]

/** The answer; undefined if the session ended, or another tab got the outcome. Throws the refusal, after which the draft is back. */
export async function runForm<T, A>(
  draft: FormDraft<T>,
  end: FormState<T>['end'],
  { ask, onWait, resumed, onUnsure }: Attempt<A>,
): Promise<A | undefined> {
  const { starting } = draft
  if (!starting) return undefined
  return alone(starting.key, async () => {
    let isRepeat = resumed
    for (let attempt = 0; await isStarting(draft); attempt++) {
      try {
        const answer = await ask(starting.body, starting.key)
        onWait(null)
        await end(draft, false)
        return answer
      } catch (error) {
        const wait = waitOf(error, attempt)
        if (wait === 'signed_out') {
          endSession()
          return undefined
        }
        if (wait === undefined) {
          onWait(null)
          const unsure = isRepeat && error instanceof Refused && unprovenStatuses.includes(error.status)
          if (unsure) onUnsure()
          await end(draft, true, unsure ? starting.key : undefined) // guard: key of a form that may have started
          throw error
        }
        isRepeat = true
        onWait({ because: wait.because, until: new Date(Date.now() + wait.ms).toISOString() })
        await new Promise((resolve) => setTimeout(resolve, wait.ms))
      }
    }
    return undefined
  })
}

const unknownYet = 'Parley’s answer was lost. The same request is repeated; it cannot start twice.'

/** How long to wait before the same request; undefined: it was refused, and nothing was created. */
function waitOf(error: unknown, attempt: number): { ms: number; because: string } | 'signed_out' | undefined {
  if (!(error instanceof Refused)) return undefined
  const { code, status, message, retry_after } = error
  const ms = (retry_after ?? 0) * 1_000 || (backoffMs[Math.min(attempt, backoffMs.length - 1)] ?? 0)
  if (code === 'not_signed_in') return 'signed_out'
  if (code === 'operation_in_progress')
    return { ms: 1_000, because: 'The same request is still being worked on.' }
  if (code === 'rate_limited') return { ms, because: message }
  const isLost = status === 0 || code === 'unreachable' || code === 'internal'
  // The service stores the key and the campaign together, so the same key finds out.
  if (isLost || code === 'outcome_ambiguous' || code === 'store_unavailable')
    return { ms, because: unknownYet }
  return undefined
}

function alone<A>(key: string, work: () => Promise<A>): Promise<A> {
  const { locks } = navigator as Navigator & { locks?: LockManager }
  return locks ? (locks.request(`parley.start ${key}`, work) as Promise<A>) : work()
}
