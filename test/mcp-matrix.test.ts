/**
 * Every tool with every kind of credential, on our own objects, on another workspace's, and on unknown ones. Each
 * cell is written here, independently of the code.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createKey, revokeKey } from '../src/capabilities/keys/keys.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { type Gate, roles, type Scope, scopes } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import { type AgentStage, openAgentStage } from './harness/agents.ts'
import { callTool, type McpCall, sendMessage } from './harness/mcp.ts'
import type { Service, Tenant } from './harness/service.ts'
import { inWorkspace } from './roles.expectations.ts'

const canary = 'canaryofanother'
let stage: AgentStage
let service: Service
let other: Tenant
let at: McpCall
/** By kind; undefined: no key at all. */
let credentials: Record<string, string | undefined>
let objects: Record<'own' | 'foreign' | 'none', { account_id: string; chat_id: string; column_id: string }>

beforeAll(async () => {
  stage = await openAgentStage()
  service = stage.workplace.service
  const own = stage.tenant
  other = await service.tenant('Other')
  const foreign = await service.account(other.workspace_id)
  const chat_id = await service.chat({
    account_id: foreign,
    workspace_id: other.workspace_id,
    id: '4242',
    name: canary,
    texts: [canary],
  })
  const key = async (more: object) => (await service.key({ ...own, ...more })).key
  const scoped = (scope: Scope) => key({ scopes: [scope] })
  const revoked = await service.key(own)
  await revokeKey(service.app, 'system', revoked.id)
  const colleague = await createUser(service.app, 'system', {
    email: 'colleague@acme.example',
    workspace_id: own.workspace_id,
  })
  const expired = await service.key(own)
  await service.app.db.run(
    sql`update keys set expires_at = domain_now() - interval '1 second' where id = ${expired.id}`,
  )
  credentials = {
    none: undefined,
    malformed: 'nonsense',
    unknown: `${own.key.slice(0, -6)}000000`,
    revoked: revoked.key,
    expired: expired.key,
    session: (await stage.cookie()).replace('sid=', ''),
    right: own.key,
    other: other.key,
    // The allowlists are for campaigns, which are not tools: no one here is on one.
    colleague: (await service.key({ workspace_id: own.workspace_id, user_id: colleague.id })).key,
    read: await scoped('read'),
    write: await scoped('write'),
    send: await scoped('send'),
    campaigns: await scoped('campaigns'),
  }
  for (const role of roles) {
    const { workspace_id } = own
    const email = `${role}@acme.example`
    const { id: user_id } = await createUser(service.app, 'system', { email, workspace_id, role })
    for (const scope of scopes) {
      const wanted = { workspace_id, user_id, name: scope, scopes: [scope] }
      credentials[`${role} ${scope}`] = (await createKey(service.app, `user:${user_id}`, wanted)).key
    }
  }
  const { account_id, column_id } = stage
  objects = {
    own: { account_id, chat_id: stage.chat_id, column_id },
    foreign: { account_id: foreign, chat_id, column_id },
    none: { account_id: 'acc_00000000000000000000', chat_id, column_id },
  }
  at = { url: service.url }
  await service.settle()
})
afterAll(() => stage.workplace.close())

type Target = { account_id: string; chat_id: string; column_id: string }

interface Row {
  /** The route of the API that does the same: its role at the dashboard applies. */
  readonly route: string
  readonly scope: Scope
  readonly gates: readonly Gate[]
  readonly given: (target: Target) => object
  /** What the right key gets for its own objects, and for others. */
  readonly own: string
  readonly elsewhere: string
  /** If it names a chat: the answer for a chat that the account does not have. */
  readonly missing?: string
}

const pick = ({ account_id, chat_id }: Target) => ({ account_id, chat_id })
const rows: Readonly<Record<string, Row>> = {
  service_whoami: {
    route: 'get_me',
    scope: 'read',
    gates: [],
    given: () => ({}),
    own: 'ok',
    elsewhere: 'ok',
  },
  service_list_chats: {
    route: 'list_chats',
    scope: 'read',
    gates: [],
    given: ({ account_id }) => ({ account_id }),
    own: 'ok',
    elsewhere: 'account_unavailable',
  },
  service_get_chat: {
    route: 'get_chat',
    scope: 'read',
    gates: [],
    given: pick,
    own: 'ok',
    elsewhere: 'account_unavailable',
    missing: 'chat_not_found',
  },
  service_get_messages: {
    route: 'list_messages',
    scope: 'read',
    gates: [],
    given: pick,
    own: 'ok',
    elsewhere: 'account_unavailable',
    missing: 'chat_not_found',
  },
  service_search_messages: {
    route: 'search_messages',
    scope: 'read',
    gates: [],
    given: ({ account_id }) => ({ query: 'hello', account_id }),
    own: 'ok',
    elsewhere: 'account_unavailable',
  },
  service_send_message: {
    route: 'send_message',
    scope: 'send',
    gates: ['mcp_send'],
    given: (target) => ({ ...pick(target), text: 'from the matrix' }),
    own: 'approval_required',
    elsewhere: 'account_unavailable',
    missing: 'chat_unavailable',
  },
  service_move_pipeline_stage: {
    route: 'move_chat',
    scope: 'write',
    gates: ['pipeline', 'mcp_pipeline'],
    given: (target) => ({ ...pick(target), stage_key: 'new' }),
    own: 'approval_required',
    elsewhere: 'account_unavailable',
    missing: 'chat_not_found',
  },
  service_set_column: {
    route: 'set_column',
    scope: 'write',
    gates: ['crm', 'mcp_columns'],
    given: (target) => ({ ...target, value: ['x'] }),
    own: 'approval_required',
    elsewhere: 'account_unavailable',
    missing: 'chat_not_found',
  },
}

