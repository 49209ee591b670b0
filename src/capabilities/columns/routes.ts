import { z } from 'zod'
import { accountId, chatId, cursor, pageEnd, pageLimit } from '../../lib/shapes.ts'
import { ok, type Route, route } from '../../route.ts'
import { setValue } from './columns.ts'
import { readColumnPaging, readColumns, valuesMax } from './value-pages.ts'
import { columnTypes } from './value-rules.ts'

const example = {
  account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
  chat_id: 'platform:chat:42',
  column_id: '0199a1f0-0000-7000-8000-00000000000a',
  value: ['Team'],
}

const itemsMax = 200

const value = z
  .array(z.unknown())
  .max(itemsMax, `must have at most ${itemsMax} items`)
  .pipe(z.array(z.string()))
  .meta({ openapi: { type: 'array', items: { type: 'string' }, maxItems: itemsMax } })

export const routes: readonly Route[] = [
  route({
    name: 'get_columns',
    method: 'GET',
    path: '/columns',
    summary: 'The columns, and what chats have in them',
    description:
      'Values may have an option that was deleted since; `options` has those that can be set. Without `limit` everything ' +
      'comes in one answer, however long; with `limit` and `cursor` it comes in pages.',
    scopes: ['read', 'write'],
    gates: ['crm'],
    account: 'optional',
    effect: 'read',
    query: z.object({ account_id: accountId.optional(), cursor, limit: pageLimit(valuesMax) }),
    check: (app, caller, { query }) => readColumnPaging(app, caller, query),
    errors: ['invalid_cursor'],
    response: z.object({
      columns: z.array(
        z.object({
          id: z.string(),
          name: z.string(),
          type: z.enum(columnTypes),
          options: z.array(z.object({ value: z.string(), color: z.string().nullable() })),
        }),
      ),
      values: z.array(
        z.object({
          account_id: z.string(),
          chat_id: z.string(),
          column_id: z.string(),
          value: z.array(z.string()),
        }),
      ),
      ...pageEnd,
    }),
    example: {
      response: {
        columns: [
          {
            id: example.column_id,
            name: 'Plan',
            type: 'select',
            options: [{ value: 'Team', color: 'blue' }],
          },
        ],
        values: [example],
        next_cursor: null,
        has_more: false,
      },
    },
    handle: async (app, { caller, accounts, query: { limit }, checked }) =>
      ok(await readColumns(app, caller, accounts, { limit, paging: checked })),
  }),
  route({
    name: 'set_column',
    method: 'POST',
    path: '/columns/set',
    summary: 'Sets or clears what a chat has in a column',
    description:
      'Safe to repeat; an empty `value` clears. `select`: one option. `multi_select`: options, each once. `text`: one text ' +
      'of at most 2,000 characters. `number`: in its shortest form, such as -3 or 12.5, with at most 18 digits on each side of the point. `date`: such as 2027-01-31. ' +
      '`checkbox`: true or false. `url`: http or https.',
    scopes: ['write'],
    gates: ['crm'],
    account: 'extended',
    effect: 'local',
    body: z.strictObject({
      account_id: accountId.optional(),
      chat_id: chatId,
      column_id: z.string().min(1, 'must not be empty').max(100, 'is not a column id'),
      value,
    }),
    errors: ['invalid_column_value', 'chat_not_found', 'column_not_found'],
    response: z.object({
      ok: z.literal(true),
      message: z.string(),
      account_id: z.string(),
      chat_id: z.string(),
      column_id: z.string(),
      value: z.array(z.string()),
    }),
    example: {
      body: example,
      response: { ok: true, message: 'The value was saved.', ...example },
    },
    handle: async (_, tx, { caller, accounts, body }) => {
      const saved = await setValue(tx, caller, accounts, body)
      const message = saved.value.length > 0 ? 'The value was saved.' : 'The value was cleared.'
      return ok({ ok: true, message, ...saved })
    },
  }),
]
