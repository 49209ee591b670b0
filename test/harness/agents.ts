/** An agent with a key, the key's user, and a chat to write to: shared by the tests of approvals. */
import { randomUUID } from 'node:crypto'
import { beginSession } from '../../src/access/sessions.ts'
import { performApproved } from '../../src/capabilities/approvals/approvals.ts'
import { approve } from '../../src/capabilities/approvals/decisions.ts'
import { addColumn } from '../../src/capabilities/columns/columns.ts'
import { createUser } from '../../src/capabilities/users/users.ts'
import type { OpenApp } from '../../src/cli/open.ts'
import type { Caller, Identity, UserCaller } from '../../src/contract.ts'
import { type Database, type Db, sql } from '../../src/db/sql.ts'
import { ApiError } from '../../src/lib/errors.ts'
import { routes } from '../../src/lists/routes.ts'
import type { Reply, Route } from '../../src/route.ts'
import type { Tenant } from './service.ts'
import { openWorkplace, type Workplace } from './worker.ts'

type Tool = 'send_message' | 'move_chat' | 'set_column'

export interface AgentAnswer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>> & { readonly code?: string; readonly error?: string }
  readonly headers?: Readonly<Record<string, string>>
}

interface ToolCall {
  readonly tool?: Tool
  readonly input: unknown
  readonly token?: string
  readonly as?: Caller
  readonly app?: OpenApp
  readonly client_name?: string | undefined
}

export function routeOf(name: string): Route {
  const found = routes.find((route) => route.name === name)
  if (!found) throw new Error(`There is no route ${name}.`)
  return found
}

/** A key's caller, as /api/mcp builds it. */
export function callerOf({ workspace_id, user_id, key_id }: Omit<Tenant, 'key'>): Caller {
  return {
    workspace_id,
    user_id,
    scopes: ['read', 'write', 'send'],
    via: {
      kind: 'key',
      id: key_id,
      name: 'agent',
      prefix: 'svc_live_abcdef',
      mcp_only: true,
      issued_by: 'operator',
      role: 'owner',
    },
  }
}

export class AgentStage {
  readonly workplace: Workplace
  readonly tenant: Tenant
  readonly account_id: string
  readonly chat_id: string
  readonly column_id: string
  readonly user: UserCaller
  readonly caller: Caller

  constructor(parts: {
    workplace: Workplace
    tenant: Tenant
    account_id: string
    person: number
    column_id: string
    user: UserCaller
  }) {
    this.workplace = parts.workplace
    this.tenant = parts.tenant
    this.account_id = parts.account_id
    this.chat_id = `platform:chat:${parts.person}`
    this.column_id = parts.column_id
    this.user = parts.user
    this.caller = callerOf(parts.tenant)
  }

  get app(): OpenApp {
    return this.workplace.service.app
  }

  get db() {
    return this.workplace.db
  }

  /** Another user of the workspace with their own key, for the same chat. */
  async colleague(): Promise<AgentStage> {
    const { workplace, account_id, column_id } = this
    const { workspace_id } = this.tenant
    const email = `${randomUUID()}@acme.example`
    const { id: user_id } = await createUser(this.app, 'system', { email, workspace_id, role: 'member' })
    const { key, id: key_id } = await workplace.service.key({ workspace_id, user_id })
    const tenant = { workspace_id, user_id, key, key_id }
    const user = await identify(workplace.db, user_id)
    const person = Number(this.chat_id.split(':').at(-1))
    return new AgentStage({ workplace, tenant, account_id, person, column_id, user })
  }

  /** A message with a unique text. */
  message(text = `Good morning ${randomUUID()}`) {
    return { account_id: this.account_id, chat_id: this.chat_id, text }
  }

  move(stage_key: string) {
    return { account_id: this.account_id, chat_id: this.chat_id, stage_key }
  }

  value(...value: string[]) {
    return { account_id: this.account_id, chat_id: this.chat_id, column_id: this.column_id, value }
  }

  /** The answer that the agent gets, refusals included. */
  async call(calling: ToolCall): Promise<AgentAnswer> {
    const { tool = 'send_message', input, token, as = this.caller, app = this.app, client_name } = calling
    const wanted = { input, approval_token: token, client_name, base_url: 'https://parley.example' }
    const reply: Reply = await performApproved(app, routeOf(tool), as, wanted).catch((error) => {
      if (!(error instanceof ApiError)) throw error
      const { status, code, message, retry_after } = error
      return { status, body: { code, error: message, retry_after } }
    })
    return reply as AgentAnswer
  }

  /** Makes a request and returns its id. */
  async ask(input: unknown, more: Omit<ToolCall, 'input' | 'token'> = {}): Promise<string> {
    const { body } = await this.call({ ...more, input })
    if (body.code !== 'approval_required') throw new Error(`It was ${JSON.stringify(body)}.`)
    return String(body.request_id)
  }

  /** Makes a request, lets the user approve it and returns the token. */
  async approved(input: unknown, more: Omit<ToolCall, 'input' | 'token'> = {}): Promise<string> {
    const { token } = await approve(this.app, this.user, await this.ask(input, more))
    return token
  }

  /** How often the platform accepted this text. */
  accepted({ text }: { text: string }): number {
    const { journal } = this.workplace.sandbox.world.state
    return journal.filter((entry) => 'text' in entry && entry.text === text).length
  }

  async state(id: string): Promise<string> {
    const row = await this.db.one<{ state: string }>(sql`select state from approvals where id = ${id}`)
    return row.state
  }

  cookie(): Promise<string> {
    return cookieOf(this.db, this.user)
  }

  /** Stops domain time at this moment, until `resumeClock`. */
  async setClock(at: Date): Promise<void> {
    await this.db.run(sql`
      insert into manual_clock (at) values (${at}) on conflict (singleton) do update set at = excluded.at`)
    await this.workplace.service.settle()
  }

  async resumeClock(): Promise<void> {
    await this.db.run(sql`delete from manual_clock`)
    await this.workplace.service.settle()
  }
}

/** The cookie of a new session of the user. */
export async function cookieOf(db: Database, { user_id, via }: UserCaller): Promise<string> {
  const visitor = {
    via: { kind: 'visitor', address: '', user_agent: '', session_token: undefined, device_token: undefined },
  } as const
  const token = await db.transaction((tx) => beginSession(tx, visitor, { user_id, ...via.identity }))
  return `sid=${token}`
}

/** A user who could sign in, as the session they would have. */
export async function identify(db: Db, user_id: string): Promise<UserCaller> {
  const identity: Identity = { issuer: 'local', subject: randomUUID(), idp_user_uuid: randomUUID() }
  await db.run(sql`
    insert into identities (issuer, subject, user_id, idp_user_uuid)
    values (${identity.issuer}, ${identity.subject}, ${user_id}, ${identity.idp_user_uuid})`)
  return { user_id, via: { kind: 'session', id: randomUUID(), role: null, operator: false, identity } }
}

export async function openAgentStage(): Promise<AgentStage> {
  const workplace = await openWorkplace()
  await workplace.work()
  const tenant = await workplace.service.tenant()
  const account_id = await workplace.connected(tenant)
  const person = workplace.person('Mara')
  workplace.write(account_id, person, 'hello')
  await workplace.untilStored(account_id, 1)
  const column_id = await workplace.db.transaction((tx) =>
    addColumn(tx, tenant.workspace_id, { name: 'Plan', type: 'text' }),
  )
  const user = await identify(workplace.db, tenant.user_id)
  return new AgentStage({ workplace, tenant, account_id, person, column_id, user })
}