const refusedAtTheDoor = ['none', 'malformed', 'unknown', 'revoked', 'expired', 'session']

/** `ok`, the code of a refusal, or the status of the entrance. */
async function resultOf(tool: string, name: string, target: Target): Promise<string> {
  const ask = { ...at, key: credentials[name] }
  const given = (rows[tool] as Row).given(target)
  const { status, body } = await sendMessage(ask, 'tools/call', { name: tool, arguments: given })
  if (status !== 200) return `${status} ${body.code}`
  const { isError, structuredContent } = body.result ?? {}
  return isError ? String(structuredContent?.code) : 'ok'
}

test('every tool has a row', async () => {
  const { body } = await sendMessage({ ...at, key: credentials.right }, 'tools/list')
  const tools = body.result?.tools as { name: string }[]
  expect(tools.map(({ name }) => name)).toEqual(Object.keys(rows))
})

describe.each(Object.entries(rows))('%s', (tool, { route, scope, gates, own, elsewhere, missing, given }) => {
  test('refuses callers without access, whatever they call', async () => {
    for (const name of refusedAtTheDoor) {
      for (const target of Object.values(objects)) {
        expect([name, await resultOf(tool, name, target)]).toEqual([name, '401 invalid_key'])
      }
    }
  })

  test('shows a key its own, and of others only that it does not exist', async () => {
    for (const name of ['right', 'colleague', scope]) {
      expect([name, await resultOf(tool, name, objects.own)]).toEqual([name, own])
      expect([name, await resultOf(tool, name, objects.foreign)]).toEqual([name, elsewhere])
      expect([name, await resultOf(tool, name, objects.none)]).toEqual([name, elsewhere])
    }
    // Ours is foreign to them.
    expect(await resultOf(tool, 'other', objects.own)).toBe(elsewhere)
  })

  test("answers the same for another workspace's and for an unknown one", async () => {
    const answers = await Promise.all(
      [objects.foreign, objects.none].map((target) =>
        callTool({ ...at, key: credentials.right }, tool, given(target)),
      ),
    )
    // The answer names the account as it was given.
    const [foreign, none] = answers.map((answer) => JSON.stringify(answer).replaceAll(/acc_\w+/g, 'acc'))
    if (tool !== 'service_whoami') expect(foreign).toBe(none)
    expect(foreign).not.toContain(canary)
  })

  test('a chat of another workspace does not exist in an account of ours', async () => {
    if (!missing) return
    const { account_id } = objects.own
    expect(await resultOf(tool, 'right', { ...objects.foreign, account_id })).toBe(missing)
    expect(await resultOf(tool, 'right', { ...objects.own, chat_id: 'platform:chat:999' })).toBe(missing)
  })

  test('names the scope that a key lacks', async () => {
    for (const name of ['read', 'write', 'send', 'campaigns'].filter((each) => each !== scope)) {
      for (const target of Object.values(objects)) {
        expect([name, await resultOf(tool, name, target)]).toEqual([name, 'missing_scope'])
      }
    }
  })

  test('a key that a member made does what their role may do at the dashboard, with the scope for it', async () => {
    const lowest = roles.indexOf(inWorkspace[route] as (typeof roles)[number])
    expect(lowest).toBeGreaterThanOrEqual(0)
    for (const [rank, role] of roles.entries()) {
      for (const granted of scopes) {
        const allowed = rank >= lowest ? own : 'missing_role'
        const name = `${role} ${granted}`
        const expected = granted === scope ? allowed : 'missing_scope'
        expect([name, await resultOf(tool, name, objects.own)]).toEqual([name, expected])
      }
    }
  })

  test('each of its gates closes it, and no other gate does', async () => {
    const all: Gate[] = ['crm', 'pipeline', 'mcp_send', 'mcp_pipeline', 'mcp_columns']
    for (const gate of all) {
      await service.shut(gate)
      const expected = gates.includes(gate) ? 'feature_disabled' : own
      expect([gate, await resultOf(tool, 'right', objects.own)]).toEqual([gate, expected])
      await service.open(gate)
    }
    await service.shut('rest')
    expect(await resultOf(tool, 'right', objects.own)).toBe('503 rest_disabled')
    await service.open('rest')
  })
})
