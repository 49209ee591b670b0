/** The replies of signing in and of the user's own pages. */
import { z } from 'zod'
import { roles, scopes } from '../../contract.ts'
import { moment, momentOrNull, said, uuid } from '../../lib/wire.ts'

export const ownUser = z.object({
  id: uuid('Id of the user.'),
  email: said('E-mail address for signing in.'),
  name: said('Name of the user; may be empty.'),
  operator: z.boolean().meta({ description: 'Whether the user is an operator of the instance.' }),
  time_zone: z
    .string()
    .nullable()
    .meta({ description: 'Time zone, such as Europe/Berlin; null for that of the browser.' }),
  has_password: z.boolean().meta({ description: 'Whether the user can sign in with a password.' }),
})

export const provider = z
  .object({ label: said('What people call it.') })
  .nullable()
  .meta({ description: 'The identity provider for signing in, if there is one.' })

export const session = z.object({
  id: uuid('Id of the session.'),
  created_at: moment('When it began.'),
  expires_at: moment('When it ends at the latest.'),
})

export const listedSession = session.extend({
  last_seen_at: moment('Time of its last request, to the minute.'),
  user_agent: said('Browser, as it names itself.'),
  current: z.boolean().meta({ description: 'Whether it is the session of this request.' }),
  identity: z.object({ issuer: said('`local`, or the identity provider.') }),
})

export const ownWorkspace = z.object({
  id: uuid('Id of the workspace.'),
  name: said('What people call it.'),
  role: z.enum(roles).meta({ description: 'Role of the user.' }),
  disabled_at: momentOrNull('When an operator disabled it; null if it is enabled.'),
  scopes: z
    .array(z.enum(scopes))
    .meta({ description: 'Scopes of the user, and the most that their keys can have.' }),
})

export const done = z.object({ ok: z.literal(true), message: said('Result as a sentence.') })

export const examples = {
  user: {
    id: '019a7e6e-7c1a-7b55-9f53-0d6a1f0c7a01',
    email: 'ana@acme.example',
    name: 'Ana',
    operator: false,
    time_zone: 'Europe/Berlin',
    has_password: true,
  },
  session: {
    id: '019a7e6e-7c1a-7b55-9f53-0d6a1f0c7a02',
    created_at: '2026-11-15T09:30:00.000Z',
    expires_at: '2026-11-15T21:30:00.000Z',
  },
  workspace: {
    id: '019a7e6e-7c1a-7b55-9f53-0d6a1f0c7a03',
    name: 'Acme',
    disabled_at: null,
    role: 'member',
    scopes: ['read', 'write', 'send'],
  },
}
