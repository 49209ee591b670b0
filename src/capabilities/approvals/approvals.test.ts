/** An agent's writes: requested, approved by the key's own user, run once. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type AgentStage, openAgentStage } from '../../../test/harness/agents.ts'
import { hangMs, until } from '../../../test/harness/process.ts'
import { openNeighbour } from '../../../test/harness/worker.ts'
import { sql } from '../../db/sql.ts'
import { listAudit, verifyAudit } from '../audit/audit.ts'
import { setDispatch } from '../gates/gates.ts'
import { createStage } from '../pipeline/pipeline.ts'
import { approve, deny } from './decisions.ts'
import { forgetApprovals } from './loops.ts'
import { operationKey } from './use.ts'

let stage: AgentStage

beforeAll(async () => {
  stage = await openAgentStage()
  const { workspace_id } = stage.tenant
  await createStage(stage.app, 'system', { workspace_id, key: 'talks', label: 'In talks' })
  await createStage(stage.app, 'system', { workspace_id, key: 'gone', label: 'Gone', hidden: true })
})
afterAll(() => stage.workplace.close())
afterEach(() => stage.resumeClock())

/** Ends every request, so that the next test finds none pending. */
async function clear(): Promise<void> {
  await stage.db.run(sql`
    update approvals set expires_at = domain_now() - interval '1 hour' where state = 'waiting'`)
}

async function minutesLater(minutes: number): Promise<void> {
  const { at } = await stage.db.one<{ at: Date }>(sql`
    select domain_now() + make_interval(secs => ${minutes * 60}) as at`)
  await stage.setClock(at)
}

const approvalsOf = async () =>
  (await stage.db.one<{ count: number }>(sql`select count(*)::int as count from approvals`)).count

const operationOf = (id: unknown) =>
  stage.db.one<{ kind: string; state: string; key_id: string; user_id: string }>(sql`
    select kind, state, key_id, user_id from operations where id = ${id}`)

