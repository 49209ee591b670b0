import { z } from 'zod'
import { accountId, cursor, limit, pageEnd } from '../../lib/shapes.ts'
import { isBlank, lengthOf } from '../../lib/text.ts'
import { Json, ok, type Route, route } from '../../route.ts'
import { listContacts, readContactPaging } from './contact-pages.ts'

export const routes: readonly Route[] = [
  route({
    name: 'list_contacts',
    method: 'GET',
    path: '/contacts',
    summary: 'The people the accounts know, by name',
    description:
      'From the store; the platform is not asked. `q` finds names with a word that begins with it.',
    scopes: ['read'],
    gates: ['crm'],
    account: 'optional',
    effect: 'read',
    query: z.object({
      account_id: accountId.optional(),
      cursor,
      limit: limit(200, 100),
      q: z
        .string()
        .refine((value) => !isBlank(value), { message: 'must not be blank' })
        .refine((value) => lengthOf(value) <= 200, { message: 'must have at most 200 characters' })
        .optional(),
    }),
    check: (app, caller, { query }) => readContactPaging(app, caller, query),
    errors: ['invalid_cursor'],
    response: z.object({
      contacts: z.array(
        z.object({
          account_id: z.string(),
          provider_id: z.string(),
          name: z.string(),
          username: z.string().nullable(),
        }),
      ),
      ...pageEnd,
    }),
    example: {
      query: { limit: '100' },
      response: {
        contacts: [
          {
            account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
            provider_id: '42',
            name: 'Ines García',
            username: 'ines_garcia',
          },
        ],
        next_cursor: null,
        has_more: false,
      },
    },
    handle: async (app, { accounts, query, checked }) =>
      ok(new Json(await listContacts(app, accounts, { query, paging: checked }))),
  }),
]
