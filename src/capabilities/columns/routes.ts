import { z } from 'zod'
import { accountId, chatId, cursor, pageLimit, scopedAccountId } from '../../lib/shapes.ts'
import { accountIdOut, chatIdOut, columnValueOut, done, pageEnd, said, uuid } from '../../lib/wire.ts'
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
  .meta({
    description: 'What the chat has there from now on. Empty: nothing.',
    openapi: { type: 'array', items: { type: 'string' }, maxItems: itemsMax },
  })

const column_id = uuid('The column, as `GET /columns` lists it.')

const column = z
  .object({
    id: uuid('Names the column in every other operation.'),
    name: said('What people call it.'),
    type: z.enum(columnTypes).meta({ description: 'What kind of value it takes.' }),
    options: z
      .array(
        z
          .object({
            value: said('What is set.'),
            color: z
              .string()
              .nullable()
              .meta({ description: 'How it is shown; null where nothing was chosen.' }),
          })
          .meta({ id: 'ColumnOption', description: 'A value that can be chosen.' }),
      )
      .meta({ description: 'What can be chosen; empty where the type has no choice.' }),
  })
  .meta({ id: 'Column', description: 'A column of the workspace.' })

const cell = z
  .object({ account_id: accountIdOut, chat_id: chatIdOut, column_id, value: columnValueOut })
  .meta({ id: 'ColumnCell', description: 'What one chat has in one column.' })

const columns = z
  .object({
    columns: z.array(column).meta({ description: 'All columns, in their order.' }),
    values: z.array(cell).meta({ description: 'What chats have in them.' }),
    ...pageEnd,
  })
  .meta({ id: 'Columns', description: 'The columns, and what chats have in them.' })

const saved = z
  .object({ ...done, account_id: accountIdOut, chat_id: chatIdOut, column_id, value: columnValueOut })
  .meta({ id: 'SetColumnResult', description: 'What a chat has in a column now.' })

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
    body: z
      .strictObject({
        account_id: scopedAccountId,
        chat_id: chatId,
        column_id: z
          .string()
          .min(1, 'must not be empty')
          .max(100, 'is not a column id')
          .meta({ description: 'The column, as `GET /columns` lists it.' }),
        value,
      })
      .meta({ id: 'SetColumnRequest', description: 'A chat, a column, and what goes there.' }),
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