describe('a write with an approval', () => {
  test('sends a message once after its request is approved', async () => {
    const input = stage.message()
    const asked = await stage.call({ input })
    expect(asked).toMatchObject({ status: 403, body: { code: 'approval_required', payload: input } })
    const { request_id } = asked.body
    expect(asked.body.approval_url).toBe(
      `https://parley.example/dashboard/mcp-approvals?request=${request_id}`,
    )
    expect(stage.accepted(input)).toBe(0)
    const { token, expires_at } = await approve(stage.app, stage.user, String(request_id))
    const { decided_at } = await stage.db.one<{ decided_at: Date }>(sql`
      select decided_at from approvals where id = ${request_id}`)
    expect(expires_at.getTime() - decided_at.getTime()).toBe(120_000)
    const done = await stage.call({ input, token })
    expect(done).toMatchObject({ status: 200, body: { ok: true, account_id: stage.account_id } })
    expect(stage.accepted(input)).toBe(1)
    const { tenant } = stage
    const row = { kind: 'send_message', state: 'completed', key_id: tenant.key_id, user_id: tenant.user_id }
    expect(await operationOf(done.body.operation_id)).toEqual(row)
  })

  test('a second use sends nothing and returns the first result', async () => {
    const input = stage.message()
    const token = await stage.approved(input)
    const { body: answer } = await stage.call({ input, token })
    const { operation_id } = answer
    const used = { code: 'approval_used', operation_id, state: 'completed', answer }
    const second = await stage.call({ input, token })
    expect(second).toMatchObject({ status: 403, body: used, headers: { 'X-Operation-Id': operation_id } })
    await minutesLater(60)
    expect(await stage.call({ input, token })).toMatchObject({ status: 403, body: used })
    expect(stage.accepted(input)).toBe(1)
  })

  test('a used token with another payload reveals nothing about the first', async () => {
    const input = stage.message()
    const token = await stage.approved(input)
    await stage.call({ input, token })
    const other = stage.message()
    const { status, body } = await stage.call({ input: other, token })
    expect([status, body.code, body.operation_id]).toEqual([403, 'approval_mismatch', undefined])
    expect(stage.accepted(other)).toBe(0)
  })

  test('moves a chat once, as an operation of its own', async () => {
    const input = stage.move('talks')
    const token = await stage.approved(input, { tool: 'move_chat' })
    expect(await stageNow()).toBe('new')
    const done = await stage.call({ tool: 'move_chat', input, token })
    expect(done).toMatchObject({ status: 200, body: { changed: true, stage_key: 'talks' } })
    expect(await stageNow()).toBe('talks')
    const operation_id = done.headers?.['X-Operation-Id']
    expect(await operationOf(operation_id)).toMatchObject({ kind: 'move_chat', state: 'completed' })
    expect(await stage.call({ tool: 'move_chat', input, token })).toMatchObject({
      status: 403,
      body: { code: 'approval_used', operation_id, state: 'completed', answer: done.body },
    })
  })

  test('sets a column once, as an operation of its own', async () => {
    const input = stage.value('Team')
    const token = await stage.approved(input, { tool: 'set_column' })
    expect(await valueNow()).toEqual([])
    const done = await stage.call({ tool: 'set_column', input, token })
    expect(done).toMatchObject({ status: 200, body: { value: ['Team'] } })
    expect(await valueNow()).toEqual(['Team'])
    expect(await stage.call({ tool: 'set_column', input, token })).toMatchObject({
      body: { code: 'approval_used', state: 'completed', answer: done.body },
    })
  })

  test('returns what the platform refuses, and consumes the approval', async () => {
    const input = stage.message()
    const token = await stage.approved(input)
    stage.workplace.fault({ on: 'send', fault: 'refuse', times: 1, account_id: stage.account_id })
    const refused = await stage.call({ input, token })
    expect(refused.status).toBeGreaterThanOrEqual(400)
    const again = await stage.call({ input, token })
    expect(again.body).toMatchObject({ code: 'approval_used', state: 'refused', answer: refused.body })
    expect(stage.accepted(input)).toBe(0)
  })

  test('an unknown outcome is looked up with the token, which sends nothing again', async () => {
    const input = stage.message()
    const token = await stage.approved(input)
    stage.workplace.fault({ on: 'send', fault: 'unavailable', times: 1, account_id: stage.account_id })
    const lost = await stage.call({ input, token })
    expect(lost.body).toMatchObject({
      code: 'outcome_ambiguous',
      error: expect.stringContaining('Call again with the same approval_token'),
    })
    expect((await stage.call({ input, token })).body).toMatchObject({ code: 'approval_used' })
    expect(stage.accepted(input)).toBe(0)
  })

  test('a send that did nothing says what to do next, and consumes the approval', async () => {
    const input = stage.message()
    const id = await stage.ask(input)
    const { token } = await approve(stage.app, stage.user, id)
    const released = await stage.db.transaction(async (tx) => {
      // Nothing crosses the boundary in the meantime.
      await tx.run(sql`select 1 from settings where name = 'dispatch' for update`)
      const calling = stage.call({ input, token })
      await until('it is queued', hangMs, async () => {
        const ended = sql`
          update operations set state = 'released', reason = 'expired', finished_at = domain_now()
          where idempotency_key = ${operationKey(id)} and state = 'queued'`
        return (await stage.db.run(ended)) > 0
      })
      return calling
    })
    expect([released.status, released.body.code]).toEqual([503, 'provider_unavailable'])
    expect(released.body.error).toContain('call without a token to request a new one')
    const again = await stage.call({ input, token })
    expect(again.body).toMatchObject({ code: 'approval_used', state: 'released', answer: null })
    expect(stage.accepted(input)).toBe(0)
  })

  test('without account_id the approved account is used', async () => {
    await stage.workplace.service.open('extended')
    const { account_id, ...input } = stage.message()
    const asked = await stage.call({ input })
    expect(asked.body.payload).toEqual({ ...input, account_id })
    const { token } = await approve(stage.app, stage.user, String(asked.body.request_id))
    expect(await stage.call({ input, token })).toMatchObject({ status: 200, body: { account_id } })
    await stage.workplace.service.shut('extended')
    expect(stage.accepted(input)).toBe(1)
  })

  async function stageNow(): Promise<string> {
    const { stage_key } = await stage.db.one<{ stage_key: string }>(sql`
      select stage_key from chats where account_id = ${stage.account_id}`)
    return stage_key
  }

  async function valueNow(): Promise<readonly string[]> {
    const row = await stage.db.maybe<{ value: string[] }>(sql`
      select value from column_values where account_id = ${stage.account_id} and column_id = ${stage.column_id}`)
    return row?.value ?? []
  }
})

describe('many calls at once with one token', () => {
  test.each([
    ['send_message', 1_000],
    ['move_chat', 100],
  ] as const)('%s, %i of them in two processes: one wins', async (tool, count) => {
    const neighbour = await openNeighbour(stage.workplace.service.database.url)
    const message = stage.message()
    const input = tool === 'send_message' ? message : stage.move('new')
    // A busy machine may take longer than a token lives.
    const { now } = await stage.db.one<{ now: Date }>(sql`select domain_now() as now`)
    await stage.setClock(now)
    const token = await stage.approved(input, { tool })
    const before = await operationCount()
    const calls = Array.from({ length: count }, (_, n) => (n % 2 ? neighbour : stage.app))
    const answers = await Promise.all(calls.map((app) => stage.call({ tool, input, token, app })))
    await neighbour.close()
    const codes = answers.map(({ status, body }) => body.code ?? String(status))
    expect(codes.filter((code) => code === '200')).toHaveLength(1)
    // With this many callers waiting for a connection, the last of them may hear that the database does not answer.
    const lost = codes.filter((code) => code !== '200' && code !== 'store_unavailable')
    expect(new Set(lost)).toEqual(new Set(['approval_used']))
    expect((await operationCount()) - before).toBe(1)
    if (tool === 'send_message') expect(stage.accepted(message)).toBe(1)
  })

  async function operationCount(): Promise<number> {
    const { count } = await stage.db.one<{ count: number }>(sql`
      select count(*)::int as count from operations where idempotency_key like 'approval·%'`)
    return count
  }
})

