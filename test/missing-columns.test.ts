/** CONTRACT 3: a column that is missing in the checks before an operation is 503 `schema_unavailable`, never 500. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../src/db/sql.ts'
import { askDashboard, signIn } from './harness/person.ts'
import { hangMs, until } from './harness/process.ts'
import { type Answer, openService, type Service, type Tenant } from './harness/service.ts'

/** What the checks read, column by column. */
const checked = {
  settings: ['name', 'value'],
  gates: ['name', 'enabled'],
  allowlists: ['list', 'id'],
  keys: [
    ...['id', 'hash', 'workspace_id', 'user_id', 'name', 'prefix', 'scopes', 'mcp_only', 'expires_at'],
    'revoked_at',
  ],
  users: ['id', 'operator', 'disabled_at'],
  memberships: ['workspace_id', 'user_id', 'role', 'ended_at'],
  request_log: ['caller', 'hits', 'idle_at'],
  sessions: [
    ...['id', 'token_hash', 'user_id', 'issuer', 'subject', 'expires_at', 'last_seen_at', 'revoked_at'],
  ],
  identities: ['issuer', 'subject', 'user_id', 'idp_user_uuid'],
  accounts: ['id', 'workspace_id', 'platform', 'name', 'status', 'created_at'],
  account_hosts: ['account_id', 'observed_at', 'flood_until'],
  operations: ['workspace_id', 'kind', 'idempotency_key', 'fingerprint', 'state'],
} satisfies Readonly<Record<string, readonly string[]>>

let service: Service
let own: Tenant
let account_id: string
let chat_id: string
let cookie: string
/** Every answer while every column exists. */
let before: Record<string, string>
beforeAll(async () => {
  service = await openService({ env: { PARLEY_CAMPAIGN_CREATE_PER_MINUTE: '10000' } })
  own = await service.tenant()
  await service.allow(own)
  account_id = await service.account(own.workspace_id)
  chat_id = await service.chat({ account_id, workspace_id: own.workspace_id })
  cookie = await signIn(service, own.user_id)
  before = await askAll()
})
afterAll(() => service.close())

let serial = 0

/** One operation for each kind of check, by a key and at the dashboard. */
async function askAll(): Promise<Record<string, string>> {
  const key = { key: own.key, headers: { 'idempotency-key': `columns-${serial++}` } }
  const recipients = [{ account_id, chat_id }]
  const page = `/w/${own.workspace_id}/chats?account_id=${account_id}`
  const asked: Record<string, Promise<Answer>> = {
    me: service.get('/me', key),
    chats: service.get(`/chats?account_id=${account_id}`, key),
    send: service.post('/messages', { ...key, body: { account_id, chat_id, text: 'Hello' } }),
    campaign: service.post('/campaigns', { ...key, body: { message_text: 'Hello', recipients } }),
    page: askDashboard(service, 'GET', page, { cookie }),
    session: askDashboard(service, 'GET', '/session', { cookie }),
  }
  const answers = Object.entries(asked).map(async ([name, answer]) => {
    const { status, body } = await answer
    return [name, `${status} ${body.code ?? ''}`.trim()]
  })
  return Object.fromEntries(await Promise.all(answers))
}

const columns = Object.entries(checked).flatMap(([table, names]) =>
  names.map((name) => [table, name] as const),
)
const unavailable = '503 schema_unavailable'

describe('the checks before an operation', () => {
  test.each(columns)(
    '503 without %s.%s for what needs it, and everything else as before',
    async (table, column) => {
      const { db, settings } = service.app
      // Looked-up rows are cached for one version of the settings.
      await db.run(
        sql`update settings set value = to_jsonb((value #>> '{}')::bigint + 1) where name = 'version'`,
      )
      await db.pool.query(`alter table ${table} rename column ${column} to away`)
      try {
        await settings.refresh().catch(() => {})
        const answers = await until('it is noticed', hangMs, async () => {
          const asked = await askAll()
          return Object.values(asked).includes(unavailable) ? asked : undefined
        })
        for (const [name, answer] of Object.entries(answers)) {
          expect([before[name], unavailable], `${name} answered ${answer}`).toContain(answer)
        }
      } finally {
        await db.pool.query(`alter table ${table} rename column away to ${column}`)
        await service.settle()
      }
      expect(await askAll()).toEqual(before)
    },
  )
})
