/** Gates and allowlists on the dashboard, for operators. */
import { z } from 'zod'
import { allowlists, type Gate, gates } from '../../contract.ts'
import { notFound } from '../../lib/names.ts'
import { done, momentOrNull, said, uuid } from '../../lib/wire.ts'
import { ok, ownRoute, type Route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { listAllowedNamed, listGates, setAllowed, setGates } from './gates.ts'

/** What each gate switches, in a sentence for the operator who decides. */
const descriptions: Readonly<Record<Gate, string>> = {
  rest: 'The whole REST API. While it is off, every key is refused; the dashboard still works.',
  crm: 'Contacts and the columns that a team keeps about its chats.',
  pipeline: 'The pipeline: stages, and moving chats between them.',
  analytics: 'Statistics about messages and campaigns.',
  start_chat: 'Writing first to people who have not written to the account.',
  campaigns: 'All of campaigns, including reading them.',
  scoped_routing: 'Creating and cancelling campaigns whose recipients each name their account.',
  campaign_mutation: 'Creating, cancelling, pausing and resuming campaigns.',
  branching: 'Campaigns whose next step depends on what the recipient did.',
  read_receipts: 'Campaigns whose next step depends on whether a message was read.',
  broadcast: 'One message to everyone in a stage or with a column value.',
  extended: 'Extras: all accounts at once, phone numbers, a first text when a chat is started.',
  mcp_send: 'Agents may ask to send messages. Each needs an approval.',
  mcp_pipeline: 'Agents may ask to move chats in the pipeline. Each move needs an approval.',
  mcp_columns: 'Agents may ask to set columns. Each change needs an approval.',
}

const needs = { scopes: [], operator: true } as const

const gateOut = z.object({
  name: z.enum(gates),
  enabled: z.boolean(),
  changed_at: momentOrNull('When it last changed; null if never.'),
  description: said('What the gate opens.'),
})
const gate = {
  name: 'rest',
  enabled: true,
  changed_at: '2026-11-15T09:30:00.000Z',
  description: descriptions.rest,
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
  return { ...state, description: descriptions[state.name] }
}
