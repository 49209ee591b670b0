import { z } from 'zod'
import { scopes } from '../../contract.ts'
import { ok, type Route, route } from '../../route.ts'
import { describeCaller } from './me.ts'

const account = z.object({
  id: z.string(),
  provider: z.string(),
  type: z.literal('MESSAGING'),
  name: z.string(),
  status: z.string(),
})

export const routes: readonly Route[] = [
  route({
    name: 'get_me',
    method: 'GET',
    path: '/me',
    summary: 'Who this key is',
    description:
      'The workspace, the key with its scopes, the accounts it may use, and for every operation whether ' +
      'gates, scopes and allowlists let this key perform it right now.',
    scopes: ['read'],
    effect: 'read',
    response: z.object({
      workspace_id: z.uuid(),
      workspace: z.object({ id: z.uuid(), name: z.string() }),
      key: z.object({ name: z.string(), prefix: z.string(), scopes: z.array(z.enum(scopes)) }),
      accounts: z.array(account),
      capabilities: z.record(z.string(), z.boolean()),
      contract_version: z.string(),
    }),
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
