import { z } from 'zod'
import { accountId, cursor, limit, text } from '../../lib/shapes.ts'
import { accountIdOut, pageEnd, said } from '../../lib/wire.ts'
import { Json, ok, type Route, route } from '../../route.ts'
import { listContacts, readContactPaging } from './contact-pages.ts'

const contact = z
  .object({
    account_id: accountIdOut,
    provider_id: said('Id of the person on the platform.'),
    name: said('Name on the platform.'),
    username: z.string().nullable().meta({ description: 'Username without @; null if there is none.' }),
  })
  .meta({ id: 'Contact', description: 'A contact of an account.' })

const contactPage = z
  .object({ contacts: z.array(contact).meta({ description: 'Contacts, sorted by name.' }), ...pageEnd })
  .meta({ id: 'ContactPage', description: 'A page of contacts.' })

export const routes: readonly Route[] = [
  route({
    name: 'list_contacts',
    method: 'GET',
    path: '/contacts',
    summary: 'List contacts',
    description:
      'Returns stored contacts by name, without a request to the platform. `q` matches the beginning of any word of a name.',
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
        .meta({ description: 'Beginning of any word of the name. Case and accents do not matter.' }),
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
