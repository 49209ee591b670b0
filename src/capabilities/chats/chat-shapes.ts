/** The replies of the operations on chats. */
import { z } from 'zod'
import {
  accountIdOut,
  chatIdOut,
  columnValueOut,
  count,
  done,
  momentOrNull,
  pageEnd,
  said,
  uuid,
} from '../../lib/wire.ts'

const username = z.string().nullable().meta({ description: 'Without @; null where there is none.' })

const chat = z
  .object({
    account_id: accountIdOut,
    id: chatIdOut,
    name: said('Its name as the platform tells it.'),
    provider: said('The platform it is on.'),
    kind: z.enum(['private', 'group', 'channel']).meta({ description: 'Who is in it.' }),
    last_message_text: z
      .string()
      .nullable()
      .meta({ description: 'The text of its newest message; null where there is none.' }),
    last_message_at: momentOrNull('When its newest message was written.'),
    unread_count: count('Messages that the account has not read.'),
  })
  .meta({ id: 'Chat', description: 'A chat as one account sees it.' })

const participant = z
  .object({
    id: said('Who it is on the platform.'),
    name: said('The name as the platform tells it.'),
    username,
    kind: said('Such as `person` or `bot`.'),
  })
  .meta({ id: 'Participant', description: 'Somebody in a chat.' })

export const chatPage = z
  .object({ chats: z.array(chat).meta({ description: 'The newest first.' }), ...pageEnd })
  .meta({ id: 'ChatPage', description: 'A page of chats.' })

export const chatDetail = z
  .object({
    chat: z
      .object({
        ...chat.shape,
        username,
        participants: z
          .array(participant)
          .meta({ description: 'Who is in it, as far as the platform tells.' }),
        stage_key: z
          .string()
          .nullable()
          .meta({ description: 'Its stage; null while the gate `pipeline` is closed.' }),
        columns: z
          .array(
            z
              .object({ column_id: uuid('The column.'), value: columnValueOut })
              .meta({ id: 'ColumnValue', description: 'What the chat has in one column.' }),
          )
          .meta({ description: 'What it has in columns; empty while the gate `crm` is closed.' }),
      })
      .meta({ id: 'ChatDetail', description: 'A chat with everything that is known of it.' }),
  })
  .meta({ id: 'ChatResult', description: 'One chat.' })

export const readStateResult = z
  .object({
    ...done,
    account_id: accountIdOut,
    chat_id: chatIdOut,
    unread: z.boolean().meta({ description: 'How it is marked now.' }),
  })
  .meta({ id: 'ReadStateResult', description: 'How a chat is marked.' })