describe('a write without a token', () => {
  test.each([
    ['invalid_stage', 'move_chat', () => stage.move('gone')],
    ['invalid_stage', 'move_chat', () => stage.move('nowhere')],
    ['invalid_column_value', 'set_column', () => stage.value('one', 'two')],
    ['invalid_request', 'send_message', () => ({ ...stage.message(), more: 1 })],
    ['account_scope_required', 'send_message', () => ({ ...stage.message(), account_id: undefined })],
    ['account_unavailable', 'send_message', () => ({ ...stage.message(), account_id: 'acc_nobody' })],
    ['chat_unavailable', 'send_message', () => ({ ...stage.message(), chat_id: 'platform:chat:9' })],
  ] as const)('%s: %s runs every check, and requests no approval', async (code, tool, input) => {
    const before = await approvalsOf()
    expect((await stage.call({ tool, input: input() })).body.code).toBe(code)
    expect(await approvalsOf()).toBe(before)
  })

  test('503 while the account cannot send, and requests no approval', async () => {
    await setDispatch(stage.app, 'system', false)
    const { status, body } = await stage.call({ input: stage.message() })
    await setDispatch(stage.app, 'system', true)
    expect([status, body.code]).toEqual([503, 'provider_unavailable'])
  })

  test("503 while the tool's gate is closed, with a token and without", async () => {
    const input = stage.message()
    const token = await stage.approved(input)
    await stage.workplace.service.shut('mcp_send')
    for (const given of [{}, { token }]) {
      const { status, body } = await stage.call({ input, ...given })
      expect([status, body.code]).toEqual([503, 'feature_disabled'])
    }
    await stage.workplace.service.open('mcp_send')
    expect((await stage.call({ input, token })).status).toBe(200)
  })

  test('403 when the key lacks the scope', async () => {
    const as = { ...stage.caller, scopes: ['read', 'write'] as const }
    expect((await stage.call({ input: stage.message(), as })).body.code).toBe('missing_scope')
  })

  test('a requested move changes neither chat nor events', async () => {
    const events = await stage.workplace.events(stage.tenant.workspace_id)
    await stage.ask(stage.move('talks'), { tool: 'move_chat' })
    expect(await stage.workplace.events(stage.tenant.workspace_id)).toEqual(events)
  })

  test('the same call returns the pending request, and creates another after 30 minutes', async () => {
    const input = stage.message()
    const id = await stage.ask(input)
    expect(await Promise.all([stage.ask(input), stage.ask(input)])).toEqual([id, id])
    await minutesLater(29.9)
    expect(await stage.ask(input)).toBe(id)
    await minutesLater(0.2)
    expect(await stage.ask(input)).not.toBe(id)
  })

  test('many identical calls at once create one request', async () => {
    const input = stage.message()
    const ids = await Promise.all(Array.from({ length: 10 }, () => stage.ask(input)))
    expect(new Set(ids).size).toBe(1)
  })

  test('the same call creates another request once the account has another identity on its platform', async () => {
    const input = stage.message()
    const change = (by: number) =>
      stage.db.run(sql`
        update accounts set platform_user_id = platform_user_id + ${by}::int where id = ${stage.account_id}`)
    const before = await stage.ask(input)
    await change(1)
    const after = await stage.ask(input)
    await change(-1)
    expect(after).not.toBe(before)
    expect(await stage.ask(input)).toBe(before)
  })

  test('another key gets its own request', async () => {
    const input = stage.message()
    const { id: key_id } = await stage.workplace.service.key(stage.tenant)
    const other = { ...stage.caller, via: { ...stage.caller.via, id: key_id } as typeof stage.caller.via }
    expect(await stage.ask(input)).not.toBe(await stage.ask(input, { as: other }))
  })

  test('the same call returns the approved request while its token is valid, and creates another once it has expired', async () => {
    const input = stage.message()
    const id = await stage.ask(input)
    const { expires_at } = await approve(stage.app, stage.user, id)
    const { body } = await stage.call({ input })
    expect([body.request_id, body.expires_at]).toEqual([id, expires_at.toISOString()])
    await minutesLater(2.1)
    expect(await stage.ask(input)).not.toBe(id)
  })

  test('a denied call stays denied for 30 minutes', async () => {
    const input = stage.message()
    const id = await stage.ask(input)
    await deny(stage.app, stage.user, id)
    expect(await stage.call({ input })).toMatchObject({ status: 403, body: { code: 'approval_denied' } })
    await minutesLater(29.9)
    expect((await stage.call({ input })).body.code).toBe('approval_denied')
    await minutesLater(0.2)
    expect(await stage.ask(input)).not.toBe(id)
  })

  test('the same payload can be requested again after it ran', async () => {
    const input = stage.message()
    const token = await stage.approved(input)
    await stage.call({ input, token })
    const again = await stage.approved(input)
    expect(again).not.toBe(token)
    expect((await stage.call({ input, token: again })).status).toBe(200)
    expect(stage.accepted(input)).toBe(2)
  })

  test('429 while 20 requests of the key are pending, but not for repeats of those', async () => {
    await clear()
    const inputs = Array.from({ length: 20 }, () => stage.message())
    const ids = await Promise.all(inputs.map((input) => stage.ask(input)))
    const refused = await stage.call({ input: stage.message() })
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
    expect(refused.body.retry_after).toBeGreaterThan(1_700)
    expect(await stage.ask(inputs[0])).toBe(ids[0])
    await deny(stage.app, stage.user, String(ids[1]))
    await stage.ask(stage.message())
    await clear()
  })

  test.each([
    ['an agent', 'an agent'],
    ['\u202ea\0b\n\ud800 ', 'ab \ufffd'],
    ['x'.repeat(300), 'x'.repeat(200)],
    [' \t', null],
    [undefined, null],
  ])('a client that calls itself %j is shown as %j', async (given, shown) => {
    const id = await stage.ask(stage.message(), { client_name: given })
    const { client_name } = await stage.db.one<{ client_name: string }>(sql`
      select client_name from approvals where id = ${id}`)
    expect(client_name).toBe(shown)
    await clear()
  })
})

