import { z } from 'zod'
import { accountId, cursor, limit, text } from '../../lib/shapes.ts'
import { accountIdOut, pageEnd, said } from '../../lib/wire.ts'
import { Json, ok, type Route, route } from '../../route.ts'
import { listContacts, readContactPaging } from './contact-pages.ts'

const contact = z
  .object({
    account_id: accountIdOut,
    provider_id: said('Who it is on the platform.'),
    name: said('The name as the platform tells it.'),
    username: z.string().nullable().meta({ description: 'Without @; null where there is none.' }),
  })
  .meta({ id: 'Contact', description: 'A person whom an account knows.' })

const contactPage = z
  .object({ contacts: z.array(contact).meta({ description: 'By name.' }), ...pageEnd })
  .meta({ id: 'ContactPage', description: 'A page of contacts.' })

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
      q: text(200)
        .optional()
        .meta({ description: 'Names with a word that begins with it. Case and accents do not matter.' }),
    }),
    check: (app, caller, { query }) => readContactPaging(app, caller, query),
    errors: ['invalid_cursor'],
    response: contactPage,
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
