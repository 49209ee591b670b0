/** What each operation needs, written down apart from the code: adding one without a line here fails. */
import type { Allowlist, Gate, Scope } from '../src/contract.ts'

export interface Expectation {
  readonly method: string
  readonly path: string
  readonly scopes: readonly Scope[]
  /** Besides `rest`. */
  readonly gates: readonly Gate[]
  readonly allowlists: readonly Allowlist[]
  readonly idempotency: 'none' | 'optional' | 'required'
  readonly success?: number
  /** What the same request answers to another workspace's key: its own data, or a refusal. */
  readonly foreign: 'own' | readonly [status: number, code: string]
  /** Where the body decides what is needed: every such body, and what differs with it. */
  readonly variants?: Readonly<Record<string, Partial<Expectation> & { readonly body: unknown }>>
}

const campaignBody = {
  message_text: 'Hello',
  steps: [{ branch: 'no_reply', wait_hours: 48, variants: ['Again'] }],
}

export const expectations: Readonly<Record<string, Expectation>> = {
  get_me: {
    method: 'GET',
    path: '/me',
    scopes: ['read'],
    gates: [],
    allowlists: [],
    idempotency: 'none',
    foreign: 'own',
  },
  list_chats: {
    method: 'GET',
    path: '/chats',
    scopes: ['read'],
    gates: [],
    allowlists: [],
    idempotency: 'none',
    foreign: [403, 'account_unavailable'],
  },
  get_chat: {
    method: 'GET',
    path: '/chats/{chat_id}',
    scopes: ['read'],
    gates: [],
    allowlists: [],
    idempotency: 'none',
    foreign: [403, 'account_unavailable'],
  },
  list_messages: {
    method: 'GET',
    path: '/chats/{chat_id}/messages',
    scopes: ['read'],
    gates: [],
    allowlists: [],
    idempotency: 'none',
    foreign: [403, 'account_unavailable'],
  },
  list_contacts: {
    method: 'GET',
    path: '/contacts',
    scopes: ['read'],
    gates: ['crm'],
    allowlists: [],
    idempotency: 'none',
    foreign: 'own',
  },
  search_messages: {
    method: 'POST',
    path: '/search',
    scopes: ['read'],
    gates: [],
    allowlists: [],
    idempotency: 'none',
    foreign: 'own',
  },
  list_events: {
    method: 'GET',
    path: '/events',
    scopes: ['read'],
    gates: [],
    allowlists: [],
    idempotency: 'none',
    foreign: 'own',
  },
  send_message: {
    method: 'POST',
    path: '/messages',
    scopes: ['send'],
    gates: [],
    allowlists: [],
    idempotency: 'required',
    foreign: [403, 'account_unavailable'],
  },
  start_chat: {
    method: 'POST',
    path: '/chats/start',
    scopes: ['send'],
    gates: ['start_chat'],
    allowlists: [],
    idempotency: 'required',
    foreign: [403, 'account_unavailable'],
  },
  set_read_state: {
    method: 'POST',
    path: '/chats/{chat_id}/read-state',
    scopes: ['write'],
    gates: [],
    allowlists: [],
    idempotency: 'required',
    foreign: [403, 'account_unavailable'],
  },
  get_pipeline: {
    method: 'GET',
    path: '/pipeline',
    scopes: ['read', 'write'],
    gates: ['pipeline'],
    allowlists: [],
    idempotency: 'none',
    foreign: 'own',
  },
  move_chat: {
    method: 'POST',
    path: '/pipeline/move',
    scopes: ['write'],
    gates: ['pipeline'],
    allowlists: [],
    idempotency: 'none',
    foreign: [403, 'account_unavailable'],
  },
  get_columns: {
    method: 'GET',
    path: '/columns',
    scopes: ['read', 'write'],
    gates: ['crm'],
    allowlists: [],
    idempotency: 'none',
    foreign: 'own',
  },
  set_column: {
    method: 'POST',
    path: '/columns/set',
    scopes: ['write'],
    gates: ['crm'],
    allowlists: [],
    idempotency: 'none',
    foreign: [403, 'account_unavailable'],
  },
  get_analytics: {
    method: 'GET',
    path: '/analytics',
    scopes: ['read'],
    gates: ['analytics'],
    allowlists: [],
    idempotency: 'none',
    foreign: 'own',
  },
  get_operation: {
    method: 'GET',
    path: '/operations/{operation_id}',
    scopes: ['read'],
    gates: [],
    allowlists: [],
    idempotency: 'none',
    foreign: [404, 'not_found'],
  },
  // Operations of the tests' own (harness/probes.ts), which have what the contract's do not have yet.
  probe_note: {
    method: 'POST',
    path: '/probe/{chat_id}/notes',
    scopes: ['write'],
    gates: ['crm'],
    allowlists: ['campaign_user', 'campaign_workspace'],
    idempotency: 'required',
    success: 201,
    foreign: [403, 'account_unavailable'],
  },
  probe_variant: {
    method: 'POST',
    path: '/probe/variant',
    scopes: ['campaigns', 'send'],
    gates: [],
    allowlists: [],
    idempotency: 'optional',
    foreign: 'own',
  },
  list_campaigns: {
    method: 'GET',
    path: '/campaigns',
    scopes: ['campaigns'],
    gates: ['campaigns'],
    allowlists: ['campaign_user'],
    idempotency: 'none',
    foreign: 'own',
  },
  get_campaign: {
    method: 'GET',
    path: '/campaigns/{campaign_id}',
    scopes: ['campaigns'],
    gates: ['campaigns'],
    allowlists: ['campaign_user'],
    idempotency: 'none',
    foreign: [404, 'campaign_not_found'],
  },
  verify_campaign: {
    method: 'GET',
    path: '/campaigns/{campaign_id}/verify',
    scopes: ['campaigns'],
    gates: ['campaigns'],
    allowlists: ['campaign_user'],
    idempotency: 'none',
    foreign: [404, 'campaign_not_found'],
  },
  create_campaign: {
    method: 'POST',
    path: '/campaigns',
    scopes: ['campaigns', 'send'],
    gates: ['campaigns', 'scoped_routing', 'campaign_mutation'],
    allowlists: ['campaign_user', 'campaign_workspace'],
    idempotency: 'required',
    success: 201,
    foreign: [403, 'account_unavailable'],
    variants: {
      'with recipients': {
        scopes: ['campaigns'],
        body: {
          ...campaignBody,
          recipients: [{ account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z', chat_id: 'platform:chat:42' }],
        },
      },
      'with contacts': {
        scopes: ['send'],
        idempotency: 'optional',
        body: {
          ...campaignBody,
          account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
          contacts: [{ identifier: '@ines_garcia' }],
        },
      },
    },
  },
  pause_campaign: {
    method: 'POST',
    path: '/campaigns/{campaign_id}/pause',
    scopes: ['campaigns'],
    gates: ['campaigns', 'campaign_mutation'],
    allowlists: ['campaign_user', 'campaign_workspace'],
    idempotency: 'required',
    foreign: [404, 'campaign_not_found'],
  },
  resume_campaign: {
    method: 'POST',
    path: '/campaigns/{campaign_id}/resume',
    scopes: ['campaigns'],
    gates: ['campaigns', 'campaign_mutation'],
    allowlists: ['campaign_user', 'campaign_workspace'],
    idempotency: 'required',
    foreign: [404, 'campaign_not_found'],
  },
  cancel_campaign: {
    method: 'POST',
    path: '/campaigns/{campaign_id}/cancel',
    scopes: ['campaigns'],
    gates: ['campaigns', 'scoped_routing', 'campaign_mutation'],
    allowlists: ['campaign_user', 'campaign_workspace'],
    idempotency: 'required',
    foreign: [404, 'campaign_not_found'],
  },
}
