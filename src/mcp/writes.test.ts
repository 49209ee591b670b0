/** The tools that change something, over HTTP: refused, requested, approved by a person, run once. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type AgentStage, openAgentStage } from '../../test/harness/agents.ts'
import { callTool, type Era, eras, type McpCall, sendMessage } from '../../test/harness/mcp.ts'
import { approve } from '../capabilities/approvals/decisions.ts'
import { createStage } from '../capabilities/pipeline/pipeline.ts'
import type { Gate } from '../contract.ts'
import { sql } from '../db/sql.ts'

let stage: AgentStage
let at: McpCall
beforeAll(async () => {
  stage = await openAgentStage()
  const { workspace_id } = stage.tenant
  await createStage(stage.app, 'system', { workspace_id, key: 'talks', label: 'In talks' })
  at = { url: stage.workplace.service.url, key: stage.tenant.key }
})
afterAll(() => stage.workplace.close())
/** Ends every request, so that the next test finds none pending. */
afterEach(() =>
  stage.db.run(
    sql`update approvals set expires_at = domain_now() - interval '1 hour' where state = 'waiting'`,
  ),
)

const write = async (tool: string, given: object, ask: Partial<McpCall> = {}) => {
  const { structuredContent = {}, isError, content } = await callTool({ ...at, ...ask }, tool, given)
  expect(JSON.parse(content?.[0]?.text ?? '')).toEqual(structuredContent)
  expect(isError ?? false).toBe(structuredContent.ok === false)
  return structuredContent
}

async function approvalsOf(): Promise<number> {
  return (await stage.db.one<{ count: number }>(sql`select count(*)::int as count from approvals`)).count
}

describe.each(eras)('%s', (era: Era) => {
  test('refuses, then sends an approved message once; a second use returns the first result', async () => {
    const given = stage.message()
    const asked = await write('service_send_message', given, { era })
    expect(asked).toEqual({
      ok: false,
      code: 'approval_required',
      error: expect.stringContaining('Stop here and ask the user to open approval_url'),
      request_id: expect.any(String),
      approval_url: `${at.url}/dashboard/mcp-approvals?request=${asked.request_id}`,
      payload: given,
      expires_at: expect.any(String),
    })
    // What people wrote, and what is to be sent, stands in fields and never in our sentences.
    expect(asked.error).not.toContain(given.text)
    expect(stage.accepted(given)).toBe(0)
    const { token } = await approve(stage.app, stage.user, String(asked.request_id))
    const sent = await write('service_send_message', { ...given, approval_token: token }, { era })
    expect(sent).toMatchObject({ ok: true, chat_id: stage.chat_id, operation_id: expect.any(String) })
    const again = await write('service_send_message', { ...given, approval_token: token }, { era })
    const { operation_id } = sent
    expect(again).toMatchObject({ code: 'approval_used', operation_id, state: 'completed', answer: sent })
    expect(stage.accepted(given)).toBe(1)
  })

  test('moves a chat and sets a column with an approval, and not without', async () => {
    const moves = stage.move(era === 'modern' ? 'talks' : 'new')
    const value = stage.value(era)
    for (const [tool, given, done] of [
      ['service_move_pipeline_stage', moves, { ok: true, changed: true, stage_key: moves.stage_key }],
      ['service_set_column', value, { ok: true, value: [era] }],
    ] as const) {
      const asked = await write(tool, given, { era })
      expect(asked.code).toBe('approval_required')
      const { token } = await approve(stage.app, stage.user, String(asked.request_id))
      expect(await write(tool, { ...given, approval_token: token }, { era })).toMatchObject(done)
    }
  })
})

test('treats a blank token as none, and any other wrong one as a mismatch', async () => {
  const given = stage.message()
  for (const approval_token of ['', null]) {
    expect((await write('service_send_message', { ...given, approval_token })).code).toBe('approval_required')
  }
  for (const approval_token of [7, {}, ['x'], true, 'x', 'x'.repeat(100_000)]) {
    expect((await write('service_send_message', { ...given, approval_token })).code).toBe('approval_mismatch')
  }
})

