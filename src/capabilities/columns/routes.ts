import { z } from 'zod'
import { accountId, chatId, cursor, pageLimit, scopedAccountId } from '../../lib/shapes.ts'
import { accountIdOut, chatIdOut, columnValueOut, done, pageEnd, uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { column } from './column-shapes.ts'
import { setValue } from './columns.ts'
import { readColumnPaging, readColumns, valuesMax } from './value-pages.ts'

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
  .meta({
    description: 'The new value; an empty array clears it.',
    openapi: { type: 'array', items: { type: 'string' }, maxItems: itemsMax },
  })

const column_id = uuid('Id of the column, from `GET /columns`.')

const cell = z
  .object({ account_id: accountIdOut, chat_id: chatIdOut, column_id, value: columnValueOut })
  .meta({ id: 'ColumnCell', description: 'Value of one chat in one column.' })

const columns = z
  .object({
    columns: z.array(column).meta({ description: 'All columns in order.' }),
    values: z.array(cell).meta({ description: 'Values of chats in the columns.' }),
    ...pageEnd,
  })
  .meta({ id: 'Columns', description: 'The columns and the values of chats in them.' })

const saved = z
  .object({ ...done, account_id: accountIdOut, chat_id: chatIdOut, column_id, value: columnValueOut })
  .meta({ id: 'ColumnSet', description: 'The value of a chat in a column.' })

export const routes: readonly Route[] = [
  route({
    name: 'get_columns',
    method: 'GET',
    path: '/columns',
    summary: 'List columns and values',
    description:
      'Returns the columns and the values of chats in them. A value may contain an option that was deleted later; `options` lists those that can be set. Without `limit` everything ' +
      'comes in one response; with `limit` and `cursor` it comes in pages.',
    scopes: ['read', 'write'],
    gates: ['crm'],
    account: 'optional',
    effect: 'read',
    query: z.object({ account_id: accountId.optional(), cursor, limit: pageLimit(valuesMax) }),
    check: (app, caller, { query }) => readColumnPaging(app, caller, query),
    errors: ['invalid_cursor'],
    response: columns,
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
    handle: async (app, { caller, accounts, query: { limit }, checked, left }) =>
      ok(await readColumns(app, caller, accounts, { limit, paging: checked, left })),
  }),
  route({
    name: 'set_column',
    method: 'POST',
    path: '/columns/set',
    summary: 'Set a column value',
    description:
      'Sets the value of a chat in a column, or clears it with an empty `value`. Safe to repeat. `select`: one option. `multi_select`: options, each once. `text`: one text ' +
      'of at most 2,000 characters. `number`: in its shortest form, such as -3 or 12.5, with at most 18 digits on each side of the point. `date`: such as 2027-01-31. ' +
      '`checkbox`: true or false. `url`: http or https.',
    scopes: ['write'],
    gates: ['crm'],
    account: 'extended',
    effect: 'local',
    touches: ['columns'],
    body: z
      .strictObject({
        account_id: scopedAccountId,
        chat_id: chatId,
        column_id: z
          .string()
          .min(1, 'must not be empty')
          .max(100, 'is not a column id')
          .meta({ description: 'Id of the column, from `GET /columns`.' }),
        value,
      })
      .meta({ id: 'SetColumnRequest', description: 'A chat, a column and the new value.' }),
    errors: ['invalid_column_value', 'chat_not_found', 'column_not_found'],
    response: saved,
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
