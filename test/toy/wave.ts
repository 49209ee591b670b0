/** Waving to a person: an operation on the platform that src/ does not know. */
import { z } from 'zod'
import type { App } from '../../src/app.ts'
import { requireChat } from '../../src/capabilities/chats/chats.ts'
import type { Account } from '../../src/contract.ts'
import { type ChatId, chatNumber } from '../../src/lib/shapes.ts'
import { type NewOperation, type OperationKind, operationKind, requireChatOf } from '../../src/operation.ts'
import type { Sent } from '../../src/platform/port.ts'

const payload = z.object({ times: z.number() })

export async function wantWave(
  app: App,
  accounts: readonly Account[],
  { chat_id, times }: { readonly chat_id: ChatId; readonly times: number },
): Promise<NewOperation> {
  const account = await requireChat(app, accounts, { chat_id, missing: 'chat_unavailable' })
  return { account_id: account.id, chat_id: chatNumber(chat_id), payload: { times } }
}

export const wave = operationKind<z.infer<typeof payload>, string, Sent>({
  kind: 'toy_wave',
  found_in_history: true,
  stopped_by: 'sends',
  forgettable: true,
  payload,
  answer: z.object({ message_id: z.string(), at: z.string() }),
  asks: () => false,
  prepare: async (_, { payload: { times } }) => ({ kind: 'accepted', value: '👋'.repeat(times) }),
  submit: (session, operation, text) =>
    session.send({ chat_id: requireChatOf(operation), text, file: null, random_id: operation.random_id }),
  reply: (_, done) =>
    done.map(({ operation: { id }, value: { message_id } }) => ({ operation_id: id, message_id })),
  store: async () => {},
})
export const operations: readonly OperationKind[] = [wave]
