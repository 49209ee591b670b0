/** Sending one message, with at most one file: everything about the operation, from the request to what is counted. */
import { z } from 'zod'
import { countSent } from '../../access/ledger/account-usage.ts'
import { readChunks } from '../../access/ledger/files.ts'
import type { App } from '../../app.ts'
import type { Account, AccountKey } from '../../contract.ts'
import type { Tx } from '../../db/sql.ts'
import { type ChatId, chatIdOf, chatNumber } from '../../lib/shapes.ts'
import {
  type NewOperation,
  type Operation,
  type OperationKind,
  operationKind,
  requireChatOf,
} from '../../operation.ts'
import type { Message, Outcome, Sent, UploadedFile } from '../../platform/port.ts'
import type { FormFile } from '../../route.ts'
import { refreshLastMessages, requireChat } from '../chats/chats.ts'
import { storeMessages } from './messages.ts'

const file = z.object({ file_name: z.string(), media_type: z.string(), size: z.number() })
const payload = z.object({ text: z.string(), file: file.nullable() })
type Payload = z.infer<typeof payload>

/** The operation as a request wants it. */
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

function sendKind(kind: string): OperationKind {
  return operationKind<Payload, UploadedFile | null, Sent>({
    kind,
    found_in_history: true,
    forgettable: false,
    payload,
    answer: z.object({ message_id: z.string(), at: z.string() }),
    asks: ({ file_id }) => file_id !== null,
    async prepare({ app, session }, { file_id, payload: { file } }): Promise<Outcome<UploadedFile | null>> {
      if (file_id === null || !file) return { kind: 'accepted', value: null }
      return session.upload({ ...file, chunks: requireWhole(readChunks(app.db, file_id), file.size) })
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
    reply: (_, operation, sent) => replyOf(operation, sent),
    store: storeSent,
    count: (tx, account, operation) => countSent(tx, account, requireChatOf(operation)),
  })
}

export const sendMessage = sendKind('send_message')
/** The first message of a chat that was just opened. */
export const startChatText = sendKind('start_chat_text')
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

/** What POST /messages answers, first and on every repeat. */
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

/** Stores the sent message. The platform's update about it, before or after, stores the same row. */
async function storeSent(
  tx: Tx,
  account: AccountKey,
  operation: Operation<Payload | null>,
  sent: Sent,
): Promise<void> {
  // A row that was restored from a journal has no text. The platform's update about the message brings it.
  if (!operation.payload) return
  const chat_id = requireChatOf(operation)
  const message = messageOf(operation.payload, { ...sent, random_id: operation.random_id })
  await Promise.all([
    storeMessages(tx, account, [{ chat_id, message, announce: false }]),
    refreshLastMessages(tx, account, [chat_id]),
  ])
}

function messageOf(
  { text, file }: Payload,
  { message_id, at, random_id }: Sent & { random_id: string },
): Message {
  return {
    id: message_id,
    text,
    is_sender: true,
    sender_id: null,
    timestamp: at,
    edited_at: null,
    attachments: file ? [file] : [],
    random_id,
  }
}
