/** Operations that exist in tests only: a `local` one with a body and a chat id, and one whose body decides what it does. */
import { z } from 'zod'
import { sql } from '../../src/db/sql.ts'
import { newId } from '../../src/lib/ids.ts'
import { accountId, chatId, text } from '../../src/lib/shapes.ts'
import { ok, type Route, route } from '../../src/route.ts'

export const probes: readonly Route[] = [
  route({
    name: 'probe_note',
    method: 'POST',
    path: '/probe/{chat_id}/notes',
    summary: 'Keeps a note',
    scopes: ['write'],
    gates: ['crm'],
    allowlists: ['campaign_user', 'campaign_workspace'],
    idempotency: 'required',
    collision: 409,
    account: 'extended',
    effect: 'local',
    statuses: [201],
    params: z.strictObject({ chat_id: chatId }),
    body: z.strictObject({
      account_id: accountId.optional(),
      text: text(4096),
      tags: z.array(z.string()).optional(),
    }),
    response: z.object({ text: z.string(), workspace_id: z.string(), accounts: z.array(z.string()) }),
    example: {
      params: { chat_id: 'platform:chat:42' },
      body: { account_id: 'acc_1', text: 'called back' },
      response: { text: 'called back', workspace_id: '', accounts: ['acc_1'] },
    },
    // A suppression is the simplest row that a test can count.
    handle: async (_app, tx, { caller, body, accounts }) => {
      await tx.run(sql`
        insert into suppressions (workspace_id, kind, value, source)
        values (${caller.workspace_id}, 'username', ${newId()}, 'operator')`)
      if (body.text === 'refuse') throw new Error('a bug in the handler')
      return {
        status: 201,
        body: { text: body.text, workspace_id: caller.workspace_id, accounts: accounts.map(({ id }) => id) },
      }
    },
  }),
  route({
    name: 'probe_variant',
    method: 'POST',
    path: '/probe/variant',
    summary: 'Needs more when the body says so',
    scopes: ['campaigns', 'send'],
    idempotency: 'optional',
    effect: 'local',
    body: z.strictObject({ contacts: z.array(z.string()).optional() }),
    variant: ({ body }) =>
      body.contacts
        ? { scopes: ['send'], gates: ['extended'], idempotency: 'optional' }
        : { scopes: ['campaigns', 'send'], idempotency: 'optional' },
    response: z.object({ contacts: z.number() }),
    example: { body: {}, response: { contacts: 0 } },
    handle: async (_app, _tx, { body }) => ok({ contacts: body.contacts?.length ?? 0 }),
  }),
]
