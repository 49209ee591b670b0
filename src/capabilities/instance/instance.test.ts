import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { openService, type Service } from '../../../test/harness/service.ts'
import { openStream } from '../../../test/harness/stream.ts'
import { addOperation, openTeam, type Team } from '../../../test/harness/team.ts'
import { sql } from '../../db/sql.ts'
import { noteHeartbeat } from '../../ledger/workers.ts'
import { newId } from '../../lib/ids.ts'
import { ownRoutes } from '../../lists/dashboard-routes.ts'
import { createUser } from '../users/users.ts'

let service: Service
let team: Team
let cookie: string
let ask: (method: string, path: string, body?: unknown) => ReturnType<typeof askDashboard>
beforeAll(async () => {
  service = await openService()
  team = await openTeam(service, 'Watched')
  const other = await service.tenant('Operators')
  const { id } = await createUser(service.app, 'system', {
    email: 'operator@operators.example',
    workspace_id: other.workspace_id,
    operator: true,
  })
  cookie = await signIn(service, id)
  ask = (method, path, body) => askDashboard(service, method, path, { cookie, body })
})
afterAll(() => service.close())

describe('the operators’ routes', () => {
  const canary = 'canary-7f3a'

  test('200 with nothing of a chat of a workspace that the operator does not belong to', async () => {
    const { account_id, workspace_id } = team
    await service.chat({ account_id, workspace_id, name: canary, texts: [canary] })
    const body = { account_id, text: canary }
    expect((await team.ask('POST', '/chats/platform:chat:42/notes', body)).status).toBe(201)
    const text = { text: canary, state: 'ambiguous', reason: 'timeout', detail: canary }
    const id = await addOperation(service, team, text)
    await addOperation(service, team, text)
    const entry = { kind: 'username', value: canary.replaceAll('-', '_') }
    await team.ask('POST', '/suppressions', entry)
    const removed = await team.ask('POST', '/suppressions/remove', { ...entry, reason: canary })
    expect(removed.status).toBe(200)
    await service.app.db.run(sql`update accounts set status = 'NEEDS_LOGIN' where id = ${account_id}`)

    const reading = ownRoutes.filter(({ operator, method }) => operator && method === 'GET')
    expect(reading.length).toBeGreaterThan(8)
    const answers = await Promise.all(reading.map(({ path }) => ask('GET', path)))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    const all = JSON.stringify(answers.map((answer) => answer.body))
    for (const shown of [id, account_id, 'platform:chat:42', 'suppression.removed', 'NEEDS_LOGIN'])
      expect(all).toContain(shown)
    expect(all).not.toMatch(/canary/)
    const closed = await ask('POST', `/operations/${id}/close`, { sent: true })
    expect([closed.status, JSON.stringify(closed.body)]).toEqual([200, expect.not.stringMatching(/canary/)])
    expect((await ask('GET', '/operations/ambiguous')).body.operations).toHaveLength(1)
  })

  test('200 with the reason of a removal for an operator who is a member', async () => {
    const { user_id } = await team.join('member')
    await service.app.db.run(sql`update users set operator = true where id = ${user_id}`)
    const { body } = await askDashboard(service, 'GET', '/audit?action=suppression.removed', {
      cookie: await signIn(service, user_id),
    })
    expect(body.rows).toMatchObject([{ detail: { reason: canary } }])
  })
})

describe('GET /instance', () => {
  test('200 with the workers, and which of their loops fail', async () => {
    const worker_id = newId()
    const beat = { worker_id, platforms: ['sandbox'], failing: ['heartbeat'], disk_free: 4_000_000_000 }
    await noteHeartbeat(service.app.db, beat)
    const { status, body } = await ask('GET', '/instance')
    expect([status, body]).toMatchObject([
      200,
      {
        version: expect.stringMatching(/^\d/),
        database: { size: expect.any(Number), migration: expect.stringMatching(/^\d{4}_/) },
      },
    ])
    expect(body.workers).toContainEqual(
      expect.objectContaining({
        id: worker_id,
        state: 'driving',
        accounts: 0,
        failing: ['heartbeat'],
        disk_free: 4_000_000_000,
      }),
    )
  })
})

describe('the stream of an operator', () => {
  test('200 says that something of a workspace changed, and not in which', async () => {
    const stream = await openStream(service, cookie)
    service.app.wake.mark({
      workspace_id: team.workspace_id,
      kind: 'operations',
      account_id: team.account_id,
      chat_id: 'platform:chat:42',
    })
    await stream.received({ kind: 'instance' })
    expect(stream.marks).toEqual([{ workspace_id: null, kind: 'instance' }])
    stream.close()
  })

  test('200 tells members what an operator changed in their workspace', async () => {
    const member = await team.join('member')
    const stream = await openStream(service, await signIn(service, member.user_id))
    const path = `/workspaces/${team.workspace_id}`
    expect((await ask('PATCH', path, { name: 'Renamed' })).status).toBe(200)
    await stream.received({ kind: 'workspace', workspace_id: team.workspace_id })
    stream.close()
  })
})
