import { z } from 'zod'
import { scopes } from '../../contract.ts'
import { said, uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { describeCaller } from './me.ts'

const account = z
  .object({
    id: said('Names the account in every other operation.'),
    provider: said('The platform it is on.'),
    type: z.literal('MESSAGING').meta({ description: 'What kind of account it is.' }),
    name: said('What its owner calls it.'),
    status: said('READY: it may be used.'),
  })
  .meta({ id: 'Account', description: 'A messaging account of the workspace that may be used.' })

const me = z
  .object({
    workspace_id: uuid('The workspace the key belongs to.'),
    workspace: z
      .object({ id: uuid('Its id.'), name: said('Its name.') })
      .meta({ id: 'Workspace', description: 'A tenant: everything a key can see is inside of one.' }),
    key: z
      .object({
        name: said('What it was called when it was made.'),
        prefix: said('Its first characters, by which people tell keys apart.'),
        scopes: z.array(z.enum(scopes)).meta({ description: 'What it may do.' }),
      })
      .meta({ id: 'Key', description: 'The API key of this request.' }),
    accounts: z.array(account).meta({ description: 'The accounts it may use.' }),
    capabilities: z
      .record(z.string(), z.boolean())
      .meta({ description: 'For every operation by its name: whether this key may perform it right now.' }),
    contract_version: said('The version of this document.'),
  })
  .meta({ id: 'Me', description: 'Who a key is.' })

export const routes: readonly Route[] = [
  route({
    name: 'get_me',
    method: 'GET',
    path: '/me',
    summary: 'Who this key is',
    description:
      'The workspace, the key with its scopes, the accounts it may use, and for every operation whether ' +
      'gates, scopes and allowlists let this key perform it right now. What acts on a platform is false while ' +
      'nothing can be sent: sending is switched off, or no worker may write down what it sends.',
    scopes: ['read'],
    effect: 'read',
    response: me,
    example: {
      response: {
        workspace_id: '0199a1f0-0000-7000-8000-000000000001',
        workspace: { id: '0199a1f0-0000-7000-8000-000000000001', name: 'Acme' },
        key: { name: 'first key', prefix: 'svc_live_4kT9xQ', scopes: ['read', 'write', 'send'] },
        accounts: [
          {
            id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
            provider: 'sandbox',
            type: 'MESSAGING',
            name: 'Sales',
            status: 'READY',
          },
        ],
        capabilities: { get_me: true },
        contract_version: '1.0.0',
      },
    },
    handle: async (app, { caller }) => ok(await describeCaller(app, caller)),
  }),
]
