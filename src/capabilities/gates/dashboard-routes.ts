/** Gates and allowlists on the dashboard, for operators. */
import { z } from 'zod'
import { allowlists, type Gate, gates } from '../../contract.ts'
import { notFound } from '../../lib/names.ts'
import { done, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, ownRoute, type Route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { listAllowedNamed, listGates, setAllowed, setGates } from './gates.ts'

/** For the operator who decides: what each gate switches, and who notices when it closes. */
const sentences: Readonly<Record<Gate, { readonly description: string; readonly noticed_by: string }>> = {
  rest: {
    description: 'The whole REST API. While it is off, every key is refused; the dashboard still works.',
    noticed_by: 'Every program and agent with a key.',
  },
  crm: {
    description: 'Contacts and the columns that a team keeps about its chats.',
    noticed_by: 'Members, whose contacts and columns close, and keys that use them.',
  },
  pipeline: {
    description: 'The pipeline: stages, and moving chats between them.',
    noticed_by: 'Members, whose pipeline closes, and keys that move chats.',
  },
  analytics: {
    description: 'Statistics about messages and campaigns.',
    noticed_by: 'Members and keys that read statistics. Parley still counts.',
  },
  start_chat: {
    description: 'Writing first to people who have not written to the account.',
    noticed_by: 'Members and keys that start a chat.',
  },
  campaigns: {
    description: 'All of campaigns, including reading them.',
    noticed_by: 'Admins and keys that use campaigns. Running campaigns wait until it opens.',
  },
  scoped_routing: {
    description: 'Creating and cancelling campaigns whose recipients each name their account.',
    noticed_by: 'Admins and keys that create or cancel campaigns.',
  },
  campaign_mutation: {
    description: 'Creating, cancelling, pausing and resuming campaigns.',
    noticed_by: 'Admins and keys that change campaigns.',
  },
  branching: {
    description: 'Campaigns whose next step depends on what the recipient did.',
    noticed_by: 'Admins and keys that create such campaigns. Running ones wait until it opens.',
  },
  read_receipts: {
    description: 'Campaigns whose next step depends on whether a message was read.',
    noticed_by:
      'Admins and keys that create such campaigns. Running campaigns with branches wait until it opens.',
  },
  broadcast: {
    description: 'One message to everyone in a stage or with a column value.',
    noticed_by: 'Admins and keys that send broadcasts. Running broadcasts wait until it opens.',
  },
  extended: {
    description: 'Extras: all accounts at once, phone numbers, a first text when a chat is started.',
    noticed_by: 'Programs and agents that use the extras. Running campaigns to contacts wait until it opens.',
  },
  mcp_send: {
    description: 'Agents may ask to send messages. Each needs an approval.',
    noticed_by: 'Agents, and the users who approve for them.',
  },
  mcp_pipeline: {
    description: 'Agents may ask to move chats in the pipeline. Each move needs an approval.',
    noticed_by: 'Agents, and the users who approve for them.',
  },
  mcp_columns: {
    description: 'Agents may ask to set columns. Each change needs an approval.',
    noticed_by: 'Agents, and the users who approve for them.',
  },
}

const needs = { scopes: [], operator: true } as const

const gateOut = z.object({
  name: z.enum(gates),
  enabled: z.boolean(),
  changed_at: momentOrNull('When it last changed; null if never.'),
  description: said('What the gate opens.'),
  noticed_by: said('Who notices when it closes.'),
})
const gate = {
  name: 'rest',
  enabled: true,
  changed_at: '2026-11-15T09:30:00.000Z',
  ...sentences.rest,
}

const entriesOut = z.array(
  z.object({ id: uuid('Id of the user or the workspace.'), label: said('E-mail address or name.') }),
)
const id = '0199a1f0-0000-7000-8000-000000000002'

export const ownRoutes: readonly Route[] = [
  ownRoute({
    ...needs,
    name: 'list_gates',
    method: 'GET',
    path: '/gates',
    summary: 'List gates',
    effect: 'read',
    response: z.object({ gates: z.array(gateOut) }),
    example: { response: { gates: [gate] } },
    handle: async ({ db }) => ok({ gates: (await listGates(db)).map(described) }),
  }),
  ownRoute({
    ...needs,
    name: 'set_gate',
    method: 'POST',
    path: '/gates/{name}',
    summary: 'Open or close a gate',
    effect: 'admin',
    touches: ['gates'],
    params: z.strictObject({ name: z.string() }),
    body: z.strictObject({ enabled: z.boolean() }),
    errors: ['not_found'],
    response: z.object({ gate: gateOut }),
    example: { params: { name: 'rest' }, body: { enabled: true }, response: { gate } },
    handle: async (app, { caller, params: { name }, body: { enabled } }) => {
      if (!gates.some((each) => each === name)) throw notFound('gate', name)
      const [state] = await setGates(app, actorOf(caller), { names: [name], enabled })
      if (!state) throw notFound('gate', name)
      const { changed: _, ...gate } = state
      return ok({ gate: described(gate) })
    },
  }),
  ownRoute({
    ...needs,
    name: 'list_allowlists',
    method: 'GET',
    path: '/allowlists',
    summary: 'List the campaign allowlists',
    effect: 'read',
    response: z.object({ campaign_user: entriesOut, campaign_workspace: entriesOut }),
    example: { response: { campaign_user: [{ id, label: 'ana@acme.example' }], campaign_workspace: [] } },
    handle: async ({ db }) => ok(await listAllowedNamed(db)),
  }),
  ownRoute({
    ...needs,
    name: 'set_allowlist',
    method: 'POST',
    path: '/allowlists/{list}',
    summary: 'Add to or remove from an allowlist',
    effect: 'admin',
    touches: ['gates'],
    params: z.strictObject({ list: z.enum(allowlists) }),
    malformed: 'not_found',
    body: z.strictObject({ id: z.string(), listed: z.boolean() }),
    errors: ['not_found'],
    response: z.object(done),
    example: {
      params: { list: 'campaign_user' },
      body: { id, listed: true },
      response: { ok: true, message: 'The user is on the allowlist.' },
    },
    handle: async (app, { caller, params: { list }, body }) => {
      await setAllowed(app, actorOf(caller), { list, id: body.id, allowed: body.listed })
      const who = list === 'campaign_user' ? 'user' : 'workspace'
      return ok({ ok: true, message: `The ${who} is ${body.listed ? 'on' : 'no longer on'} the allowlist.` })
    },
  }),
]

function described<State extends { readonly name: Gate }>(state: State) {
  return { ...state, ...sentences[state.name] }
}
