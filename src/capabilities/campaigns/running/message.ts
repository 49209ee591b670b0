/** A message of a campaign or a broadcast, as an operation on the platform. It is never queued; its recipient is. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { App } from '../../../app.ts'
import { countSent } from '../../../ledger/account-usage.ts'
import { chatIdOf } from '../../../lib/shapes.ts'
import { type OperationKind, operationKind, requireChatOf } from '../../../operation.ts'
import type { Sent } from '../../../platform/port.ts'
import { storeSent } from '../../messages/send.ts'
import { settleRecipients } from './outcomes.ts'

const payload = z.object({
  text: z.string(),
  /** The track; null for the first message. */
  branch: z.string().nullable(),
  variant: z.number(),
  /** The person was looked up for this message, so their chat may be new here. */
  found: z.boolean(),
})
type Payload = z.infer<typeof payload>

function messageKind(kind: string): OperationKind {
  return operationKind<Payload, null, Sent>({
    kind,
    found_in_history: true,
    stopped_by: 'sends',
    forgettable: false,
    payload,
    answer: z.object({ message_id: z.string(), at: z.string() }),
    asks: () => false,
    prepare: async () => ({ kind: 'accepted', value: null }),
    submit: (session, operation) =>
      session.send({
        chat_id: requireChatOf(operation),
        text: operation.payload.text,
        file: null,
        random_id: operation.random_id,
      }),
    reply: (_, done) =>
      done.map(({ operation, value: { message_id, at } }) => ({
        account_id: operation.account_id,
        chat_id: chatIdOf(requireChatOf(operation)),
        message_id,
        timestamp: new Date(at).toISOString(),
      })),
    store: (tx, done) =>
      storeSent(
        tx,
        done.map(({ operation, value }) => ({
          operation: {
            ...operation,
            payload: operation.payload && { text: operation.payload.text, file: null },
          },
          value,
        })),
      ),
    count: (tx, done) => {
      countSent(
        tx,
        done.map(({ operation }) => ({ ...operation, chat_id: requireChatOf(operation) })),
      )
    },
    // The update about the first message to a new person brings their chat, so it must be stored.
    message: ({ payload: { text, found } }, { message_id }) => (found ? undefined : { message_id, text }),
    settled: settleRecipients,
  })
}

const campaignMessage = messageKind('campaign_message')
const broadcastMessage = messageKind('broadcast_message')
export const operations: readonly OperationKind[] = [campaignMessage, broadcastMessage]

interface MessageIdentity {
  readonly kind: string
  readonly random_id: string
  readonly fingerprint: Buffer
}

/** Always the same for a recipient and step: a platform that knows the random id accepts the message once. */
export function identityOf(
  { secrets }: App,
  row: {
    readonly kind: string
    readonly workspace_id: string
    readonly recipient_id: string
    readonly step: number
  },
): MessageIdentity {
  const { workspace_id, recipient_id, step } = row
  const { kind } = row.kind === 'broadcast' ? broadcastMessage : campaignMessage
  const random = secrets.sign('random_id', workspace_id, kind, recipient_id, String(step))
  return {
    kind,
    random_id: random.readBigInt64BE().toString(),
    fingerprint: createHash('sha256').update(`${recipient_id}:${step}`).digest(),
  }
}
