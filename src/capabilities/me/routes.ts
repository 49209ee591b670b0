import { z } from 'zod'
import { scopes } from '../../contract.ts'
import { said, uuid } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { describeCaller } from './me.ts'

const account = z
  .object({
    id: said('Id of the account.'),
    provider: said('Platform of the account.'),
    type: z.literal('MESSAGING').meta({ description: 'Kind of account.' }),
    name: said('Name of the account.'),
    status: said('`READY` if the account can be used.'),
    connected: z.boolean().meta({
      description:
        'Whether its session is live now. While it is not, reads are answered from what is stored, and what needs the ' +
        'platform gets 503 `session_unavailable`.',
    }),
  })
  .meta({ id: 'Account', description: 'A messaging account that the key can use.' })

const me = z
  .object({
    workspace_id: uuid('Id of the workspace of the key.'),
    workspace: z
      .object({ id: uuid('Id of the workspace.'), name: said('Name of the workspace.') })
      .meta({ id: 'Workspace', description: 'A tenant. A key sees nothing outside its workspace.' }),
    key: z
      .object({
        name: said('Name of the key.'),
        prefix: said('First characters of the key.'),
        scopes: z.array(z.enum(scopes)).meta({ description: 'Scopes of the key.' }),
      })
      .meta({ id: 'Key', description: 'The API key of this request.' }),
    accounts: z.array(account).meta({ description: 'Accounts that the key can use.' }),
    capabilities: z
      .record(z.string(), z.boolean())
      .meta({ description: 'For every operation id: whether this key can perform it now.' }),
    contract_version: said('Version of the API.'),
  })
  .meta({ id: 'Me', description: 'A key, its workspace, its accounts and what it can do.' })

export const routes: readonly Route[] = [
  route({
    name: 'get_me',
    method: 'GET',
    path: '/me',
    summary: 'Get the current key',
    description:
      'Returns the workspace, the key with its scopes, the accounts it can use, and for every operation whether ' +
      'gates, scopes, the role of the user who made the key, and allowlists allow it now. A key that an operator issued at the ' +
      'terminal is not limited by a role. Operations that act on a platform are false while ' +
      'nothing can be sent: sending is switched off, no worker can write its journal, or no account of the key is connected.',
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
            connected: true,
          },
        ],
        capabilities: { get_me: true },
        contract_version: '1.0.0',
      },
    },
    handle: async (app, { caller }) => ok(await describeCaller(app, caller)),
  }),
]
