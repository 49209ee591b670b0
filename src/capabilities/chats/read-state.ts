/** Marking a chat read or unread: the whole operation, from the request to what is stored. */
import { z } from 'zod'
import type { App } from '../../app.ts'
import type { Account } from '../../contract.ts'
import { type ChatId, chatIdOf, chatNumber } from '../../lib/shapes.ts'
import {
  type NewOperation,
  type Operation,
  type OperationKind,
  operationKind,
  requireChatOf,
} from '../../operation.ts'
import { requireChat, storeUnreadCounts } from './chats.ts'

const payload = z.object({ unread: z.boolean() })
type Payload = z.infer<typeof payload>

/** The operation that a request asks for. */
export async function wantReadState(
  app: App,
  accounts: readonly Account[],
  { chat_id, unread }: { readonly chat_id: ChatId; readonly unread: boolean },
): Promise<NewOperation> {
  const account = await requireChat(app, accounts, { chat_id, missing: 'chat_unavailable' })
  const stored: Payload = { unread }
  return { account_id: account.id, chat_id: chatNumber(chat_id), payload: stored }
}

/** Includes the requested state, because a row restored from a journal has no payload. */
const answer = z.object({ unread_count: z.number(), unread: z.boolean() })

export const setReadState = operationKind<Payload, null, z.infer<typeof answer>>({
  kind: 'set_read_state',
  found_in_history: false,
  stopped_by: 'reading',
  forgettable: true,
  payload,
  answer,
  asks: () => false,
  prepare: async () => ({ kind: 'accepted', value: null }),
  async submit(session, operation) {
    const { unread } = operation.payload
    const outcome = await session.setReadState(requireChatOf(operation), unread)
    return outcome.kind === 'accepted' ? { ...outcome, value: { ...outcome.value, unread } } : outcome
  },
  reply: (_, done) => done.map(({ operation, value: { unread } }) => replyOf(operation, unread)),
  async store(tx, done) {
    for (const { operation, value } of done) {
      await storeUnreadCounts(tx, operation, new Map([[requireChatOf(operation), value.unread_count]]))
    }
  },
})
export const operations: readonly OperationKind[] = [setReadState]

/** The reply of POST /chats/{chat_id}/read-state. */
function replyOf(operation: Operation, unread: boolean) {
  const message = unread ? 'The chat is marked unread.' : 'The chat is marked read.'
  const chat_id = chatIdOf(requireChatOf(operation))
  return { ok: true, message, account_id: operation.account_id, chat_id, unread }
}
