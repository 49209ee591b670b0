/** What each kind of operation does with a session: before the boundary, the one call, and what is stored of it. */
import type { Held, Operation } from '../access/ledger/boundary.ts'
import { readChunks } from '../access/ledger/files.ts'
import { countLookup, countSent } from '../access/ledger/safety.ts'
import type { App } from '../app.ts'
import {
  refreshLastMessages,
  startedReply,
  storeChats,
  storeUnreadCounts,
  unreadReply,
} from '../capabilities/chats/chats.ts'
import { storeContacts, withKnownPhone } from '../capabilities/contacts/contacts.ts'
import { sentMessage, sentReply, storeMessages } from '../capabilities/messages/messages.ts'
import { findSuppressed } from '../capabilities/suppressions/suppressions.ts'
import type { Owner } from '../contract.ts'
import type { Tx } from '../db/sql.ts'
import type { ChatNumber } from '../lib/shapes.ts'
import type {
  Attachment,
  Chat,
  Identifier,
  Outcome,
  Person,
  Sent,
  Session,
  UploadedFile,
} from '../platform/port.ts'

interface Kind<P, V> {
  /** Whether preparing it asks the platform for anything. */
  asks(operation: Operation): boolean
  /** Dying here costs nothing. `forbidden`: our own rules say no. */
  prepare(app: App, held: Held, session: Session, operation: Operation): Promise<Outcome<P> | Forbidden>
  /** The one call. Nothing is awaited before it. */
  submit(session: Session, operation: Operation, prepared: P): Promise<Outcome<V>>
  /** What the caller is told, now and on every repeat. */
  reply(tx: Tx, operation: Operation, value: V): Promise<unknown> | unknown
  /** What changes here, in one transaction with the row's completion. Doing it twice changes nothing more. */
  store(tx: Tx, held: Owner, operation: Operation, value: V): Promise<unknown>
  /** What is counted, once. */
  count?(tx: Tx, held: Owner, operation: Operation): void
}

export interface Forbidden {
  readonly kind: 'forbidden'
  readonly detail: string
}

const nothing: Outcome<undefined> = { kind: 'accepted', value: undefined }

function requireNumber(chat_id: ChatNumber | null): ChatNumber {
  if (chat_id === null) throw new Error('An operation in a chat does not name it.')
  return chat_id
}

export interface SendPayload {
  readonly text: string
  readonly file: Attachment | null
}

const send: Kind<UploadedFile | undefined, Sent> = {
  asks: ({ file_id }) => file_id !== null,
  async prepare(app, _, session, { file_id, payload }) {
    const { file } = payload as SendPayload
    if (file_id === null || !file) return nothing
    return session.upload({ ...file, chunks: whole(readChunks(app.db, file_id), file.size) })
  },
  submit(session, { chat_id, random_id, payload }, file) {
    const { text } = payload as SendPayload
    return session.send({ chat_id: requireNumber(chat_id), text, file: file ?? null, random_id })
  },
  store: storeSent,
  count: countSend,
  reply: (_, operation, sent) => sentReply(operation, sent),
}

/** A file that is not all there is not sent. */
async function* whole(chunks: AsyncIterable<Buffer>, size: number): AsyncGenerator<Buffer> {
  let seen = 0
  for await (const chunk of chunks) {
    seen += chunk.length
    yield chunk
  }
  if (seen !== size) throw new Error(`The file has ${seen} of ${size} bytes.`)
}

/** The message as it is, whoever tells of it: the answer, or later its echo. */
export async function storeSent(
  tx: Tx,
  owner: Owner,
  operation: Pick<Operation, 'id' | 'chat_id' | 'payload' | 'random_id'>,
  sent: Sent,
): Promise<void> {
  const payload = operation.payload as SendPayload | null
  // A row that was put back from a journal does not know its text; the update about the message does.
  if (!payload) return
  const chat_id = requireNumber(operation.chat_id)
  const message = sentMessage(payload, { ...sent, random_id: operation.random_id })
  await Promise.all([
    storeMessages(tx, owner, [{ chat_id, message, announce: false }]),
    refreshLastMessages(tx, owner, [chat_id]),
  ])
}

export function countSend(tx: Tx, owner: Owner, { chat_id }: Pick<Operation, 'chat_id'>): void {
  if (chat_id !== null) countSent(tx, owner, chat_id)
}

interface StartPayload {
  readonly identifier: Identifier
}

const start: Kind<Person, Chat> = {
  asks: () => true,
  async prepare(app, held, session, { payload }) {
    const { identifier } = payload as StartPayload
    await countLookup(app.db, held)
    const found = await session.resolve(identifier)
    if (found.kind !== 'accepted') return found
    if (found.value.kind !== 'person') return { kind: 'refused', reason: 'identity_ineligible' }
    const person = await withKnownPhone(app.db, held, found.value)
    const suppressed = await findSuppressed(app.db, held.workspace_id, person)
    return suppressed ? { kind: 'forbidden', detail: 'identity_suppressed' } : found
  },
  submit: (session, _, person) => session.openChat(person.id),
  reply: (tx, { account_id }, chat) => startedReply(tx, account_id, chat),
  async store(tx, held, _, chat) {
    await Promise.all([
      storeChats(tx, held, [{ chat, last: null }]),
      storeContacts(
        tx,
        held,
        chat.participants.filter(({ kind }) => kind === 'person'),
      ),
    ])
  },
}

/** With what was asked for: a row that was put back from a journal does not know it. */
const readState: Kind<undefined, { readonly unread_count: number; readonly unread: boolean }> = {
  asks: () => false,
  prepare: async () => nothing,
  async submit(session, { chat_id, payload }) {
    const { unread } = payload as { unread: boolean }
    const outcome = await session.setReadState(requireNumber(chat_id), unread)
    return outcome.kind === 'accepted' ? { ...outcome, value: { ...outcome.value, unread } } : outcome
  },
  reply: (_, operation, { unread }) => unreadReply(operation, unread),
  store: (tx, held, { chat_id }, { unread_count }) =>
    storeUnreadCounts(tx, held, new Map([[requireNumber(chat_id), unread_count]])),
}

const kinds: Readonly<Record<string, Kind<never, never>>> = {
  send_message: send as unknown as Kind<never, never>,
  start_chat_text: send as unknown as Kind<never, never>,
  start_chat: start as unknown as Kind<never, never>,
  set_read_state: readState as unknown as Kind<never, never>,
}

export function kindOf({ kind }: Operation): Kind<unknown, unknown> | undefined {
  return kinds[kind] as unknown as Kind<unknown, unknown> | undefined
}
