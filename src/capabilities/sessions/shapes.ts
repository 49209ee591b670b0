/** The replies of signing in and of the user's own pages. */
import { z } from 'zod'
import { roles, scopes } from '../../contract.ts'
import { moment, said, uuid } from '../../lib/wire.ts'

export const ownUser = z.object({
  id: uuid('The user.'),
  email: said('The address they sign in with.'),
  name: said('What others call them; empty until they say.'),
  operator: z.boolean().meta({ description: 'Whether they may change what holds for the whole instance.' }),
  time_zone: z.string().nullable().meta({ description: "Such as Europe/Berlin. Null: the browser's." }),
  has_password: z.boolean().meta({ description: 'Whether they can sign in with a password.' }),
})

export const provider = z
  .object({ label: said('What people call it.') })
  .nullable()
  .meta({ description: 'The identity provider that one can sign in with, where there is one.' })

export const session = z.object({
  id: uuid('The session.'),
  created_at: moment('When it began.'),
  expires_at: moment('When it ends, however busy it is.'),
})

export const listedSession = session.extend({
  last_seen_at: moment('Its last request, to the minute.'),
  user_agent: said('What the browser says it is.'),
  current: z.boolean().meta({ description: 'Whether this request belongs to it.' }),
  identity: z.object({ issuer: said('`local`, or the identity provider.') }),
})

export const ownWorkspace = z.object({
  id: uuid('The workspace.'),
  name: said('What people call it.'),
  role: z.enum(roles).meta({ description: 'What the user is there.' }),
  scopes: z
    .array(z.enum(scopes))
    .meta({ description: 'What they may do there, and the most that a key of theirs may.' }),
})

export const done = z.object({ ok: z.literal(true), message: said('What has happened.') })

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
    role: 'member',
    scopes: ['read', 'write', 'send'],
  },
}
