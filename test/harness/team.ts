/** A workspace with signed-in users, as the pages for a team use it. */
import { createUser } from '../../src/capabilities/users/users.ts'
import type { Role } from '../../src/contract.ts'
import { sql } from '../../src/db/sql.ts'
import { newId } from '../../src/lib/ids.ts'
import { askDashboard, signIn } from './person.ts'
import type { Answer, Service, Tenant } from './service.ts'

export interface Team extends Tenant {
  readonly account_id: string
  /** Asks as the owner of the workspace, below its own address. */
  readonly ask: Asking
  /** Adds a user with a role, who makes requests in the same way. */
  join(role: Role, name?: string): Promise<{ readonly user_id: string; readonly ask: Asking }>
}

export type Asking = (method: string, path: string, body?: unknown) => Promise<Answer>

let serial = 0

export async function openTeam(service: Service, name = 'Team'): Promise<Team> {
  const tenant = await service.tenant(name)
  const account_id = await service.account(tenant.workspace_id)
  const asking = async (user_id: string): Promise<Asking> => {
    const cookie = await signIn(service, user_id)
    return (method, path, body) =>
      askDashboard(service, method, `/w/${tenant.workspace_id}${path}`, { cookie, body })
  }
  return {
    ...tenant,
    account_id,
    ask: await asking(tenant.user_id),
    async join(role, called = role) {
      const { id } = await createUser(service.app, 'system', {
        email: `${called}${serial++}@team.example`,
        workspace_id: tenant.workspace_id,
        role,
      })
      await service.app.db.run(sql`update users set name = ${called} where id = ${id}`)
      return { user_id: id, ask: await asking(id) }
    },
  }
}

interface OperationRow {
  readonly state: string
  readonly text?: string
  readonly chat_id?: string
  readonly kind?: string
  readonly random_id?: string
  readonly at?: string
  readonly reason?: string | null
  readonly detail?: string | null
  readonly closed_as?: string | null
  readonly key_id?: string | null
  readonly user_id?: string | null
  readonly idempotency_key?: string | null
  readonly error?: string
}

/** A row of the ledger as a worker would have left it. Returns its id. */
export async function addOperation(
  { app }: Pick<Service, 'app'>,
  { workspace_id, account_id }: Pick<Team, 'workspace_id' | 'account_id'>,
  row: OperationRow,
): Promise<string> {
  const id = newId()
  const done = row.state === 'completed'
  const reply =
    row.error === undefined ? (done ? '{}' : null) : JSON.stringify({ error: row.error, code: 'x' })
  await app.db.run(sql`
    insert into operations (id, workspace_id, kind, effect, idempotency_key, fingerprint, state, reason, detail, closed_as,
      account_id, chat_id, payload, random_id, user_id, key_id, reply_status, reply_body, created_at)
    values (${id}, ${workspace_id}, ${row.kind ?? 'send_message'}, 'platform', ${row.idempotency_key ?? null},
      ${Buffer.alloc(32)}, ${row.state}, ${row.reason ?? null}, ${row.detail ?? null}, ${row.closed_as ?? null},
      ${account_id}, ${row.chat_id ?? '42'}, ${JSON.stringify({ text: row.text ?? 'Yes.', file: null })},
      ${row.random_id ?? String(BigInt(`0x${id.slice(-12)}`))}, ${row.user_id ?? null}, ${row.key_id ?? null},
      ${reply === null ? null : 200}, ${reply}, ${row.at ?? new Date().toISOString()})`)
  return id
}
