/** The plant's database: one workspace with a key that has every scope, and triggers that record every change of state. */
import { createAccount } from '../../src/capabilities/accounts/accounts.ts'
import { setAllowed, setGates } from '../../src/capabilities/gates/gates.ts'
import { createKey } from '../../src/capabilities/keys/keys.ts'
import { createUser } from '../../src/capabilities/users/users.ts'
import { createWorkspace } from '../../src/capabilities/workspaces/workspaces.ts'
import { makeLogger } from '../../src/cli/log.ts'
import { type OpenApp, openApp } from '../../src/cli/open.ts'
import { readConfig } from '../../src/config.ts'
import { scopes } from '../../src/contract.ts'
import { openDatabase } from '../../src/db/pool.ts'
import { operations } from '../../src/lists/operations.ts'
import { routes } from '../../src/lists/routes.ts'
import type { Postgres } from './postgres.ts'

export interface Tenant {
  readonly workspace_id: string
  readonly user_id: string
  readonly key: string
  /** The same key, and others of the same workspace. */
  readonly keys: readonly string[]
  readonly accounts: readonly string[]
}

/** Records which process changes which state, by the name of its connection; and expires leases. */
const witness = `
  create schema faults;
  create table faults.transitions (
    n bigint generated always as identity primary key,
    operation_id uuid not null,
    from_state text,
    to_state text not null,
    reason text,
    reconciled boolean not null,
    by text not null default current_setting('application_name'),
    at timestamptz not null default clock_timestamp()
  );
  create function faults.note() returns trigger language plpgsql as $$
  begin
    if new.effect = 'platform' and (tg_op = 'INSERT' or old.state <> new.state) then
      insert into faults.transitions (operation_id, from_state, to_state, reason, reconciled)
      values (new.id, case when tg_op = 'UPDATE' then old.state end, new.state, new.reason, new.reconciled);
    end if;
    return null;
  end $$;
  create trigger faults_note after insert or update on operations for each row execute function faults.note();

  -- Maps workers to processes: the name of the connection on which a worker signs on.
  create table faults.workers (id uuid primary key, name text not null);
  create function faults.note_worker() returns trigger language plpgsql as $$
  begin
    insert into faults.workers values (new.id, current_setting('application_name')) on conflict do nothing;
    return null;
  end $$;
  create trigger faults_note_worker after insert on workers for each row execute function faults.note_worker();
  create function faults.expire_leases(alive text[], attempts boolean) returns void language sql as $$
    update workers set beat_at = clock_timestamp() - interval '1 hour'
      where id in (select id from faults.workers where name <> all (alive));
    update account_hosts set lease_until = clock_timestamp()
      where lease_owner in (select id from faults.workers where name <> all (alive));
    update operations set lease_until = clock_timestamp() where attempts and state = 'submitting'
      and owner in (select id from faults.workers where name <> all (alive));
  $$;`

export interface PlantDatabase {
  readonly url: string
  readonly secret: string
  readonly clock: 'system' | 'manual'
}

/** The App in this process, as an operator's command would open it. */
export function openPlantApp({ url, secret, clock }: PlantDatabase): Promise<OpenApp> {
  return openApp({
    config: readConfig({
      DATABASE_URL: url,
      PARLEY_SECRET: secret,
      PARLEY_CLOCK: clock,
      PARLEY_POOL_SIZE: '5',
      PARLEY_PROXY_ALLOW: '127.0.0.1',
    }),
    data_dir: '',
    log: makeLogger('silent'),
    claim: 'service',
    operations,
    routes,
  })
}

export async function prepareDatabase(
  postgres: Pick<Postgres, 'url'>,
  wanted: PlantDatabase & { database: string; accounts: number; telegram: number },
): Promise<Tenant> {
  const admin = openDatabase(
    { connectionString: postgres.url('postgres', { name: 'plant' }) },
    { pool_size: 1 },
  )
  await admin.pool.query(`create database ${wanted.database}`).finally(() => admin.close())
  const app = await openPlantApp(wanted)
  try {
    await app.db.pool.query(witness)
    await setGates(app, 'system', { names: ['all', 'extended'], enabled: true })
    const { id: workspace_id } = await createWorkspace(app, 'system', { name: 'Plant' })
    const { id: user_id } = await createUser(app, 'system', { email: 'ana@plant.example', workspace_id })
    await setAllowed(app, 'system', { list: 'campaign_user', id: user_id, allowed: true })
    await setAllowed(app, 'system', { list: 'campaign_workspace', id: workspace_id, allowed: true })
    const keys: string[] = []
    for (const name of ['plant', 'second', 'third']) {
      keys.push((await createKey(app, 'system', { workspace_id, user_id, name, scopes })).key)
    }
    const [key = ''] = keys
    const accounts: string[] = []
    for (let n = 0; n < wanted.accounts; n++) {
      const platform = n < wanted.telegram ? 'telegram' : 'sandbox'
      const account = { workspace_id, platform, name: `Account ${n}` }
      accounts.push((await createAccount(app, 'system', account)).id)
    }
    return { workspace_id, user_id, key, keys, accounts }
  } finally {
    await app.close()
  }
}
