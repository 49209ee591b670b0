/** The replies of the operations on chats. */
import { z } from 'zod'
import {
  accountIdOut,
  chatIdOut,
  columnValueOut,
  count,
  done,
  moment,
  momentOrNull,
  pageEnd,
  said,
  uuid,
} from '../../lib/wire.ts'

const username = z.string().nullable().meta({ description: 'Username without @; null if there is none.' })

const chat = z
  .object({
    account_id: accountIdOut,
    id: chatIdOut,
    name: said('Name on the platform.'),
    provider: said('Platform of the chat.'),
    kind: z.enum(['private', 'group', 'channel']).meta({ description: 'Kind of chat.' }),
    last_message_text: z.string().nullable().meta({
      description: 'Text of the newest message; null if there is none, or its text is no longer kept.',
    }),
    last_message_at: momentOrNull('When the newest message was written.'),
    unread_count: count('Number of messages that the account has not read.'),
  })
  .meta({ id: 'Chat', description: 'A chat as one account sees it.' })

const participant = z
  .object({
    id: said('Id of the person on the platform.'),
    name: said('Name on the platform.'),
    username,
    kind: said('Kind of participant, such as `person` or `bot`.'),
  })
  .meta({ id: 'Participant', description: 'A participant of a chat.' })

export const chatPage = z
  .object({ chats: z.array(chat).meta({ description: 'Chats, newest first.' }), ...pageEnd })
  .meta({ id: 'ChatPage', description: 'A page of chats.' })

const columnValue = z
  .object({ column_id: uuid('Id of the column.'), value: columnValueOut })
  .meta({ id: 'ColumnValue', description: 'Value of the chat in one column.' })

export const chatDetail = z
  .object({
    chat: z
      .object({
        ...chat.shape,
        username,
        participants: z
          .array(participant)
          .meta({ description: 'Participants, as far as the platform lists them.' }),
        stage_key: z
          .string()
          .nullable()
          .meta({ description: 'Stage of the chat; null while the gate `pipeline` is closed.' }),
        columns: z
          .array(columnValue)
          .meta({ description: 'Column values of the chat; empty while the gate `crm` is closed.' }),
      })
      .meta({ id: 'ChatDetail', description: 'A chat with its participants, stage and column values.' }),
  })
  .meta({ id: 'ChatResult', description: 'One chat.' })

export const readStateResult = z
  .object({
    ...done,
    account_id: accountIdOut,
    chat_id: chatIdOut,
    unread: z.boolean().meta({ description: 'Whether the chat is marked unread now.' }),
  })
  .meta({ id: 'ReadStateResult', description: 'Read state of a chat.' })

/** A user of the workspace, for their colleagues. */
export const member = z.object({
  user_id: uuid('Id of the user.'),
  name: said('Name of the user.'),
})

const lastAttempt = z.object({
  state: z
    .enum(['sending', 'accepted', 'refused', 'ambiguous'])
    .meta({ description: 'Its state. What a user recorded for an ambiguous one counts.' }),
  text: said('The text to send; empty for a file without one.'),
  at: moment('When it was requested.'),
})

export const inboxRow = z
  .object({
    ...chat.shape,
    username,
    last_is_sender: z
      .boolean()
      .nullable()
      .meta({ description: 'Whether the account sent the newest message; null if there is none.' }),
    last_attempt: lastAttempt.nullable().meta({
      description: 'What was to be sent after the newest message and is no message; null: nothing.',
    }),
    suppressed: z.boolean().meta({
      description:
        'Whether the person of a private chat is on the suppression list, under any of their names.',
    }),
    asked_to_stop: z
      .boolean()
      .meta({ description: 'Whether the person is on it by a message of their own.' }),
    stage_key: z
      .string()
      .nullable()
      .meta({ description: 'Stage of the chat; null while the gate `pipeline` is closed.' }),
    assignee: member.nullable().meta({ description: 'The member who answers the chat; null if none does.' }),
    columns: z.array(columnValue).meta({
      description:
        'Values of the first three columns that the chat has one in, each with at most four options and 80 characters; empty while the gate `crm` is closed.',
    }),
  })
  .meta({ id: 'InboxChat', description: 'A chat as the inbox lists it.' })
