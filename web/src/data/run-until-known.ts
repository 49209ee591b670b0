/**
 * Repeats one request with the same key until its outcome is known: only one tab at a time, and a lost answer or a busy service
 * repeats it. While it runs, leaving the page warns.
 */
import { Refused } from './api.ts'
import { endSession } from './queries.ts'

const backoffMs = [1_000, 2_000, 4_000, 8_000] as const
/** The user of an older request no longer expects it. */
const staleMs = 10 * 60_000

/** Whether a person decides if it is repeated. */
export const isStale = ({ at }: { readonly at: string }) => Date.now() - new Date(at).getTime() > staleMs

/** Why it is not done yet, and until when it waits. */
export interface Waiting {
  readonly because: string | null
  readonly until: string
}

interface Attempts<A> {
  readonly key: string
  readonly ask: () => Promise<A>
  /** Whether the outcome is still unknown: another tab may have got it while this one waited. */
  readonly isOpen: () => Promise<boolean>
  readonly onWait: (waiting: Waiting | null) => void
  /** Whether the request may have left before, from a page that was reloaded or from another tab. */
  readonly resumed: boolean
  /** What an answer that says it is not known leads to: the same request again, or the end. */
  readonly ambiguous: 'repeat' | 'end'
  readonly words: WaitingWords
}

/** How a page says what the request does, while its outcome is not known. */
interface WaitingWords {
  /** As "It goes out". */
  readonly begins: string
  /** As "it won’t be sent twice". */
  readonly once: string
}

export type Outcome<A> =
  | { readonly is: 'done'; readonly answer: A }
  /** The same request is not made again: it may have been done. */
  | { readonly is: 'ambiguous' }
  /** Nothing was done, or with `unsure` perhaps by an attempt before. */
  | { readonly is: 'refused'; readonly error: unknown; readonly unsure: boolean }
  /** The session has ended, or another tab knows. */
  | { readonly is: 'left' }

/**
 * The service looks at gates, roles and allowlists before it looks the key up, so these refusals of a repeat say nothing about
 * the attempts before it.
 */
const unprovenStatuses = [403, 404, 503]

export function runUntilKnown<A>(attempts: Attempts<A>): Promise<Outcome<A>> {
  return alone(attempts.key, async () => {
    // guard: leaving warns while something is under way
    if (running++ === 0) globalThis.addEventListener?.('beforeunload', warn)
    try {
      return await repeat(attempts)
    } finally {
      if (--running === 0) globalThis.removeEventListener?.('beforeunload', warn)
    }
  })
}

async function repeat<A>({
  ask,
  isOpen,
  onWait,
  resumed,
  ambiguous,
  words,
}: Attempts<A>): Promise<Outcome<A>> {
  let isRepeat = resumed
  for (let attempt = 0; await isOpen(); attempt++) {
    try {
      const answer = await ask()
      onWait(null)
      return { is: 'done', answer }
    } catch (error) {
      if (!(error instanceof Refused)) return { is: 'refused', error, unsure: isRepeat }
      const { code, status } = error
      if (code === 'not_signed_in') {
        endSession()
        return { is: 'left' }
      }
      // guard: ambiguous is not sent again
      if (code === 'outcome_ambiguous' && ambiguous === 'end') return { is: 'ambiguous' }
      const wait = waitOf(error, attempt, words)
      if (!wait) {
        onWait(null)
        return { is: 'refused', error, unsure: isRepeat && unprovenStatuses.includes(status) }
      }
      isRepeat = true
      onWait({ because: wait.because, until: new Date(Date.now() + wait.ms).toISOString() })
      await new Promise((resolve) => setTimeout(resolve, wait.ms))
    }
  }
  return { is: 'left' }
}

/** How long to wait before the same request; undefined: it was refused. */
function waitOf(
  { code, status, message, retry_after }: Refused,
  attempt: number,
  words: WaitingWords,
): { ms: number; because: string } | undefined {
  const ms = (retry_after ?? 0) * 1_000 || (backoffMs[Math.min(attempt, backoffMs.length - 1)] ?? 0)
  if (code === 'operation_in_progress')
    return { ms: 1_000, because: 'The same request is still being worked on.' }
  if (code === 'rate_limited') return { ms, because: message }
  // The service stores the key with what it names, so the same key finds out.
  const isLost = ['unreachable', 'internal', 'outcome_ambiguous', 'store_unavailable'].includes(code)
  return isLost || status === 0 ? { ms, because: lossWords(code, words) } : undefined
}

function lossWords(code: string, { begins, once }: WaitingWords): string {
  // guard: a wait says why it waits
  if (navigator.onLine === false) return `You are offline. ${begins} once you are back; ${once}.`
  const why = code === 'unreachable' ? 'The connection dropped.' : 'Parley has a problem.'
  return `${why} Trying again; ${once}.`
}

function alone<A>(key: string, work: () => Promise<A>): Promise<A> {
  const { locks } = navigator as Navigator & { locks?: LockManager }
  return locks ? (locks.request(`parley.send ${key}`, work) as Promise<A>) : work()
}

/** Requests of this tab whose outcome is not known yet. */
let running = 0
const warn = (event: Event) => event.preventDefault()
