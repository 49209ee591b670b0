/** The callers and the data of the requests: the demo, a second workspace, and keys of every kind. */
import { randomBytes } from 'node:crypto'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addColumn } from '../../src/capabilities/columns/columns.ts'
import { revokeKey } from '../../src/capabilities/keys/keys.ts'
import { makeDemo } from '../../src/cli/demo.ts'
import { scopes } from '../../src/contract.ts'
import { sql } from '../../src/db/sql.ts'
import { demoPeople } from '../../src/platform/sandbox/demo.ts'
import { openLocalSandbox } from '../../src/platform/sandbox/sandbox.ts'
import { hangMs, until } from '../harness/process.ts'
import { openService, type Tenant } from '../harness/service.ts'
import { Workplace } from '../harness/worker.ts'

/** A key, and what its answers must never contain. */
export interface Voice {
  readonly authorization: string | undefined
  /** The chats of its workspace. */
  readonly places: readonly KnownChat[]
  readonly forbidden: readonly string[]
}

interface KnownChat {
  readonly account_id: string
  readonly chat_id: string
}

export interface Stage {
  readonly workplace: Workplace
  readonly voices: readonly Voice[]
  readonly known: ReadonlyMap<string, unknown[]>
}

export async function setStage(): Promise<Stage> {
  const service = await openService({ headersMs: 300, bodyMs: 300 })
  const failed = (error: unknown) => {
    throw error
  }
  const sandbox = await openLocalSandbox({ data_dir: null, manual_from: undefined, failed })
  const workplace = new Workplace(service, sandbox, await mkdtemp(join(tmpdir(), 'parley-fuzz-')))
  await workplace.work()
  await makeDemo(service.app, { platform: 'sandbox', demo: demoPeople(sandbox.world) })
  await service.settle()
  const own = await tenantOf(workplace, 'Demo')
  const canary = `canary${randomBytes(6).toString('hex')}`
  const other = await otherTenant(workplace, canary)
  await until('every account is connected and its past is stored', hangMs, async () => {
    const { open } = await service.app.db.one<{ open: number }>(sql`
      select count(*)::int as open from accounts a left join account_sync s on s.account_id = a.id
      where a.status <> 'READY' or s.phase is distinct from 'done'`)
    return open === 0
  })
  await service.settle()
  return {
    workplace,
    voices: await voicesOf(workplace, own, other, canary),
    known: await findKnown(workplace),
  }
}

async function tenantOf({ service, db }: Workplace, name: string): Promise<Tenant> {
  const { workspace_id, user_id } = await db.one<{ workspace_id: string; user_id: string }>(sql`
    select w.id as workspace_id, m.user_id from workspaces w join memberships m on m.workspace_id = w.id
    where w.name = ${name}`)
  const { key, id } = await service.key({ workspace_id, user_id })
  return { workspace_id, user_id, key, key_id: id }
}

/** Every text that people can read there contains the canary. */
async function otherTenant(workplace: Workplace, canary: string): Promise<Tenant> {
  const { service } = workplace
  const other = await service.tenant(`Other ${canary}`)
  await service.app.db.transaction((tx) =>
    addColumn(tx, other.workspace_id, { name: `Column ${canary}`, type: 'text' }),
  )
  const account_id = await workplace.connected(other, `Account ${canary}`)
  for (let n = 0; n < 5; n++) {
    const person = workplace.person(`Person ${canary} ${n}`)
    for (let m = 0; m < 5; m++) workplace.write(account_id, person, `proposal ${canary} ${m}`)
  }
  await workplace.untilStored(account_id, 25)
  return other
}

function listPlaces({ db }: Workplace, { workspace_id }: Tenant): Promise<KnownChat[]> {
  return db.rows<KnownChat>(sql`
    select account_id, 'platform:chat:' || chat_id as chat_id from chats where workspace_id = ${workspace_id}`)
}

async function voicesOf(workplace: Workplace, own: Tenant, other: Tenant, canary: string): Promise<Voice[]> {
  const { service } = workplace
  const forbidden = [canary]
  const places = await listPlaces(workplace, own)
  const theirs = await listPlaces(workplace, other)
  const voice = (key: string): Voice => ({ authorization: `Bearer ${key}`, places, forbidden })
  const scoped = await Promise.all(scopes.map((scope) => service.key({ ...own, scopes: [scope] })))
  const mcp = await service.key({ ...own, mcp_only: true })
  const expired = await service.key({ ...own, expires_at: new Date(Date.now() + 2_000) })
  const revoked = await service.key(own)
  await revokeKey(service.app, 'system', revoked.id)
  const strangers = [
    undefined,
    'Bearer',
    'Bearer svc_live_nothing',
    `Basic ${own.key}`,
    `bearer  ${own.key} x`,
  ]
  return [
    // The key with every scope is used most.
    ...Array.from({ length: 12 }, () => voice(own.key)),
    ...Array.from({ length: 4 }, () => ({
      authorization: `Bearer ${other.key}`,
      places: theirs,
      forbidden: [],
    })),
    ...scoped.map(({ key }) => voice(key)),
    ...[mcp, expired, revoked].map(({ key }) => voice(key)),
    ...strangers.map((authorization) => ({ authorization, places, forbidden })),
  ]
}

/** What exists in both workspaces: foreign names are requested as often as one's own. */
async function findKnown({ db }: Workplace): Promise<Map<string, unknown[]>> {
  const all = async (statement: ReturnType<typeof sql>) =>
    (await db.rows<{ value: unknown }>(statement)).map(({ value }) => value)
  const accounts = await all(sql`select id as value from accounts`)
  return new Map<string, unknown[]>([
    ['account_id', [...accounts, 'acc_0000000000000000000']],
    ['chat_id', await all(sql`select 'platform:chat:' || chat_id as value from chats`)],
    ['column_id', await all(sql`select id as value from columns`)],
    ['campaign_id', await all(sql`select id as value from campaigns`)],
    ['person_id', await all(sql`select id as value from people`)],
    ['stage_key', ['new', 'contacted', 'won', 'nothing']],
    ['column_value', ['Team', 'API', '5', 'true']],
    ['value', ['Team', ['API'], 5, '2026-11-15', 'https://example.org', true, 'note', null]],
    ['identifier', await all(sql`select username as value from contacts where username is not null`)],
    ['cursor', []],
    ['before', []],
    ['operation_id', []],
  ])
}
