/**
 * The past of an account: its chats, contacts and recent history once after its first connect, and older pages on request.
 * Runs beside the live updates, which start before it, so that no message is missed between the two.
 */

import type { App } from '../app.ts'
import { refreshLastMessages, storeChats } from '../capabilities/chats/chats.ts'
import { storeContacts } from '../capabilities/contacts/contacts.ts'
import {
  giveUpWanted,
  isWanted,
  nextUnsynced,
  noteChatSynced,
  noteChats,
  noteGapFetched,
  noteHistory,
  noteHistoryPhase,
  noteSynced,
  readSync,
  type WantedHistory,
} from '../capabilities/history/history.ts'
import { findDeleted, storeEdits, storeMessages } from '../capabilities/messages/messages.ts'
import type { Tx } from '../db/sql.ts'
import { emit, emitted, type NewEvent } from '../events/emit.ts'
import { noteFlood } from '../ledger/floods.ts'
import { type HeldLease, requireLease } from '../ledger/leases.ts'
import { noteProofs, proofsIn } from '../ledger/proofs.ts'
import { within } from '../ledger/within.ts'
import type { ChatNumber } from '../lib/shapes.ts'
import { toWellFormed } from '../lib/text.ts'
import type { Chat, ListedChat, Message, Outcome, Platform, Session } from '../platform/port.ts'
import { chatsWithoutErased, pastWithoutErased, peopleWithoutErased } from './erased.ts'
import { handleIncoming } from './incoming.ts'

const chatsPage = 100
/** Chats stored in one transaction, which locks the account: its sends wait meanwhile. */
const chatsStep = 25
const contactsPage = 500
/** Per chat. Older ones are fetched on request, so an account with longer chats seldom has its whole history. */
const recentMessages = 50
const olderMessages = 100
/** After this many pages a gap stays open, and the store begins behind it. */
const gapPagesMax = 20
const retryMs = 5_000
const callMsMax = 20_000

export interface SyncContext {
  readonly held: HeldLease
  readonly session: Session
  readonly platform: Platform
  readonly signal: AbortSignal
}

/** Continues where an earlier session stopped, until everything recent is stored or the session is over. */
export async function syncAccount(app: App, syncing: SyncContext): Promise<void> {
  const { held, signal } = syncing
  while (!signal.aborted) {
    const { phase, cursor } = await readSync(app.db, held)
    if (phase === 'done') return
    // guard: the sync continues at its page
    if (phase === 'chats') await syncChats(app, syncing, cursor)
    else if (phase === 'contacts') await syncContacts(app, syncing)
    else if (!(await syncNextChat(app, syncing))) await noteSynced(app.db, held)
  }
}

/** Stores one page of the chat list, each chat with its last message: once all are listed, the inbox is complete. */
async function syncChats(app: App, syncing: SyncContext, after: string | null): Promise<void> {
  const { held, session } = syncing
  const page = await ask(app, syncing, () => session.chats({ after, limit: chatsPage }))
  if (!page) return
  for (let at = 0; at === 0 || at < page.chats.length; at += chatsStep) {
    const chats = page.chats.slice(at, at + chatsStep)
    const isLast = at + chatsStep >= page.chats.length
    await inOneStep(app, held, async (tx) => {
      // The last messages first: they may be with what an erased person has written again.
      const events = await storePast(app, tx, syncing, chats.flatMap(lastOf))
      const shown = await chatsWithoutErased(
        tx,
        held,
        chats.map(({ chat }) => chat),
      )
      await storeChats(
        tx,
        held,
        shown.map((chat) => ({ chat, last: null })),
      )
      await storeContacts(tx, held, shown.flatMap(peopleOf))
      if (isLast) await noteChats(tx, held, page)
      return events
    })
  }
}

function lastOf({ chat, last }: ListedChat): Past[] {
  return last ? [{ chat_id: chat.id, message: last }] : []
}

