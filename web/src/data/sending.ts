/** Sends messages until their outcome is known: accepted, refused, or ambiguous, which is never sent again. */
import { ask, Refused } from './api.ts'
import { onStoreChange } from './browser-store.ts'
import { markRead } from './chat-changes.ts'
import { type ChatRef, chatQuery, refreshChat } from './chats.ts'
import { newKey } from './kept.ts'
import { answeringMarksRead } from './preferences.ts'
import { queryClient } from './queries.ts'
import { type Kept, messageKey, type Underway } from './records.ts'
import { isStale, runUntilKnown } from './run-until-known.ts'
import { SharedState, useShared } from './shared-state.ts'
import {
  advanceMessage,
  beginMessage,
  endMessage,
  isUnderway,
  listMessages,
  nextMessage,
  readAgain,
} from './underway.ts'
import { uploadOf } from './upload.ts'

export interface PendingSend {
  readonly entry: Underway
  readonly chat: ChatRef
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
  /** The name of the file that it is about. */
  readonly file: string | null
  /** When the platform or the service allows the next attempt. */
  readonly until: string | null
}

interface State {
  readonly pending: readonly PendingSend[]
  readonly failures: ReadonlyMap<string, SendFailure>
}

const sending = new SharedState<State>({ pending: [], failures: new Map() })
const running = new Set<string>()
/** Sent from this page; what it finds in the store may have been sent before. */
const begun = new Set<string>()

function set(next: Partial<State>): void {
  sending.set({ ...sending.get(), ...next })
}

export function useSending(): State {
  return useShared(sending)
}

/** The place of a chat in `kept.ts`. */
export const placeOf = (chat: ChatRef) => `${chat.account_id} ${chat.chat_id}`

/** The id of an account has no space. */
function chatOf({ workspace_id, of }: Underway): ChatRef {
  const at = of.indexOf(' ')
  return { workspace_id, account_id: of.slice(0, at), chat_id: of.slice(at + 1) }
}

export function dismissFailure(chat: ChatRef): void {
  const failures = new Map(sending.get().failures)
  if (failures.delete(failureKey(chat))) set({ failures })
}

export const failureKey = (chat: ChatRef) => `${chat.workspace_id} ${placeOf(chat)}`

function change(key: string, more: Partial<PendingSend>): void {
  set({
    pending: sending.get().pending.map((each) => (each.entry.key === key ? { ...each, ...more } : each)),
  })
}

/** Stores the draft as being sent, and sends it. */
export async function sendDraft(draft: Kept<string>): Promise<void> {
  const sent = await beginMessage(draft)
  begun.add(sent.key)
  dismissFailure(chatOf(sent))
  await watchOutbox(draft.user_id)
}

/** Resumes what this browser was sending before a reload, in another tab, or before the service was restarted. */
async function watchOutbox(user_id: string): Promise<void> {
  const entries = await listMessages(user_id)
  const known = new Map(sending.get().pending.map((each) => [each.entry.key, each]))
  const accepted = sending.get().pending.filter(({ message_id }) => message_id !== null)
  const open = entries.map((entry) => {
    const before = known.get(entry.key)
    // Another tab may have sent a part of it.
    return before && before.entry.part >= entry.part ? before : { ...pendingOf(entry), ...before, entry }
  })
  const isOpen = ({ entry }: PendingSend) => open.some((each) => each.entry.key === entry.key)
  set({ pending: [...accepted.filter((each) => !isOpen(each)), ...open] })
  for (const { entry, stalled } of sending.get().pending) if (!stalled) void run(entry)
}

function pendingOf(entry: Underway): PendingSend {
  const [chat, stalled] = [chatOf(entry), isStale(entry)]
  return { entry, chat, because: null, until: null, progress: null, stalled, message_id: null }
}

/** Watches until the returned function is called. */
export function startOutbox(user_id: string): () => void {
  void watchOutbox(user_id)
  // What is only typed changes nothing here.
  return onStoreChange(({ typed }) => !typed && void watchOutbox(user_id))
}

export function resume({ entry }: PendingSend): void {
  change(entry.key, { stalled: false })
  void run(entry)
}

/** Back into the composer. The key stays: sent unchanged, it is still the same message. */
export async function takeBack({ entry }: PendingSend): Promise<void> {
  await endMessage(entry, { key: messageKey(entry) })
}

const words = { begins: 'It goes out', once: 'it won’t be sent twice' }

async function run(entry: Underway): Promise<void> {
  const { key } = entry
  if (running.has(key)) return
  running.add(key)
  const chat = chatOf(entry)
  try {
    for (let part: Underway | undefined = entry; part; ) {
      const ended = await runPart(part)
      if (!ended) return
      const { next, answered } = ended
      await refreshChat(queryClient, chat)
      if (next) change(key, { entry: next, message_id: null })
      else if (answered) markAnswered(chat)
      part = next
    }
  } finally {
    running.delete(key)
    set({ pending: sending.get().pending.filter((each) => each.entry.key !== key || each.stalled) })
  }
}

interface EndedPart {
  readonly next?: Underway | undefined
  readonly answered?: boolean
}

/** Sends one message, and returns what is sent after it; undefined: the session has ended, or another tab knows. */
async function runPart(part: Underway): Promise<EndedPart | undefined> {
  const { key } = part
  const outcome = await runUntilKnown({
    key,
    ask: () => request(part),
    isOpen: () => isUnderway(part),
    onWait: (waiting) => change(key, waiting ?? { because: null, until: null }),
    resumed: !begun.has(key),
    ambiguous: 'end',
    words,
  })
  if (outcome.is === 'left') {
    const now = await readAgain(part)
    return now && now.part > part.part ? { next: now } : undefined // guard: goes on where another tab was
  }
  const answered = outcome.is === 'done'
  if (outcome.is === 'refused') {
    await takeRefusal(part, outcome)
    // What follows is back with it.
    return {}
  }
  const next = nextMessage(part)
  if (next) return { next: await advanceMessage(next), answered }
  if (outcome.is === 'done') change(key, { progress: null, message_id: outcome.answer.message_id })
  await endMessage(part)
  return { answered }
}

function request(entry: Underway) {
  const { key, body, files } = entry
  const [file] = files
  const { workspace_id, account_id, chat_id } = chatOf(entry)
  change(key, { until: null, progress: file ? 0 : null })
  return ask(
    'POST /w/{workspace_id}/messages',
    { params: { workspace_id }, body: { account_id, chat_id, text: String(body) } },
    {
      key: messageKey(entry),
      ...(file && { upload: uploadOf(file, (progress) => change(key, { progress })) }),
    },
  )
}

function markAnswered(chat: ChatRef): void {
  const unread = queryClient.getQueryData(chatQuery(chat).queryKey)?.chat.unread_count ?? 0
  if (unread > 0 && answeringMarksRead()) void markRead(chat, { unread: false, before: unread, quiet: true })
}

/** The text is back in the composer, with why. */
async function takeRefusal(entry: Underway, { error, unsure }: { error: unknown; unsure: boolean }) {
  const known = error instanceof Refused ? error : undefined
  // 503: nothing was sent, and the same key may run later. A refusal stands for its key, so the text gets a new one.
  const back = { key: known?.status === 503 || unsure ? messageKey(entry) : newKey() }
  const wait = known?.retry_after
  const until = wait === undefined ? null : new Date(Date.now() + wait * 1_000).toISOString()
  const sentence = known?.message ?? 'The page itself failed.'
  const file = entry.files[0]?.name ?? null
  set({ failures: new Map(sending.get().failures).set(failureKey(chatOf(entry)), { sentence, until, file }) })
  await endMessage(entry, back)
}
