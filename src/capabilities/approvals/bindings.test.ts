/**
 * What a token is bound to. Each test changes one of these: inside and outside its validity, and with a restored
 * database.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  type AgentAnswer,
  type AgentStage,
  callerOf,
  openAgentStage,
  routeOf,
} from '../../../test/harness/agents.ts'
import { perform } from '../../access/perform.ts'
import type { Caller } from '../../contract.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { fingerprintOf } from '../../ledger/idempotency.ts'
import { putBack } from '../../ledger/put-back.ts'
import { chatNumber } from '../../lib/shapes.ts'
import { setAccountEnabled } from '../accounts/accounts.ts'
import { revokeKey } from '../keys/keys.ts'
import { createUser } from '../users/users.ts'
import { approve } from './decisions.ts'
import { type Binding, consume, operationKey } from './use.ts'

let stage: AgentStage

beforeAll(async () => {
  stage = await openAgentStage()
})
afterAll(() => stage.workplace.close())
afterEach(() => stage.resumeClock())

interface BindingChange {
  /** Another caller or another input. */
  readonly call?: () => Promise<{ as?: Caller; input?: object; tool?: 'move_chat' }>
  /** Something else in the database, and how to change it back. */
  readonly change?: () => Sql
  readonly back?: () => Sql
}

const identity = () => stage.user.via.identity
const key = (id: string): Caller => callerOf({ ...stage.tenant, key_id: id })

/** A second account that has the same chat. */
async function otherAccount(): Promise<string> {
  const account_id = await stage.workplace.connected(stage.tenant, 'Support')
  const person = Number(chatNumber(stage.chat_id as never))
  stage.workplace.write(account_id, person, 'hello')
  await stage.workplace.untilStored(account_id, 1)
  return account_id
}

const changes: readonly (readonly [string, BindingChange])[] = [
  [
    'the user',
    {
      call: async () => {
        const email = `${randomUUID()}@acme.example`
        const { workspace_id } = stage.tenant
        const { id: user_id } = await createUser(stage.app, 'system', { email, workspace_id })
        return { as: callerOf({ ...stage.tenant, user_id }) }
      },
    },
  ],
  [
    'the UUID of the identity',
    {
      change: () =>
        sql`update identities set idp_user_uuid = ${randomUUID()} where subject = ${identity().subject}`,
      back: () =>
        sql`update identities set idp_user_uuid = ${identity().idp_user_uuid} where subject = ${identity().subject}`,
    },
  ],
  [
    'the workspace',
    { call: async () => ({ as: callerOf({ ...stage.tenant, ...(await workspaceOnly()) }) }) },
  ],
  ['the key', { call: async () => ({ as: key((await stage.workplace.service.key(stage.tenant)).id) }) }],
  ['the account', { call: async () => ({ input: { account_id: await otherAccount() } }) }],
  [
    "the account's identity on its platform",
    {
      change: () =>
        sql`update accounts set platform_user_id = coalesce(platform_user_id, 0) + 1 where id = ${stage.account_id}`,
      back: () => sql`
        update accounts set platform_user_id = (
          select platform_user_id from approvals where account_id = accounts.id order by created_at desc limit 1)
        where id = ${stage.account_id}`,
    },
  ],
  ['the operation', { call: async () => ({ tool: 'move_chat', input: stage.move('new') }) }],
  [
    'the chat',
    {
      call: async () => {
        const person = stage.workplace.person('Ben')
        const known = (await stage.workplace.messages(stage.account_id)).length
        stage.workplace.write(stage.account_id, person, 'hello')
        await stage.workplace.untilStored(stage.account_id, known + 1)
        return { input: { chat_id: `platform:chat:${person}` } }
      },
    },
  ],
  ['the payload', { call: async () => ({ input: { text: 'Good morning ' } }) }],
]

async function workspaceOnly() {
  const { workspace_id } = await stage.workplace.service.tenant('Other')
  return { workspace_id }
}

