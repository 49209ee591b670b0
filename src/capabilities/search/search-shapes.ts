/** The reply of a search. */
import { z } from 'zod'
import {
  accountIdOut,
  chatIdOut,
  count,
  messageIdOut,
  moment,
  momentOrNull,
  pageEnd,
  said,
} from '../../lib/wire.ts'
import { contextMax, excerptMax } from './excerpt.ts'

const match = z
  .object({
    account_id: accountIdOut,
    chat_id: chatIdOut,
    message_id: messageIdOut,
    excerpt: said(`At most ${excerptMax} characters around the first match.`),
    is_sender: z.boolean().meta({ description: 'Whether the account sent it.' }),
    timestamp: moment('When it was written.'),
  })
  .meta({ id: 'SearchMatch', description: 'A message that matches.' })

const matchedChat = z
  .object({
    account_id: accountIdOut,
    chat_id: chatIdOut,
    chat_name: said('Name on the platform.'),
    provider: said('Platform of the chat.'),
  })
  .meta({ id: 'SearchedChat', description: 'A chat with a match on this page.' })

const completeness = z
  .object({
    complete: z.boolean().meta({ description: 'Whether everything that could match is stored.' }),
    accounts: z
      .array(
        z
          .object({
            account_id: accountIdOut,
            history_complete: z
              .boolean()
              .meta({ description: 'Whether the whole history of the account is stored.' }),
            oldest_at: momentOrNull('Time of the oldest stored message; null if there is none.'),
            newest_at: momentOrNull('Time of the newest stored message; null if there is none.'),
          })
          .meta({
            id: 'AccountCompleteness',
            description: 'How much of the history of one account is stored.',
          }),
      )
      .meta({ description: 'The accounts that were searched.' }),
  })
  .meta({ id: 'Completeness', description: 'How much of the history is stored.' })

export const searchResult = z
  .object({
    matches: z.array(match).meta({ description: 'Matches, newest first.' }),
    match_count: count('Total number of matches, up to 1,000.'),
    match_count_capped: z
      .literal(true)
      .optional()
      .meta({ description: 'True if there are more than 1,000 matches; otherwise absent.' }),
    ...pageEnd,
    chats: z.array(matchedChat).meta({ description: 'Chats of the matches.' }),
    platforms_searched: z.array(z.string()).meta({ description: 'Platforms of the searched accounts.' }),
    context: said(`The matches as text, at most ${contextMax} characters.`),
    completeness,
  })
  .meta({ id: 'SearchResult', description: 'Matches and how complete they are.' })
