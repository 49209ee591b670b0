/** Sending one message with at most one file: the whole operation, from the request to the counters. */
import { z } from 'zod'
import type { App } from '../../app.ts'
import type { Account } from '../../contract.ts'
import { type Sql, sql, type Tx } from '../../db/sql.ts'
import { countSent, forbiddenWhileColdStopped } from '../../ledger/account-usage.ts'
import { readChunks } from '../../ledger/files.ts'
import { type ChatId, chatIdOf, chatNumber } from '../../lib/shapes.ts'
import {
  type Completion,
  type NewOperation,
  type Operation,
  type OperationKind,
  operationKind,
  requireChatOf,
} from '../../operation.ts'
import type { Sent, UploadedFile } from '../../platform/port.ts'
import type { FormFile } from '../../route.ts'
import { noteLastMessages, requireChat } from '../chats/chats.ts'
import { forbiddenByErasure } from '../people/people.ts'
import { forbiddenBySuppression } from '../suppressions/suppressions.ts'
import { type SentRow, storeSentMessages } from './sent-messages.ts'

const file = z.object({ file_name: z.string(), media_type: z.string(), size: z.number() })
const payload = z.object({ text: z.string(), file: file.nullable() })
type Payload = z.infer<typeof payload>

/** The operation that a request asks for. */
export async function wantMessage(
  app: App,
  accounts: readonly Account[],
  request: { readonly chat_id: ChatId; readonly text: string; readonly attachment?: FormFile },
): Promise<NewOperation> {
  const { chat_id, text, attachment = null } = request
  const account = await requireChat(app, accounts, { chat_id, missing: 'chat_unavailable' })
  const stored: Payload = { text, file: attachment && file.parse(attachment) }
  return {
    account_id: account.id,
    chat_id: chatNumber(chat_id),
    payload: stored,
    file_id: attachment?.file_id,
  }
}

/** A text as the second part of another operation. */
export function wantText(account_id: string, chat_id: ChatId, text: string): NewOperation {
  const stored: Payload = { text, file: null }
  return { account_id, chat_id: chatNumber(chat_id), payload: stored }
}

function sendKind(kind: string, more: { readonly recheck?: Sql } = {}): OperationKind {
  return operationKind<Payload, UploadedFile | null, Sent>({
    ...more,
    kind,
    found_in_history: true,
    stopped_by: 'sends',
    forgettable: false,
    payload,
    answer: z.object({ message_id: z.string(), at: z.string() }),
    asks: ({ file_id }) => file_id !== null,
    async prepare({ db, session }, operation) {
      const { file_id } = operation
      const { file } = operation.payload
      if (file_id === null || !file) return { kind: 'accepted', value: null }
      return session.upload({ ...file, chunks: requireWhole(readChunks(db, file_id), file.size) })
    },
    submit: (session, operation, uploaded) => {
      const { random_id, payload } = operation
      return session.send({
        chat_id: requireChatOf(operation),
        text: payload.text,
        file: uploaded,
        random_id,
      })
    },
    reply: (_, done) => done.map(({ operation, value }) => replyOf(operation, value)),
    store: storeSent,
    count: (tx, done) => {
      const sent = done.map(({ operation }) => ({ ...operation, chat_id: requireChatOf(operation) }))
      countSent(tx, sent)
    },
    message: ({ payload: { text } }, { message_id }) => ({ message_id, text }),
  })
}

const firstOf = (...reasons: readonly Sql[]): Sql =>
  reasons.reduce((before, reason) => sql`coalesce(${before}, ${reason})`)

export const sendMessage = sendKind('send_message', {
  recheck: firstOf(
    forbiddenByErasure, // guard: no message crosses to an erased person
    forbiddenWhileColdStopped, // guard: no first message while they are stopped
  ),
})
/** The first message of a newly opened chat. The person may have been suppressed since, even much later. */
export const startChatText = sendKind('start_chat_text', {
  // guard: suppression in the second half
  recheck: firstOf(forbiddenByErasure, forbiddenBySuppression, forbiddenWhileColdStopped),
})
export const operations: readonly OperationKind[] = [sendMessage, startChatText]

/** Throws if chunks are missing, so that no partial file is sent. */
async function* requireWhole(chunks: AsyncIterable<Buffer>, size: number): AsyncGenerator<Buffer> {
  let seen = 0
  for await (const chunk of chunks) {
    seen += chunk.length
    yield chunk
  }
  if (seen !== size) throw new Error(`The file has ${seen} of ${size} bytes.`)
}

/** The reply of POST /messages, first and on every repeat. */
function replyOf(operation: Operation, { message_id, at }: Sent) {
  return {
    ok: true,
    message: 'The platform accepted the message.',
    operation_id: operation.id,
    account_id: operation.account_id,
    chat_id: chatIdOf(requireChatOf(operation)),
    message_id,
    timestamp: new Date(at).toISOString(),
  }
}

/** Stores what was sent. The platform's own update about it may arrive before or after. */
export async function storeSent(tx: Tx, done: readonly Completion<Payload | null, Sent>[]): Promise<void> {
  const rows = done.map(({ operation, value: { message_id: id, at: sent_at } }): SentRow => {
    const { account_id, workspace_id, random_id, payload } = operation
    const { text = '', file = null } = payload ?? {}
    const attachments = file ? [{ ...file, index: 0, kind: 'file' as const }] : []
    const chat_id = requireChatOf(operation)
    const has_content = payload !== null
    return { account_id, workspace_id, chat_id, id, text, sent_at, attachments, random_id, has_content }
  })
  const shown = rows.filter(({ has_content }) => has_content)
  await Promise.all([storeSentMessages(tx, rows), noteLastMessages(tx, shown)])
}