describe('a token used for something other than was approved', () => {
  test.each(changes)('403 twice, and the token is not consumed: %s', async (_, { call, change, back }) => {
    const input = stage.message()
    const token = await stage.approved(input)
    const { input: more, ...other } = (await call?.()) ?? {}
    const asked = other.tool ? { input: more, ...other } : { input: { ...input, ...more }, ...other }
    if (change) await stage.db.run(change())
    const answer = [await stage.call({ ...asked, token }), await stage.call({ ...asked, token })]
    if (back) await stage.db.run(back())
    for (const { status, body } of answer) {
      expect(status).toBe(403)
      // The account does not exist in another workspace, and that is the first refusal.
      expect(['approval_mismatch', 'account_unavailable']).toContain(body.code)
    }
    expect(stage.accepted(input)).toBe(0)
    expect((await stage.call({ input, token })).status).toBe(200)
    expect(stage.accepted(input)).toBe(1)
  })

  test('another key and a caller without one get the same answer about a token, whatever its state', async () => {
    const input = stage.message()
    const token = await stage.approved(input)
    const as = key((await stage.workplace.service.key(stage.tenant)).id)
    const before = await stage.call({ input, token, as })
    await stage.call({ input, token })
    const after = await stage.call({ input, token, as })
    await stage.setClock(new Date(Date.now() + 300_000))
    const late = await stage.call({ input, token, as })
    const unknown = await stage.call({ input, token: `apr_${'0'.repeat(40)}`, as })
    expect(before).toMatchObject({ status: 403, body: { code: 'approval_mismatch' } })
    expect([after, late, unknown]).toEqual([before, before, before])
  })
})

/** The update alone: it must also notice what the checks before it would have noticed. */
describe('the update', () => {
  async function bound(): Promise<{ token: string; binding: Binding }> {
    const input = stage.message()
    const id = await stage.ask(input)
    const { token } = await approve(stage.app, stage.user, id)
    const fingerprint = await fingerprintOf(routeOf('send_message'), { params: {}, body: input })
    const { account_id } = stage
    const chat_id = chatNumber(stage.chat_id as never)
    return {
      token,
      binding: { id, token, operation: 'send_message', account_id, chat_id, payload: input, fingerprint },
    }
  }

  const use = (binding: Binding, as = stage.caller) => stage.db.transaction(consume(stage.app, as, binding))

  test('consumes the token when nothing has changed', async () => {
    const { binding } = await bound()
    await use(binding)
    expect(await stage.state(binding.id)).toBe('used')
  })

  test.each<readonly [string, (binding: Binding) => readonly [Partial<Binding>, Partial<Caller>?]]>([
    ['user', () => [{}, { user_id: randomUUID() }]],
    ['workspace', () => [{}, { workspace_id: randomUUID() }]],
    ['key', () => [{}, { via: key(randomUUID()).via }]],
    ['account', () => [{ account_id: 'acc_1' }]],
    ['operation', () => [{ operation: 'start_chat_text' }]],
    ['chat', () => [{ chat_id: '1' }]],
    ['payload', () => [{ fingerprint: Buffer.alloc(32) }]],
    ['token', () => [{ token: 'apr_other' }]],
  ])('does not consume it for another %s', async (_, changed) => {
    const { binding } = await bound()
    const [other, as] = changed(binding)
    await expect(use({ ...binding, ...other }, { ...stage.caller, ...as })).rejects.toThrow('another input')
    expect(await stage.state(binding.id)).toBe('approved')
    await use(binding)
  })

  test('does not consume it while the account is not READY, also where this process does not know yet', async () => {
    const { binding } = await bound()
    const using = stage.db.transaction(async (tx) => {
      await tx.run(sql`update accounts set status = 'RESTRICTED' where id = ${stage.account_id}`)
      await consume(stage.app, stage.caller, binding)(tx)
    })
    await expect(using).rejects.toThrow('another input')
  })

  test('does not consume it a second time', async () => {
    const { binding } = await bound()
    await use(binding)
    await expect(use(binding)).rejects.toThrow('another input')
  })
})

describe('an operation whose key is taken', () => {
  test.each(['send_message', 'set_column'] as const)(
    'consumes nothing and does nothing: %s',
    async (tool) => {
      const input = tool === 'send_message' ? stage.message() : stage.value('once')
      const id = await stage.ask(input, { tool })
      const { token } = await approve(stage.app, stage.user, id)
      expect((await stage.call({ tool, input, token })).status).toBe(200)
      const mark = randomUUID()
      const running = perform(stage.app, routeOf(tool), stage.caller, {
        params: {},
        query: {},
        body: async () => input,
        idempotency_keys: [],
        channel: 'mcp',
        approval: {
          key: operationKey(id),
          again: '',
          consume: async (tx) => {
            await tx.run(sql`
            insert into suppressions (workspace_id, kind, value, source)
            values (${stage.tenant.workspace_id}, 'username', ${mark}, 'operator')`)
          },
        },
      })
      await expect(running).rejects.toMatchObject({ code: 'operation_in_progress' })
      expect(await stage.db.maybe(sql`select 1 from suppressions where value = ${mark}`)).toBeUndefined()
    },
  )
})