/** Of private chats: each person once. */
function peopleOf({ kind, participants }: Chat) {
  return kind === 'private' ? (participants ?? []).filter((person) => person.kind === 'person') : []
}

async function syncContacts(app: App, syncing: SyncContext): Promise<void> {
  const { held, session } = syncing
  const people = await ask(app, syncing, () => session.contacts())
  if (!people) return
  for (let at = 0; at < people.length; at += contactsPage) {
    await app.db.transaction(async (tx) => {
      await requireLease(tx, held)
      const page = people.slice(at, at + contactsPage).filter(({ kind }) => kind === 'person')
      await storeContacts(tx, held, await peopleWithoutErased(tx, held, page))
    })
  }
  await noteHistoryPhase(app.db, held)
}

/** False: no chat is left. */
async function syncNextChat(app: App, syncing: SyncContext): Promise<boolean> {
  const { held, session } = syncing
  const next = await nextUnsynced(app.db, held)
  if (!next) return false
  const { chat_id, gap_after } = next
  if (gap_after !== null) {
    await closeGap(app, syncing, { chat_id, gap_after })
    return true
  }
  const page = { chat_id, before: null, limit: recentMessages }
  const messages = await ask(app, syncing, () => session.history(page))
  if (messages) await storeHistory(app, syncing, { chat_id, messages, limit: recentMessages, counts: true })
  return true
}

/**
 * Fetches what was missed, back to the newest message that was stored before. Nothing counts as fetched before all of it is
 * stored: after a crash the chat is fetched again.
 */
async function closeGap(
  app: App,
  syncing: SyncContext,
  { chat_id, gap_after }: { readonly chat_id: ChatNumber; readonly gap_after: string },
): Promise<void> {
  const { held, session } = syncing
  const missed: Message[] = []
  for (let closed = false, pages = 0; !closed && pages < gapPagesMax; pages++) {
    const oldest = missed.at(-1)
    const before = oldest ? { message_id: oldest.id } : null
    const page = await ask(app, syncing, () => session.history({ chat_id, before, limit: olderMessages }))
    if (!page) return
    missed.push(...page)
    closed = page.length < olderMessages || page.some(({ id }) => BigInt(id) <= BigInt(gap_after)) // guard: a gap is fetched whole
    if (!closed && pages < gapPagesMax - 1) continue
    await inOneStep(app, held, async (tx) => {
      const events = await storePast(app, tx, syncing, pastOf(chat_id, missed))
      await noteGapFetched(tx, held, { chat_id, oldest_id: missed.at(-1)?.id ?? null, closed })
      await noteChatSynced(tx, held)
      return events
    })
  }
}

/** Fetches one older page that a caller waits for. */
export async function fetchWanted(app: App, syncing: SyncContext, wanted: WantedHistory): Promise<void> {
  const { held, session } = syncing
  const { chat_id, oldest_id } = wanted
  if (!(await isWanted(app.db, wanted))) return // guard: asked once
  const before = oldest_id === null ? null : { message_id: oldest_id }
  const asked = session.history({ chat_id, before, limit: olderMessages })
  const outcome = await answered(app, asked, syncing.signal)
  if (outcome.kind === 'accepted') {
    const first = oldest_id === null
    await storeHistory(app, syncing, {
      chat_id,
      messages: outcome.value,
      limit: olderMessages,
      counts: first,
    })
  } else {
    app.log.warn({ account_id: held.account_id, outcome: outcome.kind }, 'older history could not be fetched')
    if (outcome.kind === 'flood_wait') await noteFlood(app.db, held.account_id, outcome)
    await giveUpWanted(app.db, wanted)
  }
}

interface HistoryPage {
  readonly chat_id: ChatNumber
  readonly messages: readonly Message[]
  readonly limit: number
  /** It is the chat's first page, so it counts towards the account's progress. */
  readonly counts: boolean
}

