/**
 * A large workspace to measure on: 10 accounts, 1,000,000 chats, 5,000,000 messages in several languages, and 200
 * other workspaces in the same tables. Made once with COPY and kept in its own data directory.
 */
import { parseArgs } from 'node:util'
import { createAccount } from '../src/capabilities/accounts/accounts.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { createWorkspace } from '../src/capabilities/workspaces/workspaces.ts'
import { makeLogger } from '../src/cli/log.ts'
import { type OpenApp, openApp } from '../src/cli/open.ts'
import { type Config, readConfig } from '../src/config.ts'
import { sql } from '../src/db/sql.ts'
import { operations } from '../src/lists/operations.ts'
import { routes } from '../src/lists/routes.ts'
import { allow } from '../test/harness/role.ts'
import { load } from './fill.ts'
import { countRows, type Table, type Tenant } from './rows.ts'

export const benchDirectory = process.env.BENCH_DIR ?? '.parley-bench'

/** One account has more than half of the chats, so that a single account is large too. */
const shape = { accounts: 10, chats: 1_000_000, largest: 0.55, others: 200, otherChats: 500 }
const tables = ['contacts', 'chats', 'messages'] as const satisfies Table[]

export async function openBench(overrides: Partial<Config> = {}): Promise<OpenApp> {
  const config = { ...readConfig({ PARLEY_POOL_SIZE: '16' }), ...overrides }
  const log = makeLogger('silent')
  // Faster loading needs a privilege that Parley itself does not have.
  await allow(benchDirectory, 'superuser')
  return openApp({ config, data_dir: benchDirectory, log, claim: 'service', operations, routes })
}

export interface Size {
  readonly scale?: number
  /** Only the small workspace, to compare the large one with. */
  readonly alone?: boolean
}

/** Makes the data unless it exists. */
export async function requireData(app: OpenApp, { scale = 1, alone = false }: Size = {}): Promise<void> {
  const { made } = await app.db.one<{ made: boolean }>(sql`
    select exists (select from settings where name = 'bench_data') as made`)
  if (made) return
  const startedAt = performance.now()
  const tenants = await makeTenants(app, scale, alone)
  await load(app.db, {
    rows: new URL('rows.ts', import.meta.url),
    tables: tables.map((name) => ({ name, count: countRows(name, tenants) })),
    from: tenants,
  })
  await app.db.run(sql`insert into settings (name, value) values ('bench_data', 'true')`)
  console.log(`made in ${Math.round((performance.now() - startedAt) / 1000)} s`)
}

async function makeTenants(app: OpenApp, scale: number, alone: boolean): Promise<Tenant[]> {
  const tenants: Tenant[] = []
  const add = async (name: string, chats: readonly number[]) => {
    const workspace = await createWorkspace(app, 'system', { name })
    const user = await createUser(app, 'system', {
      email: `${workspace.id}@example.org`,
      workspace_id: workspace.id,
    })
    const scopes = ['read', 'write', 'send', 'campaigns']
    await createKey(app, 'system', { workspace_id: workspace.id, user_id: user.id, name: 'bench', scopes })
    for (const [at, count] of chats.entries()) {
      const wanted = { workspace_id: workspace.id, platform: 'sandbox', name: `Account ${at + 1}` } as const
      const account = await createAccount(app, 'system', wanted)
      tenants.push({
        number: tenants.length + 1,
        account_id: account.id,
        workspace_id: workspace.id,
        chats: count,
      })
    }
  }
  const chats = Math.round(shape.chats * scale)
  const first = Math.round(chats * shape.largest)
  const rest = Math.round((chats - first) / (shape.accounts - 1))
  if (!alone) await add('Large', [first, ...Array.from({ length: shape.accounts - 1 }, () => rest)])
  await add('Small', [Math.round(10_000 * scale)])
  for (let at = 0; at < shape.others * scale && !alone; at++) await add(`Other ${at + 1}`, [shape.otherChats])
  await app.db.run(sql`update accounts set status = 'READY'`)
  return tenants
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { scale: { type: 'string', default: '1' } } })
  const app = await openBench()
  try {
    await requireData(app, { scale: Number(values.scale) })
  } finally {
    await app.close()
  }
}