test('409 while another call with the token is in progress, in words for an agent, which has no Idempotency-Key', async () => {
  const input = stage.value('held')
  const id = await stage.ask(input, { tool: 'set_column' })
  const { token } = await approve(stage.app, stage.user, id)
  await stage.db
    .transaction(async (tx) => {
      await tx.run(sql`
        insert into operations (id, workspace_id, kind, effect, idempotency_key, fingerprint, state, user_id)
        values (${randomUUID()}, ${stage.tenant.workspace_id}, 'set_column', 'local', ${operationKey(id)},
          ${Buffer.alloc(32)}, 'submitting', ${stage.tenant.user_id})`)
      const { status, body } = await stage.call({ tool: 'set_column', input, token })
      expect([status, body.code]).toEqual([409, 'operation_in_progress'])
      expect(body.error).toContain('Call again with the same token')
      throw new Error('undone')
    })
    .catch((error: Error) => expect(error.message).toBe('undone'))
  expect((await stage.call({ tool: 'set_column', input, token })).status).toBe(200)
})

describe('two minutes of domain time', () => {
  test.each(['send_message', 'set_column'] as const)('runs 119.9 s after the approval: %s', async (tool) => {
    const input = tool === 'send_message' ? stage.message() : stage.value('late')
    const token = await stage.approved(input, { tool })
    await at(token, -0.1)
    expect((await stage.call({ tool, input, token })).status).toBe(200)
  })

  test.each(['send_message', 'set_column'] as const)('does not run 120.1 s after it: %s', async (tool) => {
    const input = tool === 'send_message' ? stage.message() : stage.value('too late')
    const token = await stage.approved(input, { tool })
    await at(token, 0.1)
    for (let time = 0; time < 2; time++) {
      expect(await stage.call({ tool, input, token })).toMatchObject({
        status: 403,
        body: { code: 'approval_expired' },
      })
    }
    // Only the time was wrong: the token is not consumed.
    await at(token, -0.1)
    expect((await stage.call({ tool, input, token })).status).toBe(200)
  })

  /** Seconds after the token's expiry. */
  async function at(token: string, seconds: number): Promise<void> {
    const { expires_at } = await stage.db.one<{ expires_at: Date }>(sql`
      select token_expires_at as expires_at from approvals where token_hash = sha256(convert_to(${token}, 'UTF8'))`)
    await stage.setClock(new Date(expires_at.getTime() + seconds * 1_000))
  }
})

describe('what must still exist', () => {
  /** A user of their own, because some of these changes cannot be undone. */
  async function refusedAfter(change: (other: AgentStage) => Promise<unknown>): Promise<AgentAnswer> {
    const other = await stage.colleague()
    const input = other.message()
    const token = await other.approved(input)
    await change(other)
    await stage.workplace.service.settle()
    const answer = await other.call({ input, token })
    expect(await other.call({ input, token })).toEqual(answer)
    expect(other.accepted(input)).toBe(0)
    return answer
  }

  const refused = { status: 403, body: { code: 'approval_mismatch' } }

  test('403 after the key was revoked', async () => {
    expect(await refusedAfter((other) => revokeKey(stage.app, 'system', other.tenant.key_id))).toMatchObject(
      refused,
    )
  })

  test('403 after the key has expired', async () => {
    const expire = (other: AgentStage) =>
      stage.db.run(sql`update keys set expires_at = domain_now() where id = ${other.tenant.key_id}`)
    expect(await refusedAfter(expire)).toMatchObject(refused)
  })

  test('403 after the membership ended, also where the key still exists', async () => {
    const end = async ({ tenant: { user_id, key_id } }: AgentStage) => {
      await stage.db.run(sql`update memberships set ended_at = domain_now() where user_id = ${user_id}`)
      await stage.db.run(sql`update keys set revoked_at = null where id = ${key_id}`)
    }
    expect(await refusedAfter(end)).toMatchObject(refused)
  })

  test('403 after the user was disabled', async () => {
    const disable = ({ tenant: { user_id } }: AgentStage) =>
      stage.db.run(sql`update users set disabled_at = domain_now() where id = ${user_id}`)
    expect(await refusedAfter(disable)).toMatchObject(refused)
  })

  test('403 after the identity was unlinked, also where the user has another', async () => {
    const unlink = async ({ tenant: { user_id }, user }: AgentStage) => {
      await stage.db.run(sql`delete from identities where subject = ${user.via.identity.subject}`)
      await stage.db.run(sql`
        insert into identities (issuer, subject, user_id, idp_user_uuid)
        values ('local', ${randomUUID()}, ${user_id}, ${randomUUID()})`)
    }
    expect(await refusedAfter(unlink)).toMatchObject(refused)
  })

  test('403 after the identity was linked to another user', async () => {
    const give = ({ user }: AgentStage) =>
      stage.db.run(sql`
        update identities set user_id = ${stage.tenant.user_id} where subject = ${user.via.identity.subject}`)
    expect(await refusedAfter(give)).toMatchObject(refused)
  })

  test('403 while the account is disabled, and it runs once the account is enabled', async () => {
    const input = stage.message()
    const token = await stage.approved(input)
    const { account_id } = stage
    await setAccountEnabled(stage.app, 'system', { id: account_id, enabled: false })
    expect(await stage.call({ input, token })).toMatchObject({
      status: 403,
      body: { code: 'account_unavailable' },
    })
    await setAccountEnabled(stage.app, 'system', { id: account_id, enabled: true })
    await stage.workplace.untilStatus(account_id, 'READY')
    await stage.workplace.service.settle()
    expect(stage.accepted(input)).toBe(0)
    expect((await stage.call({ input, token })).status).toBe(200)
  })
})

