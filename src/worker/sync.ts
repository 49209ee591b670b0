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
  noteHistory,
  notePhase,
  readSync,
  type WantedHistory,
} from '../capabilities/history/history.ts'
import { findDeleted, storeMessages } from '../capabilities/messages/messages.ts'
import { emit, emitted } from '../events/emit.ts'
import { noteFlood } from '../ledger/floods.ts'
import { type Held, requireLease } from '../ledger/leases.ts'
import { noteProofs, proofsIn } from '../ledger/proofs.ts'
import { within } from '../ledger/within.ts'
import type { ChatNumber } from '../lib/shapes.ts'
import { toWellFormed } from '../lib/text.ts'
import type { Chat, Message, Outcome, Platform, Session } from '../platform/port.ts'
import { hear } from './hearing.ts'

const chatsPage = 100
const contactsPage = 500
/** Per chat. Older ones are fetched on request, so an account with longer chats seldom has its whole history. */
const recentMessages = 50
const olderMessages = 100
const retryMs = 5_000
const callMsMax = 20_000

export interface SyncContext {
  readonly held: Held
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
    if (phase === 'chats') await syncChats(app, syncing, cursor)
    else if (phase === 'contacts') await syncContacts(app, syncing)
    else if (!(await syncNextChat(app, syncing))) await notePhase(app.db, held, 'done')
  }
}

async function syncChats(app: App, syncing: SyncContext, after: string | null): Promise<void> {
  const { held, session } = syncing
  const page = await ask(app, syncing, () => session.chats({ after, limit: chatsPage }))
  if (!page) return
  await app.db.transaction(async (tx) => {
    await requireLease(tx, held)
    await storeChats(
      tx,
      held,
      page.chats.map(({ chat }) => ({ chat, last: null })),
    )
    await storeContacts(
      tx,
      held,
      page.chats.flatMap(({ chat }) => peopleOf(chat)),
    )
    await noteChats(tx, held, { chat_ids: page.chats.map(({ chat }) => chat.id), next: page.next })
  })
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
      await storeContacts(
        tx,
        held,
        people.slice(at, at + contactsPage).filter(({ kind }) => kind === 'person'),
      )
    })
  }
  await notePhase(app.db, held, 'history')
}

/** False: no chat is left. */
async function syncNextChat(app: App, syncing: SyncContext): Promise<boolean> {
  const { held, session } = syncing
  const chat_id = await nextUnsynced(app.db, held)
  if (chat_id === undefined) return false
  const page = { chat_id, before: null, limit: recentMessages }
  const messages = await ask(app, syncing, () => session.history(page))
  if (messages) await storeHistory(app, syncing, { chat_id, messages, limit: recentMessages, counts: true })
  return true
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
    if (outcome.kind === 'flood_wait') await noteFlood(app.db, held.account_id, outcome.retry_after_seconds)
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

/** Stores the past and passes it to `hear`, but does not announce it. A short page is the beginning of the chat. */
async function storeHistory(
  app: App,
  { held, platform }: SyncContext,
  { chat_id, messages, limit, counts }: HistoryPage,
): Promise<void> {
  const replied = await app.db.transaction(async (tx) => {
    await requireLease(tx, held)
    // The ledger before the messages: every transaction locks them in this order.
    await noteProofs(tx, held.account_id, proofsIn(messages)) // guard: the past proves as well
    const ids = messages.map(({ id }) => id)
    const isDeleted = await findDeleted(tx, held, { ids, ownCountUpTo: platform.ownCountUpTo })
    const seen = messages.map((message) => ({ chat_id, message, announce: false }))
    const stored = await storeMessages(
      tx,
      held,
      seen.filter((each) => !isDeleted(each)),
    )
    await refreshLastMessages(tx, held, [chat_id])
    const events = await hear(app, tx, held, stored) // guard: history is heard
    emit(tx, held.workspace_id, events)
    const oldest_id = messages.at(-1)?.id ?? null
    await noteHistory(tx, held, { chat_id, oldest_id, complete: messages.length < limit })
    if (counts) await noteChatSynced(tx, held)
    return events
  })
  if (replied.length > 0) app.wake.signal(emitted)
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
  if (outcome.kind === 'flood_wait') await noteFlood(app.db, held.account_id, outcome.retry_after_seconds)
  await pause(app, outcome.kind === 'flood_wait' ? outcome.retry_after_seconds * 1000 : retryMs, signal)
  return undefined
}

/** Gives up on a call that is not answered in time, so that it cannot block the sync for ever. */
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