describe('afterwards', () => {
  test('the audit log has every step, without a text', async () => {
    const input = stage.message('a very private text')
    const id = await stage.ask(input)
    const { token } = await approve(stage.app, stage.user, id)
    await stage.call({ input, token })
    const denied = await stage.ask(stage.message('another private text'))
    await deny(stage.app, stage.user, denied)
    await deny(stage.app, stage.user, denied)
    const { key_id, user_id } = stage.tenant
    const steps = (await listAudit(stage.db, { limit: 5 })).reverse()
    expect(steps.map(({ actor, action, target }) => [actor, action, target])).toEqual([
      [`key:${key_id}`, 'approval.requested', id],
      [`user:${user_id}`, 'approval.approved', id],
      [`key:${key_id}`, 'approval.used', id],
      [`key:${key_id}`, 'approval.requested', denied],
      [`user:${user_id}`, 'approval.denied', denied],
    ])
    expect(JSON.stringify(steps)).not.toContain('private')
    expect(JSON.stringify(steps)).not.toContain(token)
    expect(stage.workplace.service.log.join('')).not.toMatch(new RegExp(`private|${token}`))
    expect(await verifyAudit(stage.app)).toMatchObject({ ok: true })
  })

  test('a decision and the request it is about never change', async () => {
    const id = await stage.ask(stage.message())
    await approve(stage.app, stage.user, id)
    for (const change of [
      sql`payload = '{}'`,
      sql`fingerprint = sha256('other')`,
      sql`chat_id = 1`,
      sql`key_id = gen_random_uuid()`,
      sql`state = 'waiting', decided_at = null`,
      sql`token_expires_at = token_expires_at + interval '1 hour'`,
      sql`idp_user_uuid = gen_random_uuid()`,
    ]) {
      const changing = stage.db.run(sql`update approvals set ${change} where id = ${id}`)
      await expect(changing).rejects.toThrow(/approval .* must/)
    }
  })

  test('a request is deleted with its text after 30 days, and its operation stays', async () => {
    const input = stage.message()
    const id = await stage.ask(input)
    const { token } = await approve(stage.app, stage.user, id)
    const { body } = await stage.call({ input, token })
    await minutesLater(60 * 24 * 30 - 1)
    await forgetApprovals(stage.db)
    expect((await stage.call({ input, token })).body.code).toBe('approval_used')
    await minutesLater(2)
    await forgetApprovals(stage.db)
    expect(await stage.db.maybe(sql`select 1 from approvals where id = ${id}`)).toBeUndefined()
    expect((await operationOf(body.operation_id)).state).toBe('completed')
    expect((await stage.call({ input, token })).body.code).toBe('approval_mismatch')
    expect(stage.accepted(input)).toBe(1)
  })
})
