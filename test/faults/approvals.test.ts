/**
 * Crash point 16: an approval is consumed and the API dies. The operation is in the ledger and runs; the approval
 * stays consumed, and a call with the same token returns the operation's result.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { cookieOf, identify } from '../harness/agents.ts'
import { callTool } from '../harness/mcp.ts'
import { endProcesses, hangMs, until } from '../harness/process.ts'
import type { PlannedCall } from './clients.ts'
import { openPlant, type Plant } from './plant.ts'
import { dieAt, Scene } from './scene.ts'

/** How often it is killed there: 20 rounds are thorough, and CI has less time. */
const rounds = Number(process.env.TEST_APPROVAL_KILLS ?? 8)

let plant: Plant
let scene: Scene
let cookie: string

beforeAll(async () => {
  // The first serves as it is shipped, the second dies.
  plant = await openPlant({ serves: 2, accounts: 1, people: 1 })
  scene = new Scene(plant)
  cookie = await cookieOf(plant.db, await identify(plant.db, plant.tenant.user_id))
})
afterAll(async () => {
  await plant?.close()
  await endProcesses()
})

function urlOf(number: number): string {
  const { url } = plant.serve(number)
  if (!url) throw new Error('It is not running.')
  return url
}

async function call(serve: number, { payload }: PlannedCall, token?: string) {
  const given = { ...payload, ...(token !== undefined && { approval_token: token }) }
  const at = { url: urlOf(serve), key: plant.tenant.key }
  return (await callTool(at, 'service_send_message', given)).structuredContent ?? {}
}

/** Requested and approved, as a person does it. */
async function approved(wanted: PlannedCall): Promise<{ id: string; token: string }> {
  const { request_id } = await call(0, wanted)
  const url = urlOf(0)
  const response = await fetch(`${url}/dashboard/api/approvals/${request_id}/approve`, {
    method: 'POST',
    headers: { cookie, origin: url },
  })
  const { token } = (await response.json()) as { token: string }
  return { id: String(request_id), token }
}

/** Its row in the database. */
async function look(id: string) {
  return plant.db.one<{ approval: string; operations: number; state: string | null }>(sql`
    select a.state as approval, count(o.id)::int as operations, max(o.state) as state
    from approvals a left join operations o on o.idempotency_key = 'approval·' || a.id
    where a.id = ${id} group by a.id`)
}

async function killWith(wanted: PlannedCall, token: string): Promise<void> {
  await plant.serve(1).restart([dieAt('crash point 16')])
  // On a busy machine the store may not respond in time: nothing was done then, and the call is repeated.
  await until('it has died', hangMs, async () => {
    const answer = await call(1, wanted, token).catch(() => 'died' as const)
    if (answer !== 'died') expect(answer).toMatchObject({ code: 'store_unavailable' })
    return answer === 'died'
  })
  await plant.serve(1).ended()
}

describe('16: an approval is consumed, and the API dies', () => {
  test(`${rounds} times: it is sent once, and the repeat returns that`, async () => {
    for (let round = 0; round < rounds; round++) {
      const wanted = scene.send()
      const { id, token } = await approved(wanted)
      await killWith(wanted, token)
      expect(await look(id)).toMatchObject({ approval: 'used', operations: 1 })
      await until('it has ended', hangMs, async () => (await look(id)).state === 'completed')
      const answer = await call(0, wanted, token)
      expect(answer).toMatchObject({ code: 'approval_used', state: 'completed', answer: { ok: true } })
      expect(await call(0, wanted, token)).toEqual(answer)
      expect(await scene.accepted(wanted)).toBe(1)
    }
    expect(await scene.judge()).toEqual([])
  })

  test('no worker takes it in time: nothing was sent, and the approval stays consumed', async () => {
    const wanted = scene.send()
    const { id, token } = await approved(wanted)
    await plant.work(0).kill()
    await killWith(wanted, token)
    expect(await look(id)).toEqual({ approval: 'used', operations: 1, state: 'queued' })
    expect(await call(0, wanted, token)).toMatchObject({
      code: 'approval_used',
      state: 'queued',
      answer: null,
    })
    await plant.db.run(sql`
      update operations set expires_at = clock_timestamp() - interval '1 second' where idempotency_key = 'approval·' || ${id}`)
    await scene.recover()
    expect(await call(0, wanted, token)).toMatchObject({ code: 'approval_used', state: 'released' })
    expect(await scene.accepted(wanted)).toBe(0)
    // A new approval makes a new operation.
    const again = await approved(wanted)
    expect(await call(0, wanted, again.token)).toMatchObject({ ok: true })
    expect(await scene.accepted(wanted)).toBe(1)
  })
})