describe('a database restored to before the use', () => {
  interface Used {
    readonly id: string
    readonly token: string
    readonly input: ReturnType<AgentStage['message']>
  }

  async function used(): Promise<Used> {
    const input = stage.message()
    const id = await stage.ask(input)
    const { token } = await approve(stage.app, stage.user, id)
    expect((await stage.call({ input, token })).status).toBe(200)
    return { id, token, input }
  }

  /** As far as the database knows, the use was never committed. */
  async function goBack({ id }: Used, { operation }: { operation: boolean }): Promise<void> {
    await stage.db.run(sql`alter table approvals disable trigger approvals_guard`)
    await stage.db.run(sql`update approvals set state = 'approved', used_at = null where id = ${id}`)
    await stage.db.run(sql`alter table approvals enable trigger approvals_guard`)
    if (operation) return
    await stage.db.run(sql`alter table operations disable trigger operations_guard`)
    await stage.db.run(sql`delete from operations where idempotency_key = ${operationKey(id)}`)
    await stage.db.run(sql`alter table operations enable trigger operations_guard`)
  }

  test('consumes the approval when the ledger has the operation', async () => {
    const first = await used()
    await goBack(first, { operation: true })
    expect((await stage.call(first)).body).toMatchObject({ code: 'approval_used', state: 'completed' })
    expect(stage.accepted(first.input)).toBe(1)
  })

  test('consumes the approval when a journal has restored the operation', async () => {
    const first = await used()
    const row = await stage.db.one<{
      id: string
      random_id: string
      fingerprint: string
      chat_id: `${number}`
    }>(sql`
      select id, random_id::text, encode(fingerprint, 'hex') as fingerprint, chat_id::text from operations
      where idempotency_key = ${operationKey(first.id)}`)
    await goBack(first, { operation: false })
    const { workspace_id } = stage.tenant
    const remembered = { ...row, workspace_id, account_id: stage.account_id, token: randomUUID() }
    await stage.db.transaction((tx) =>
      putBack(tx, stage.app.operations, { ...remembered, kind: 'send_message', key: operationKey(first.id) }),
    )
    expect((await stage.call(first)).body).toMatchObject({ code: 'approval_used', state: 'ambiguous' })
    expect(stage.accepted(first.input)).toBe(1)
  })

  test('does not send again when only the message itself is known', async () => {
    const first = await used()
    await goBack(first, { operation: false })
    expect((await stage.call(first)).status).toBe(200)
    expect(stage.accepted(first.input)).toBe(1)
  })

  test('refuses a token of an earlier generation of the database', async () => {
    const input = stage.value('restored')
    const token = await stage.approved(input, { tool: 'set_column' })
    const { generation } = await stage.db.one<{ generation: string }>(sql`select generation from instance`)
    await stage.db.run(sql`update instance set generation = gen_random_uuid()`)
    const answer = await stage.call({ tool: 'set_column', input, token })
    await stage.db.run(sql`update instance set generation = ${generation}`)
    expect(answer).toMatchObject({ status: 403, body: { code: 'approval_expired' } })
  })
})