test('logs the operation, and neither the token nor the text', async () => {
  const given = stage.message('a text that nobody may find in a log')
  const { request_id } = await write('service_send_message', given)
  const { token } = await approve(stage.app, stage.user, String(request_id))
  const { operation_id } = await write('service_send_message', { ...given, approval_token: token })
  const { log } = stage.workplace.service
  const lines = log
    .map((line) => JSON.parse(line))
    .filter(({ operation }) => operation === 'service_send_message')
  expect(lines.at(-1)).toMatchObject({ operation_id, status: 200 })
  expect(lines.at(-2)).toMatchObject({ code: 'approval_required', status: 200 })
  expect(log.join('')).not.toContain(token)
  expect(log.join('')).not.toContain(given.text)
  expect(log.join('')).not.toContain(stage.tenant.key)
})

describe('the order of checks', () => {
  const tools: [tool: string, gates: Gate[], scope: 'send' | 'write'][] = [
    ['service_send_message', ['mcp_send'], 'send'],
    ['service_move_pipeline_stage', ['mcp_pipeline', 'pipeline'], 'write'],
    ['service_set_column', ['mcp_columns', 'crm'], 'write'],
  ]

  test.each(tools)(
    '%s: gates, then the scope, then the input; no request is made',
    async (tool, gates, scope) => {
      const { service } = stage.workplace
      const before = await approvalsOf()
      const { key } = await service.key({
        ...stage.tenant,
        scopes: scope === 'send' ? ['read', 'write'] : ['read', 'send'],
      })
      for (const gate of gates) {
        await service.shut(gate)
        expect(await write(tool, { wrong: 1, approval_token: 'x' }, { key })).toMatchObject({
          code: 'feature_disabled',
        })
        await service.open(gate)
      }
      expect(await write(tool, { wrong: 1 }, { key })).toMatchObject({ code: 'missing_scope' })
      expect(await write(tool, { wrong: 1 })).toMatchObject({ code: 'invalid_request' })
      expect(await write(tool, { wrong: 1, approval_token: 'x' })).toMatchObject({ code: 'invalid_request' })
      expect(await approvalsOf()).toBe(before)
    },
  )

  test('the gates of the tools close nothing in the API', async () => {
    const { service } = stage.workplace
    await service.shut('mcp_pipeline')
    const moved = await service.post('/pipeline/move', { key: stage.tenant.key, body: stage.move('talks') })
    expect(moved.status).toBe(200)
    await service.open('mcp_pipeline')
  })
})

describe('an address for the user', () => {
  const capabilities = { elicitation: { url: {} } }

  test('is passed on by a client that can, and the token still runs the call', async () => {
    const given = stage.message()
    const call = { name: 'service_send_message', arguments: given }
    const { body } = await sendMessage({ ...at, capabilities }, 'tools/call', call)
    const { resultType, inputRequests } = body.result as unknown as {
      resultType: string
      inputRequests: { approval: { method: string; params: { mode: string; url: string; message: string } } }
    }
    expect(resultType).toBe('input_required')
    const { method, params } = inputRequests.approval
    expect([method, params.mode]).toEqual(['elicitation/create', 'url'])
    expect(params.message).not.toContain(given.text)
    const request_id = new URL(params.url).searchParams.get('request')
    for (const action of ['accept', 'decline', 'cancel']) {
      const more = { inputResponses: { approval: { action } } }
      const again = await sendMessage({ ...at, capabilities, more }, 'tools/call', call)
      expect(again.body.result?.structuredContent).toMatchObject({ code: 'approval_required', request_id })
    }
    expect(stage.accepted(given)).toBe(0)
    const { token } = await approve(stage.app, stage.user, String(request_id))
    const run = { ...given, approval_token: token }
    expect(await write('service_send_message', run, { capabilities })).toMatchObject({ ok: true })
    expect(stage.accepted(given)).toBe(1)
  })

  test('is in the answer for all other clients', async () => {
    for (const others of [{}, { elicitation: {} }, { elicitation: { form: {} } }]) {
      const asked = await write('service_send_message', stage.message(), { capabilities: others })
      expect(asked.code).toBe('approval_required')
    }
  })
})

test('names the client as it names itself, else by its headers', async () => {
  const nameOf = async (id: unknown) =>
    (
      await stage.db.one<{ client_name: string | null }>(
        sql`select client_name from approvals where id = ${id}`,
      )
    ).client_name
  const ask = async (more: Partial<McpCall>) =>
    nameOf((await write('service_send_message', stage.message(), more)).request_id)
  expect(await ask({ client: { name: 'cursor', title: 'Cursor', version: '1' } })).toBe('Cursor')
  expect(await ask({ client: { name: 'cursor', version: '1' } })).toBe('cursor')
  expect(await ask({ era: 'legacy', headers: { 'user-agent': 'agent/7' } })).toBe('agent/7')
})
