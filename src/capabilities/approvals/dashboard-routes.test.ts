/** The approvals page: what a signed-in user sees and decides, and what other users do not. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type AgentStage, openAgentStage } from '../../../test/harness/agents.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import { createStage } from '../pipeline/pipeline.ts'
import { approve } from './decisions.ts'

let stage: AgentStage
let cookie: string

beforeAll(async () => {
  stage = await openAgentStage()
  const { workspace_id } = stage.tenant
  await createStage(stage.app, 'system', { workspace_id, key: 'talks', label: 'In talks' })
  cookie = await stage.cookie()
})
afterAll(() => stage.workplace.close())
afterEach(() => stage.resumeClock())

interface Page {
  readonly approvals: readonly Record<string, unknown>[]
  readonly next_cursor: string | null
  readonly has_more: boolean
}

async function ask<T = Record<string, unknown>>(
  method: 'GET' | 'POST',
  path: string,
  headers: Record<string, string> = { cookie },
): Promise<{ status: number; body: T & { code?: string } }> {
  const { url } = stage.workplace.service
  const response = await fetch(`${url}/dashboard/api/approvals${path}`, {
    method,
    headers: { origin: url, ...headers },
  })
  return { status: response.status, body: (await response.json()) as T & { code?: string } }
}

describe('GET /approvals', () => {
  test('200 with the caller, the operation, and the values before and after', async () => {
    const input = stage.move('talks')
    const id = await stage.ask(input, { tool: 'move_chat', client_name: 'an agent' })
    const { status, body } = await ask<{ approval: unknown }>('GET', `/${id}`)
    expect(status).toBe(200)
    expect(body.approval).toMatchObject({
      id,
      state: 'waiting',
      workspace: { id: stage.tenant.workspace_id, name: 'Acme' },
      key: { id: stage.tenant.key_id, name: 'test' },
      client_name: 'an agent',
      account: { id: stage.account_id, name: 'Sales', provider: 'sandbox' },
      operation: 'move_chat',
      tool: 'service_move_pipeline_stage',
      chat: { id: stage.chat_id, name: 'Mara' },
      payload: input,
      payload_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      field: 'Stage',
      from: ['New'],
      to: ['In talks'],
      operation_id: null,
      outcome: null,
    })
    expect((await ask<Page>('GET', '')).body.approvals).toContainEqual(body.approval)
  })

  test("200 with the column's value now, and at the time of the decision", async () => {
    const id = await stage.ask(stage.value('Team'), { tool: 'set_column' })
    const shown = async () => {
      const { body } = await ask<{ approval: Record<string, unknown> }>('GET', `/${id}`)
      const { field, from, to } = body.approval
      return { field, from, to }
    }
    expect(await shown()).toEqual({ field: 'Plan', from: [], to: ['Team'] })
    const set = (value: string) =>
      stage.workplace.service.post('/columns/set', { key: stage.tenant.key, body: stage.value(value) })
    await set('Free')
    expect(await shown()).toEqual({ field: 'Plan', from: ['Free'], to: ['Team'] })
    await ask('POST', `/${id}/deny`)
    await set('Other')
    expect(await shown()).toEqual({ field: 'Plan', from: ['Free'], to: ['Team'] })
  })

  test('200 with the result of each', async () => {
    const input = stage.message()
    const ids = [await stage.ask(input), await stage.ask(stage.message()), await stage.ask(stage.message())]
    const [used, denied, over] = ids
    const { body: approved } = await ask<{ token: string }>('POST', `/${used}/approve`)
    const { body: sent } = await stage.call({ input, token: approved.token })
    await ask('POST', `/${denied}/deny`)
    await stage.setClock(new Date(Date.now() + 31 * 60_000))
    const { body } = await ask<Page>('GET', '?state=history&limit=100')
    const states = body.approvals
      .filter(({ id }) => ids.includes(String(id)))
      .map(({ id, state }) => [id, state])
    expect(states).toEqual([
      [over, 'expired'],
      [denied, 'denied'],
      [used, 'used'],
    ])
    const { operation_id, message_id } = sent
    expect(body.approvals.find(({ id }) => id === used)).toMatchObject({
      operation_id,
      outcome: { state: 'completed', message_id, code: null },
    })
    expect((await ask<Page>('GET', '')).body.approvals).toEqual([])
  })

  test('200 in pages, each request once, and 400 for a cursor of another list or user', async () => {
    const theirs = await (await stage.colleague()).cookie()
    for (let n = 0; n < 5; n++) await stage.ask(stage.message())
    const all = (await ask<Page>('GET', '?limit=100')).body.approvals.map(({ id }) => id)
    const walked: unknown[] = []
    let next: string | null = ''
    while (next !== null) {
      const { body }: { body: Page } = await ask<Page>('GET', `?limit=2${next && `&cursor=${next}`}`)
      walked.push(...body.approvals.map(({ id }) => id))
      if (body.next_cursor) {
        const foreign = await ask('GET', `?state=history&cursor=${body.next_cursor}`)
        expect([foreign.status, foreign.body.code]).toEqual([400, 'invalid_cursor'])
        const taken = await ask('GET', `?limit=2&cursor=${body.next_cursor}`, { cookie: theirs })
        expect([taken.status, taken.body.code]).toEqual([400, 'invalid_cursor'])
      }
      next = body.next_cursor
    }
    expect(walked).toEqual(all)
  })

  test('401 without a session', async () => {
    for (const path of ['', `/${await stage.ask(stage.message())}`]) {
      const { status, body } = await ask('GET', path, {})
      expect([status, body.code]).toEqual([401, 'not_signed_in'])
    }
  })

  test('401 for a key, also one of the same user', async () => {
    const { status } = await ask('GET', '', { authorization: `Bearer ${stage.tenant.key}` })
    expect(status).toBe(401)
  })
})

describe('POST /approvals/{request_id}/approve', () => {
  test('200 with a token once, and then 409', async () => {
    const id = await stage.ask(stage.message())
    const { status, body } = await ask<{ token: string; expires_at: string }>('POST', `/${id}/approve`)
    expect([status, body.token]).toEqual([200, expect.stringMatching(/^apr_\w{40}$/)])
    const again = await ask('POST', `/${id}/approve`)
    expect([again.status, again.body.code]).toEqual([409, 'conflict'])
    expect(JSON.stringify((await ask('GET', `/${id}`)).body)).not.toContain(body.token)
    const { hit } = await stage.db.one<{ hit: boolean }>(sql`
      select (a::text) like ${`%${body.token}%`} as hit from approvals a where id = ${id}`)
    expect(hit).toBe(false)
    expect(stage.workplace.service.log.join('')).not.toContain(body.token)
  })

  test('gives a token to one of many callers at once', async () => {
    const id = await stage.ask(stage.message())
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask('POST', `/${id}/approve`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(409)])
  })

  test('403 after it was denied, and after it has expired', async () => {
    const [denied, late] = [await stage.ask(stage.message()), await stage.ask(stage.message())]
    await ask('POST', `/${denied}/deny`)
    expect(await ask('POST', `/${denied}/approve`)).toMatchObject({
      status: 403,
      body: { code: 'approval_denied' },
    })
    await stage.setClock(new Date(Date.now() + 31 * 60_000))
    for (const path of ['approve', 'deny']) {
      const { status, body } = await ask('POST', `/${late}/${path}`)
      expect([status, body.code]).toEqual([403, 'approval_expired'])
    }
  })

  test('409 once the key that requested it was revoked', async () => {
    const other = await stage.colleague()
    const id = await other.ask(other.message())
    await stage.db.run(sql`update keys set revoked_at = domain_now() where id = ${other.tenant.key_id}`)
    const { status, body } = await ask('POST', `/${id}/approve`, { cookie: await other.cookie() })
    expect([status, body.code]).toEqual([409, 'conflict'])
    expect(await stage.state(id)).toBe('waiting')
  })

  test.each<[string, (other: AgentStage, heir: string) => Sql]>([
    [
      'the key that asked has expired',
      ({ tenant }) => sql`update keys set expires_at = domain_now() where id = ${tenant.key_id}`,
    ],
    [
      'the user is disabled',
      ({ tenant }) => sql`update users set disabled_at = domain_now() where id = ${tenant.user_id}`,
    ],
    [
      'the identity is linked to another user',
      ({ tenant }, heir) => sql`update identities set user_id = ${heir} where user_id = ${tenant.user_id}`,
    ],
    [
      'the identity has another UUID',
      ({ tenant }) => sql`update identities set idp_user_uuid = ${newId()} where user_id = ${tenant.user_id}`,
    ],
  ])('409 when %s after the session check', async (_, change) => {
    const other = await stage.colleague()
    const id = await other.ask(other.message())
    const heir = await stage.workplace.service.tenant('Heir')
    await stage.db.run(change(other, heir.user_id))
    await expect(approve(stage.app, other.user, id)).rejects.toMatchObject({ code: 'conflict' })
    expect(await stage.state(id)).toBe('waiting')
  })

  test('403 from another site', async () => {
    const id = await stage.ask(stage.message())
    const { status, body } = await ask('POST', `/${id}/approve`, { cookie, origin: 'https://evil.example' })
    expect([status, body.code]).toEqual([403, 'origin_refused'])
    expect(await stage.state(id)).toBe('waiting')
  })
})

describe('POST /approvals/{request_id}/deny', () => {
  test('200, and again', async () => {
    const id = await stage.ask(stage.message())
    for (let time = 0; time < 2; time++) {
      expect(await ask('POST', `/${id}/deny`)).toMatchObject({ status: 200, body: { ok: true } })
    }
    expect(await stage.state(id)).toBe('denied')
  })

  test('409 after it was approved', async () => {
    const id = await stage.ask(stage.message())
    await ask('POST', `/${id}/approve`)
    expect((await ask('POST', `/${id}/deny`)).status).toBe(409)
    expect(await stage.state(id)).toBe('approved')
  })
})

describe('another user', () => {
  test.each([
    ['of the same workspace, whatever their role', async () => (await stage.colleague()).cookie()],
    [
      'who was a member and is no longer',
      async () => {
        const other = await stage.colleague()
        await stage.db.run(sql`
          update memberships set ended_at = domain_now() where user_id = ${other.tenant.user_id}`)
        return other.cookie()
      },
    ],
  ])('404 for one %s', async (_, signIn) => {
    const id = await stage.ask(stage.message())
    const theirs = { cookie: await signIn() }
    const unknown = await ask('GET', '/0199a1f0-0000-7000-8000-000000000000', theirs)
    for (const [method, path] of [
      ['GET', `/${id}`],
      ['POST', `/${id}/approve`],
      ['POST', `/${id}/deny`],
      ['GET', '/nonsense'],
    ] as const) {
      expect(await ask(method, path, theirs)).toMatchObject({ status: 404, body: { code: 'not_found' } })
    }
    expect((await ask('GET', `/${id}`, theirs)).body).toEqual(unknown.body)
    expect((await ask<Page>('GET', '', theirs)).body.approvals).toEqual([])
    expect((await ask<Page>('GET', '?state=history', theirs)).body.approvals).toEqual([])
    expect(await stage.state(id)).toBe('waiting')
  })

  test('401 for the user after they left their only workspace, which ends their sessions', async () => {
    const other = await stage.colleague()
    const id = await other.ask(other.message())
    const theirs = { cookie: await other.cookie() }
    expect((await ask('GET', `/${id}`, theirs)).status).toBe(200)
    await stage.db.run(
      sql`update memberships set ended_at = domain_now() where user_id = ${other.tenant.user_id}`,
    )
    expect((await ask('GET', `/${id}`, theirs)).status).toBe(401)
    expect((await ask('POST', `/${id}/approve`, theirs)).status).toBe(401)
  })
})
