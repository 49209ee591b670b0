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
    is_sender: z.boolean().meta({ description: 'True where the account wrote it.' }),
    timestamp: moment('When it was written.'),
  })
  .meta({ id: 'SearchMatch', description: 'A message that matches.' })

const matchedChat = z
  .object({
    account_id: accountIdOut,
    chat_id: chatIdOut,
    chat_name: said('Its name as the platform tells it.'),
    provider: said('The platform it is on.'),
  })
  .meta({ id: 'SearchedChat', description: 'A chat with a match on this page.' })

const completeness = z
  .object({
    complete: z.boolean().meta({ description: 'True where nothing that could match is missing.' }),
    accounts: z
      .array(
        z
          .object({
            account_id: accountIdOut,
            history_complete: z
              .boolean()
              .meta({ description: 'The store has everything that the platform ever had.' }),
            oldest_at: momentOrNull('The oldest message that is stored; null where there is none.'),
            newest_at: momentOrNull('The newest message that is stored; null where there is none.'),
          })
          .meta({ id: 'AccountCompleteness', description: 'How much of one account is stored.' }),
      )
      .meta({ description: 'The accounts that were searched.' }),
  })
  .meta({ id: 'Completeness', description: 'How much of the history the store has.' })

export const searchResult = z
  .object({
    matches: z.array(match).meta({ description: 'The newest first.' }),
    match_count: count('How many there are in all, up to 1,000.'),
    match_count_capped: z
      .literal(true)
      .optional()
      .meta({ description: 'Only there, and true, where there are more than 1,000.' }),
    ...pageEnd,
    chats: z.array(matchedChat).meta({ description: 'The chats of the matches.' }),
    platforms_searched: z.array(z.string()).meta({ description: 'The platforms of the accounts searched.' }),
    context: said(`The matches as text, at most ${contextMax} characters.`),
    completeness,
  })
  .meta({ id: 'SearchResult', description: 'Matches, and how complete they are.' })
