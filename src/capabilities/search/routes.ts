import { z } from 'zod'
import { accountId, chatId, cursor, text, textSchema, time } from '../../lib/shapes.ts'
import { ok, type Route, route } from '../../route.ts'
import { checkSearch, searchMessages } from './search.ts'
import { searchResult } from './search-shapes.ts'

const limit = z
  .number()
  .refine((value) => Number.isInteger(value) && value >= 1 && value <= 100, {
    message: 'must be a whole number from 1 to 100',
  })
  .default(50)
  .meta({
    description: 'Maximum number of matches per page.',
    openapi: { type: 'integer', minimum: 1, maximum: 100, default: 50 },
  })

const entriesMax = 20

/** An empty list means that the field was not given. */
const some = (description: string) =>
  z
    .array(text(100))
    .max(entriesMax, `must have at most ${entriesMax} entries`)
    .optional()
    .transform((given) => (given?.length === 0 ? undefined : given))
    .meta({
      description: `${description} An empty list counts as not given.`,
      openapi: {
        type: 'array',
        items: textSchema(100),
        maxItems: entriesMax,
      },
    })

const conditions = ['query', 'people', 'keywords', 'time_after', 'time_before'] as const

export const routes: readonly Route[] = [
  route({
    name: 'search_messages',
    method: 'POST',
    path: '/search',
    summary: 'Search messages',
    description:
      'Searches stored messages, newest first. `query`: all words, in any order; `"a phrase"`; `-not` this word or phrase; the last word may be the beginning ' +
      'of a longer one. Case and accents do not matter. Text without spaces between words, as in Chinese or Thai, matches ' +
      'by any part. `people`: any of these names, as name of the chat or of the author. `keywords`: any of ' +
      'these words. `time_after` is inclusive, `time_before` exclusive. A message must meet all given conditions, and ' +
      'at least one is required. `match_count` is exact up to 1,000; beyond that `match_count_capped` is true. ' +
      '`completeness` says how much of the history is stored.',
    scopes: ['read'],
    account: 'optional',
    effect: 'read',
    costly: true,
    body: z
      .strictObject({
        query: text(1000).optional().meta({
          description: 'Words, `"a phrase"`, `-not`; the last word may be the beginning of a longer one.',
        }),
        account_id: accountId.optional(),
        chat_id: chatId.optional(),
        limit,
        cursor,
        people: some('Names of chats or authors; any of them.'),
        keywords: some('Words; any of them.'),
        time_after: time.optional().meta({ description: 'Only messages at or after this time.' }),
        time_before: time.optional().meta({ description: 'Only messages before this time.' }),
        account_types: z
          .enum(['messaging', 'email', 'all'], 'must be messaging, email or all')
          .default('all')
          .meta({ description: '`email` matches nothing: no account is a mailbox.' }),
      })
      .refine((body) => conditions.some((name) => body[name] !== undefined), {
        message: `must have at least one of ${conditions.join(', ')}`,
      })
      .meta({
        id: 'SearchRequest',
        description: 'Search conditions. A message must meet all of them; at least one is required.',
        not: {
          properties: {
            ...{ query: false, time_after: false, time_before: false },
            ...{ people: { maxItems: 0 }, keywords: { maxItems: 0 } },
          },
        },
      }),
    check: (app, caller, { body }) => checkSearch(app, caller, body),
    errors: ['account_scope_required', 'invalid_cursor'],
    response: searchResult,
    example: {
      body: { query: '"blue one" available' },
      response: {
        matches: [
          {
            account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
            chat_id: 'platform:chat:42',
            message_id: '7',
            excerpt: 'Is the blue one still available?',
            is_sender: false,
            timestamp: '2026-11-15T09:30:00.000Z',
          },
        ],
        match_count: 1,
        next_cursor: null,
        has_more: false,
        chats: [
          {
            account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
            chat_id: 'platform:chat:42',
            chat_name: 'Ines García',
            provider: 'sandbox',
          },
        ],
        platforms_searched: ['sandbox'],
        context: '[2026-11-15T09:30:00.000Z] Ines García, received: Is the blue one still available?',
        completeness: {
          complete: true,
          accounts: [
            {
              account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
              history_complete: true,
              oldest_at: '2025-02-01T08:00:00.000Z',
              newest_at: '2026-11-15T09:30:00.000Z',
            },
          ],
        },
      },
    },
    handle: async (app, { accounts, body, checked }) =>
      ok(await searchMessages(app, accounts, { request: body, checked })),
  }),
]
