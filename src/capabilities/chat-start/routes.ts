import { z } from 'zod'
import { accountId, chatId, text } from '../../lib/shapes.ts'
import { accountIdOut, chatIdOut, said } from '../../lib/wire.ts'
import { type Route, route } from '../../route.ts'
import { startChatText, wantText } from '../messages/send.ts'
import { isExtended, requireStartable, startChat, wantChat } from './chat-start.ts'

const started = z
  .object({
    chat: z
      .object({
        id: chatIdOut,
        account_id: accountIdOut,
        name: said('Name on the platform.'),
        username: z.string().nullable().meta({ description: 'Username without @; null if there is none.' }),
      })
      .meta({ id: 'StartedChat', description: 'A private chat.' }),
    created: z.boolean().meta({ description: 'False if the account already had the chat.' }),
  })
  .meta({ id: 'ChatStarted', description: 'The started chat.' })

export const routes: readonly Route[] = [
  route({
    name: 'start_chat',
    method: 'POST',
    path: '/chats/start',
    summary: 'Start a chat',
    description:
      'Looks the username up on the platform and opens the private chat; sends nothing. `identifier` is a username, an ' +
      '@username, or a link such as t.me/name or tg://resolve?domain=name. The gate `extended` also allows a phone number ' +
      'or a provider id, and `text`, which is sent as the first message.',
    scopes: ['send'],
    gates: ['start_chat'],
    idempotency: 'required',
    account: 'required',
    effect: 'platform',
    touches: ['chats', 'messages', 'operations'],
    flood: 429,
    account_limits: ({ config }) => [
      { limit: config.start_chat_minute, seconds: 60 },
      { limit: config.start_chat_day, seconds: 86_400 },
    ],
    variant: ({ body }) => ({
      scopes: ['send'],
      gates: ['start_chat'],
      idempotency: isExtended(body) ? 'optional' : 'required',
    }),
    body: z
      .strictObject({
        account_id: accountId,
        identifier: z
          .string()
          .min(1, 'must not be empty')
          .max(256, 'must have at most 256 characters')
          .meta({ description: 'The person: a username, an @username, or a link to one.' }),
        provider: z
          .string()
          .min(1, 'must not be empty')
          .max(50, 'must have at most 50 characters')
          .optional()
          .meta({ description: 'Platform of the account; no other value is allowed.' }),
        text: text(4096).optional().meta({ description: 'The first message.' }),
      })
      .meta({ id: 'StartChatRequest', description: 'The person to start a chat with.' }),
    check: requireStartable,
    errors: [
      'invalid_username',
      'unsupported_identifier',
      'username_not_found',
      'identity_suppressed',
      'identity_ineligible',
      'suppression_unavailable',
      'chat_unavailable',
      'blocked_by_person',
      'privacy_restricted',
      'cold_stopped',
      'message_refused',
    ],
    response: started,
    example: {
      body: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z', identifier: '@ines_garcia' },
      response: {
        chat: {
          id: 'platform:chat:42',
          account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
          name: 'Ines García',
          username: 'ines_garcia',
        },
        created: true,
      },
    },
    operation: startChat,
    handle: wantChat,
    followed_by: {
      operation: startChatText,
      wanted: (body) => body.text !== undefined,
      next: ({ body }, reply) => {
        const { chat: opened } = started.parse(reply)
        return wantText(body.account_id, chatId.parse(opened.id), body.text ?? '')
      },
    },
  }),
]
