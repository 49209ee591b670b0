import { z } from 'zod'
import { accountId, chatId, text, time, timestamp } from '../../lib/shapes.ts'
import { ok, type Route, route } from '../../route.ts'
import { contextMax, excerptMax } from './excerpt.ts'
import { searchMessages } from './search.ts'

const limit = z
  .number()
  .refine((value) => Number.isInteger(value) && value >= 1 && value <= 100, {
    message: 'must be a whole number from 1 to 100',
  })
  .default(50)
  .meta({ openapi: { type: 'integer', minimum: 1, maximum: 100, default: 50 } })

const some = (what: string) =>
  z
    .array(text(100))
    .min(1, `must name at least one ${what}`)
    .max(20, `must have at most 20 entries`)
    .optional()

const conditions = ['query', 'people', 'keywords', 'time_after', 'time_before'] as const

export const routes: readonly Route[] = [
  route({
    name: 'search_messages',
    method: 'POST',
    path: '/search',
    summary: 'Messages that are stored, newest first',
    description:
      '`query`: all words, in any order; `"a phrase"`; `-not` this word or phrase; the last word may be the beginning ' +
      'of a longer one. Case and accents do not matter. Text without spaces between words, as in Chinese or Thai, is ' +
      'found by any part of it. `people`: any of the names, as names of chats or of who wrote it. `keywords`: any of ' +
      'them. `time_after` includes its moment, `time_before` does not. All of those that are given must hold, and ' +
      'at least one must be given. `match_count` is exact up to 1,000; beyond that `match_count_capped` is true. ' +
      '`completeness` tells how much of the history the store has.',
    scopes: ['read'],
    account: 'optional',
    effect: 'read',
    body: z
      .strictObject({
        query: text(1000).optional(),
        account_id: accountId.optional(),
        chat_id: chatId.optional(),
        limit,
        people: some('person'),
        keywords: some('keyword'),
        time_after: time.optional(),
        time_before: time.optional(),
        account_types: z
          .enum(['messaging', 'email', 'all'], 'must be messaging, email or all')
          .default('all'),
      })
      .refine((body) => conditions.some((name) => body[name] !== undefined), {
        message: `must have at least one of ${conditions.join(', ')}`,
      }),
    response: z.object({
      matches: z.array(
        z.object({
          account_id: z.string(),
          chat_id: z.string(),
          message_id: z.string(),
          excerpt: z
            .string()
            .meta({ description: `At most ${excerptMax} characters around the first match.` }),
          is_sender: z.boolean(),
          timestamp,
        }),
      ),
      match_count: z.int(),
      match_count_capped: z.literal(true).optional(),
      has_more: z.boolean(),
      chats: z.array(
        z.object({
          account_id: z.string(),
          chat_id: z.string(),
          chat_name: z.string(),
          provider: z.string(),
        }),
      ),
      platforms_searched: z.array(z.string()),
      context: z.string().meta({ description: `The matches as text, at most ${contextMax} characters.` }),
      completeness: z.object({
        complete: z.boolean(),
        accounts: z.array(
          z.object({
            account_id: z.string(),
            history_complete: z.boolean(),
            oldest_at: timestamp.nullable(),
            newest_at: timestamp.nullable(),
          }),
        ),
      }),
    }),
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
    handle: async (app, { accounts, body }) => ok(await searchMessages(app, accounts, body)),
  }),
]