/** A short page is the beginning of the chat. */
async function storeHistory(
  app: App,
  syncing: SyncContext,
  { chat_id, messages, limit, counts }: HistoryPage,
): Promise<void> {
  const { held } = syncing
  const past = pastOf(chat_id, messages)
  const oldest_id = messages.at(-1)?.id ?? null
  await inOneStep(app, held, async (tx) => {
    const events = await storePast(app, tx, syncing, past)
    await noteHistory(tx, held, { chat_id, oldest_id, complete: messages.length < limit })
    if (counts) await noteChatSynced(tx, held)
    return events
  })
}

/** Stores a part of the past with how far it reaches, under the lease. */
async function inOneStep(app: App, held: HeldLease, store: (tx: Tx) => Promise<NewEvent[]>): Promise<void> {
  const replied = await app.db.transaction(async (tx) => {
    await requireLease(tx, held)
    const events = await store(tx)
    emit(tx, held.workspace_id, events)
    return events
  })
  if (replied.length > 0) app.wake.signal(emitted)
  const { workspace_id, account_id } = held
  app.wake.mark(
    { workspace_id, kind: 'messages', account_id },
    { workspace_id, kind: 'accounts', account_id },
  )
}

interface Past {
  readonly chat_id: ChatNumber
  readonly message: Message
}

function pastOf(chat_id: ChatNumber, messages: readonly Message[]): Past[] {
  return messages.map((message) => ({ chat_id, message }))
}

/** Stores messages of the past and passes them to `handleIncoming`, but does not announce them. Returns the events of replies. */
async function storePast(app: App, tx: Tx, { held }: SyncContext, all: readonly Past[]): Promise<NewEvent[]> {
  const past = await pastWithoutErased(tx, held, all)
  // The ledger before the messages: every transaction locks them in this order.
  await noteProofs(tx, held.account_id, proofsIn(past.map(({ message }) => message))) // guard: the past proves as well
  const ids = past.map(({ message }) => message.id)
  const isDeleted = await findDeleted(tx, held, ids)
  const seen = past.map((one) => ({ ...one, announce: false })).filter((each) => !isDeleted(each))
  const stored = await storeMessages(tx, held, seen)
  // Stored messages may have been edited while their updates went missing.
  const edited = await storeEdits(
    tx,
    held,
    seen.filter(({ message }) => message.edited_at !== null),
  )
  await refreshLastMessages(tx, held, [...new Set(past.map(({ chat_id }) => chat_id))])
  return handleIncoming(app, tx, held, [...stored, ...edited]) // guard: history is handled as incoming
}

/** The platform's answer; undefined if it gave none, after a pause as long as the platform asked for. */
async function ask<T>(
  app: App,
  syncing: SyncContext,
  call: () => Promise<Outcome<T>>,
): Promise<T | undefined> {
  const {
    held,
    platform: { paceMs },
    signal,
  } = syncing
  const outcome = await answered(app, call(), signal)
  if (outcome.kind === 'accepted') {
    if (paceMs > 0) await pause(app, paceMs, signal)
    return outcome.value
  }
  app.log.warn(
    { account_id: held.account_id, outcome: outcome.kind },
    'the sync of older history was held up',
  )
  if (outcome.kind === 'flood_wait') await noteFlood(app.db, held.account_id, outcome)
  await pause(app, outcome.kind === 'flood_wait' ? outcome.retry_after_seconds * 1000 : retryMs, signal)
  return undefined
}

/** Gives up on a call that is not answered in time, so that it cannot block the sync forever. */
async function answered<T>(
  { sources }: App,
  call: Promise<Outcome<T>>,
  signal: AbortSignal,
): Promise<Outcome<T>> {
  const outcome = await within(sources, callMsMax, call, signal)
  if (outcome) return toWellFormed(outcome)
  return { kind: 'unknown', reason: 'The platform did not answer in time.' }
}

async function pause({ sources }: App, ms: number, signal: AbortSignal): Promise<void> {
  await within(sources, ms, new Promise<void>(() => {}), signal)
}
