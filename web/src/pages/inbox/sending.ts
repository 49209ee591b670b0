/**
 * Sends what is in the outbox. Every attempt repeats the same key until the outcome is known: accepted, refused, or
 * ambiguous, which is never sent again. Only one tab at a time works on a key.
 */
import { useSyncExternalStore } from 'react'
import { ask, Refused } from '../../api.ts'
import {
  beginSending,
  type ChatPlace,
  type Draft,
  endSending,
  isSending,
  listSending,
  newKey,
  type OutboxEntry,
  onOutboxChange,
} from '../../outbox.ts'
import { answeringMarksRead } from '../../preferences.ts'
import { endSession, queryClient } from '../../queries.ts'
import { uploadOf } from '../../upload.ts'
import { markRead } from './chat-changes.ts'
import { chatQuery, refreshChat } from './inbox-queries.ts'

export interface PendingSend {
  readonly entry: OutboxEntry
  /** Why it is not sent yet, if there is a reason to show. */
  readonly because: string | null
  /** When it is retried. */
  readonly until: string | null
  readonly progress: number | null
  /** Found long after the user sent it: a person decides whether to continue. */
  readonly stalled: boolean
  /** Accepted; it leaves this list once the timeline shows it. */
  readonly message_id: string | null
}

interface SendFailure {
  readonly sentence: string
  /** When the platform or the service allows the next attempt. */
  readonly until: string | null
}

/** A send older than this is not retried automatically: its user no longer expects it to go out. */
const staleMs = 10 * 60_000
const backoffMs = [1_000, 2_000, 4_000, 8_000] as const

interface State {
  readonly pending: readonly PendingSend[]
  readonly failures: ReadonlyMap<string, SendFailure>
}

let state: State = { pending: [], failures: new Map() }
const listeners = new Set<() => void>()
const running = new Set<string>()

function set(next: Partial<State>): void {
  state = { ...state, ...next }
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function useSending(): State {
  return useSyncExternalStore(subscribe, () => state)
}

export const placeKey = ({ workspace_id, account_id, chat_id }: Omit<ChatPlace, 'user_id'>) =>
  [workspace_id, account_id, chat_id].join(' ')

export function dismissFailure(place: Omit<ChatPlace, 'user_id'>): void {
  const failures = new Map(state.failures)
  if (failures.delete(placeKey(place))) set({ failures })
}

function change(key: string, more: Partial<PendingSend>): void {
  set({ pending: state.pending.map((each) => (each.entry.key === key ? { ...each, ...more } : each)) })
}

/** Stores the draft as being sent, and sends it. */
export async function sendDraft(draft: Draft): Promise<void> {
  dismissFailure(draft)
  await beginSending(draft)
  await watchOutbox(draft.user_id)
}

/** Resumes what this browser was sending before a reload, in another tab, or before the service was restarted. */
async function watchOutbox(user_id: string): Promise<void> {
  const entries = await listSending(user_id)
  const known = new Map(state.pending.map((each) => [each.entry.key, each]))
  const accepted = state.pending.filter(({ message_id }) => message_id !== null)
  const open = entries.map((entry) => known.get(entry.key) ?? pendingOf(entry))
  set({ pending: [...accepted.filter((each) => !open.includes(each)), ...open] })
  for (const { entry, stalled } of state.pending) if (!stalled) void run(entry)
}

function pendingOf(entry: OutboxEntry): PendingSend {
  const stalled = Date.now() - new Date(entry.sent_at).getTime() > staleMs
  return { entry, because: null, until: null, progress: null, stalled, message_id: null }
}

/** Watches until the returned function is called. */
export function startOutbox(user_id: string): () => void {
  void watchOutbox(user_id)
  return onOutboxChange(() => void watchOutbox(user_id))
}

export function resume({ entry }: PendingSend): void {
  change(entry.key, { stalled: false })
  void run(entry)
}

/** Back into the composer. The key stays: sent unchanged, it is still the same message. */
export async function takeBack({ entry }: PendingSend): Promise<void> {
  await endSending(entry, { key: entry.key })
}

async function run(entry: OutboxEntry): Promise<void> {
  if (running.has(entry.key)) return
  running.add(entry.key)
  try {
    await alone(entry.key, async () => {
      // Another tab may have got the outcome while this one waited.
      for (let attempt = 0; await isSending(entry.key); attempt++) {
        const waitMs = await attemptOnce(entry, attempt)
        if (waitMs === undefined) return
        change(entry.key, { until: new Date(Date.now() + waitMs).toISOString() })
        await new Promise((resolve) => setTimeout(resolve, waitMs))
      }
    })
  } finally {
    running.delete(entry.key)
    set({ pending: state.pending.filter((each) => each.entry.key !== entry.key || each.stalled) })
  }
}

function alone(key: string, work: () => Promise<void>): Promise<void> {
  const { locks } = navigator as Navigator & { locks?: LockManager }
  return locks ? locks.request(`parley.send ${key}`, work) : work()
}

/** Undefined once nothing is left to do, otherwise how long to wait before the same request is repeated. */
async function attemptOnce(entry: OutboxEntry, attempt: number): Promise<number | undefined> {
  const { workspace_id, account_id, chat_id, text, file, key } = entry
  try {
    change(key, { until: null, progress: file ? 0 : null })
    const { message_id } = await ask(
      'POST /w/{workspace_id}/messages',
      { params: { workspace_id }, body: { account_id, chat_id, text } },
      { key, ...(file && { upload: uploadOf(file, (progress) => change(key, { progress })) }) },
    )
    change(key, { because: null, until: null, progress: null, message_id })
    await endSending(entry)
    await refreshChat(queryClient, entry)
    const unread = queryClient.getQueryData(chatQuery(entry).queryKey)?.chat.unread_count ?? 0
    if (unread > 0 && answeringMarksRead())
      void markRead(entry, { unread: false, before: unread, quiet: true })
    return undefined
  } catch (error) {
    return onRefusal(entry, attempt, error)
  }
}

async function onRefusal(entry: OutboxEntry, attempt: number, error: unknown): Promise<number | undefined> {
  if (!(error instanceof Refused)) throw error
  const { code, status, message, retry_after } = error
  const retryMs = (retry_after ?? 0) * 1_000 || (backoffMs[Math.min(attempt, backoffMs.length - 1)] ?? 0)
  if (code === 'not_signed_in') {
    endSession()
    return undefined
  }
  // guard: ambiguous is not sent again
  if (code === 'outcome_ambiguous') {
    await refreshChat(queryClient, entry)
    await endSending(entry)
    return undefined
  }
  if (code === 'operation_in_progress') return 1_000
  if (code === 'rate_limited') {
    change(entry.key, { because: message })
    return retryMs
  }
  if (status === 0 || code === 'unreachable' || code === 'internal' || code === 'store_unavailable') {
    change(entry.key, { because: unknownYet })
    return retryMs
  }
  // 503: nothing was sent, and the same key may run later. A refusal stands for its key, so the text gets a new one.
  const back = { key: status === 503 ? entry.key : newKey() }
  const until = retry_after === undefined ? null : new Date(Date.now() + retry_after * 1_000).toISOString()
  set({ failures: new Map(state.failures).set(placeKey(entry), { sentence: message, until }) })
  await endSending(entry, back)
  void refreshChat(queryClient, entry)
  return undefined
}

const unknownYet = 'Parley’s answer was lost. The same request is repeated; it cannot send twice.'
