/** An agent's writes: asked for, approved by the key's own user, run once. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Tenant } from '../../../test/harness/service.ts'
import { openWorkplace, type Workplace } from '../../../test/harness/worker.ts'
import type { Caller } from '../../contract.ts'
import { sql } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import type { Reply, Route } from '../../route.ts'
import { routes } from '../../routes.ts'
import { performApproved } from './approvals.ts'
import { approve, type Decider } from './decisions.ts'

let workplace: Workplace
let tenant: Tenant
let account_id: string
let person: number
let decider: Decider
let caller: Caller

beforeAll(async () => {
  workplace = await openWorkplace()
  await workplace.work()
  tenant = await workplace.service.tenant()
  account_id = await workplace.connected(tenant)
  person = workplace.person('Mara')
  workplace.write(account_id, person, 'hello')
  await workplace.untilStored(account_id, 1)
  decider = await identityOf(tenant.user_id)
  caller = callerOf(tenant)
})
afterAll(() => workplace.close())

async function identityOf(user_id: string): Promise<Decider> {
  const identity = { issuer: 'local', subject: randomUUID(), idp_user_uuid: randomUUID() }
  await workplace.db.run(sql`
    insert into identities (issuer, subject, user_id, idp_user_uuid)
    values (${identity.issuer}, ${identity.subject}, ${user_id}, ${identity.idp_user_uuid})`)
  return { user_id, identity }
}

function callerOf({ workspace_id, user_id, key_id }: Omit<Tenant, 'key'>): Caller {
  return {
    workspace_id,
    user_id,
    scopes: ['read', 'write', 'send'],
    via: { kind: 'key', id: key_id, name: 'agent', prefix: 'svc_live_abcdef', mcp_only: true },
  }
}

function routeOf(name: string): Route {
  const found = routes.find((route) => route.name === name)
  if (!found) throw new Error(`There is no route ${name}.`)
  return found
}

interface Calling {
  readonly tool?: string
  readonly input?: unknown
  readonly token?: string | undefined
  readonly as?: Caller
}

let texts = 0
const newText = () => `Good morning, number ${++texts}`
const send = (text: string) => ({ account_id, chat_id: `platform:chat:${person}`, text })

interface Told {
  readonly status: number
  readonly body: Record<string, unknown> & { readonly code?: string; readonly error?: string }
}

/** What the agent is told, refusals included. */
async function call({ tool = 'send_message', input, token, as = caller }: Calling): Promise<Told> {
  const wanted = { input, approval_token: token, client_name: 'Claude', base_url: 'https://parley.example' }
  const reply: Reply = await performApproved(workplace.service.app, routeOf(tool), as, wanted).catch(
    (error) => {
      if (!(error instanceof ApiError)) throw error
      return { status: error.status, body: { code: error.code, error: error.message } }
    },
  )
  return reply as Told
}

function accepted(text: string) {
  return workplace.sandbox.world.state.journal.filter((entry) => 'text' in entry && entry.text === text)
}

describe('an approved write', () => {
  test('is asked for, approved, and sent once', async () => {
    const text = newText()
    const asked = await call({ input: send(text) })
    expect(asked).toMatchObject({ status: 403, body: { code: 'approval_required', payload: send(text) } })
    expect(asked.body.approval_url).toBe(
      `https://parley.example/dashboard/mcp-approvals?request=${asked.body.request_id}`,
    )
    expect(accepted(text)).toEqual([])
    const { token } = await approve(workplace.service.app, decider, String(asked.body.request_id))
    const done = await call({ input: send(text), token })
    expect(done).toMatchObject({ status: 200, body: { ok: true, account_id } })
    expect(accepted(text)).toHaveLength(1)
    expect(await call({ input: send(text), token })).toMatchObject({
      status: 403,
      body: {
        code: 'approval_used',
        operation_id: done.body.operation_id,
        state: 'completed',
        answer: done.body,
      },
    })
    expect(accepted(text)).toHaveLength(1)
  })
})
