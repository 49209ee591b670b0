/** What is done to the processes while the load goes on, and what must then be true. Each act returns its figures. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { setDispatch, setGates } from '../../src/capabilities/gates/gates.ts'
import { createKey, revokeKey } from '../../src/capabilities/keys/keys.ts'
import { scopes } from '../../src/contract.ts'
import { sql } from '../../src/db/sql.ts'
import { ask, sendOf } from '../faults/clients.ts'
import type { Member } from '../faults/member.ts'
import type { Plant } from '../faults/plant.ts'
import { until } from '../harness/process.ts'

const stateMsMax = 120_000
const migrateRunsMax = 20
const fillMsMax = 3_600_000
const contactsFrom = 500_000_000
/** Between two questions: a key has few a minute. */
const askMs = 100
/** A busy machine needs longer than the promised time. An act fails when it takes more than this multiple of it. */
const slack = 3

export const promises = { stoppedMs: 2_000, killedMs: 20_000, changedMs: 1_000, refusedMs: 1_000 } as const

export type Figures = Readonly<Record<string, number>>

export class Broken extends Error {}

function requireWithin(what: string, ms: number, promised: number): number {
  if (ms > promised * slack) throw new Broken(`${what} after ${Math.round(ms)} ms, promised are ${promised}`)
  return Math.round(ms)
}

/** Every process is stopped and started, one after the other. */
export async function rollingRestart(plant: Plant): Promise<Figures> {
  const begunAt = performance.now()
  for (const member of plant.members) {
    await member.kill('SIGTERM')
    if (member.verb === 'work') await plant.untilReady()
    await member.start()
    await plant.untilReady()
  }
  return { restarted: plant.members.length, seconds: Math.round((performance.now() - begunAt) / 1_000) }
}

/** Every process gets the new code, in the order of docs/upgrading.md: migrate, `work`, `serve`. */
export async function upgrade(plant: Plant): Promise<Figures> {
  const begunAt = performance.now()
  const before = await countMigrations(plant)
  await migrate(plant)
  const migratedAt = performance.now()
  const migrations = (await countMigrations(plant)) - before
  for (const member of [...plant.works, ...plant.serves]) {
    await member.kill('SIGTERM')
    if (member.verb === 'work') await plant.untilReady()
    member.checkout = undefined
    await member.start()
    await plant.untilReady()
  }
  const seconds = Math.round((performance.now() - begunAt) / 1_000)
  const migrated_ms = Math.round(migratedAt - begunAt)
  return { migrations, migrated_ms, upgraded: plant.members.length, seconds }
}

/** An operator runs it again if a busy machine does not let it connect in time; nothing has begun by then. */
async function migrate(plant: Plant): Promise<void> {
  for (let run = 1; ; run++) {
    try {
      return await plant.runVerb('migrate')
    } catch (error) {
      if (run === migrateRunsMax || !String(error).includes('does not respond')) throw error
    }
  }
}

/** Contacts as the older release stores them, in each account as many. */
export async function addContacts({ db, tenant }: Plant, count: number): Promise<Figures> {
  const begunAt = performance.now()
  const client = await db.client()
  try {
    await client.query('set statement_timeout = 0')
    const each = Math.ceil(count / tenant.accounts.length)
    for (const [at, account_id] of tenant.accounts.entries()) {
      // Beyond the numbers of the sandbox. Half of them are known to the next account as well.
      await client.query(
        `insert into contacts (account_id, provider_id, workspace_id, name, sort_name, username, phone)
         select $1, n, $2, 'Person ' || n, 'person ' || n, 'upgraded_' || n, '+4915' || lpad(n::text, 9, '0')
         from generate_series($3::bigint, $4::bigint) n`,
        [
          account_id,
          tenant.workspace_id,
          contactsFrom + at * Math.ceil(each / 2),
          contactsFrom + at * Math.ceil(each / 2) + each - 1,
        ],
      )
    }
    const { rows } = await client.query<{ count: number }>('select count(*)::int as count from contacts')
    return { contacts: rows[0]?.count ?? 0, seconds: Math.round((performance.now() - begunAt) / 1_000) }
  } finally {
    await client.end()
  }
}

/** The people of all contacts have their rows, and recipients of before are tied: the work of a loop of the new processes. */
export async function fillPeople({ db }: Plant): Promise<Figures> {
  await until('every contact is read', fillMsMax, () =>
    db.maybe(sql`select 1 from people_backfill where done_at is not null and tied_at is not null`),
  ).catch(() => {
    throw new Broken('the contacts of before were not all read')
  })
  const client = await db.client()
  try {
    await client.query('set statement_timeout = 0')
    // Only names of before have no time at which they were last seen.
    const { rows } = await client.query<{ contacts: number; people: number; seconds: number }>(`
      select (select count(*)::int from contacts) as contacts, (select count(*)::int from people) as people,
        (select extract(epoch from max(first_seen_at) - min(first_seen_at))::float8 from person_names
          where last_seen_at is null) as seconds`)
    const { contacts = 0, people = 0, seconds = 0 } = rows[0] ?? {}
    return {
      contacts,
      people,
      seconds: Math.round(seconds),
      contacts_a_second: Math.round(contacts / seconds),
    }
  } finally {
    await client.end()
  }
}

export async function countDeadlocks({ db }: Plant): Promise<number> {
  const { count } = await db.one<{ count: number }>(sql`
    select deadlocks::int as count from pg_stat_database where datname = current_database()`)
  return count
}

async function countMigrations({ db }: Plant): Promise<number> {
  return (await db.one<{ count: number }>(sql`select count(*)::int as count from schema_migrations`)).count
}

/** A worker that is stopped gives its accounts to the others. */
export async function stopWorker(plant: Plant): Promise<Figures> {
  const member = plant.work(0)
  const driven = await listDriven(plant, member)
  await member.kill('SIGTERM')
  const endedAt = performance.now()
  await plant.untilReady()
  const ms = requireWithin(
    'the accounts of a stopped worker are driven',
    performance.now() - endedAt,
    promises.stoppedMs,
  )
  await member.start()
  return { accounts: driven.length, driven_again_ms: ms }
}

/** The accounts of a killed worker: others take the sandbox's soon, and Telegram's only after their takeover time. */
export async function killWorker(plant: Plant, takeoverMs: number): Promise<Figures> {
  const member = plant.work(1)
  const driven = await listDriven(plant, member)
  const telegram = driven.filter((id) => plant.telegram.includes(id))
  const sandbox = driven.filter((id) => !telegram.includes(id))
  await member.kill()
  const killedAt = performance.now()
  const refused = untilRefused(plant, telegram)
  await untilDriven(plant, sandbox)
  const ms = requireWithin(
    'the accounts of a killed worker are driven',
    performance.now() - killedAt,
    promises.killedMs,
  )
  const refusedMs = await refused
  await untilDriven(plant, telegram)
  const waitedMs = performance.now() - killedAt
  if (telegram.length > 0 && waitedMs < takeoverMs) {
    throw new Broken(`a Telegram account was taken over after ${Math.round(waitedMs)} ms`)
  }
  await member.start()
  return {
    accounts: driven.length,
    driven_again_ms: ms,
    telegram_accounts: telegram.length,
    telegram_refused_ms: refusedMs,
    telegram_driven_again_ms: Math.round(waitedMs),
  }
}

/** The lease runs out first, and a worker on the same disk has two seconds to claim it. From then on no caller waits for an account that no worker may take yet. */
async function untilRefused(plant: Plant, accounts: readonly string[]): Promise<number> {
  const [account_id] = accounts
  if (account_id === undefined) return 0
  await until('its lease has run out', stateMsMax, () =>
    plant.db.maybe(sql`
      select 1 from account_hosts
      where account_id = ${account_id} and lease_until < clock_timestamp() - interval '2 seconds'`),
  )
  const chat_id = `platform:chat:${plant.people[0]}`
  const call = sendOf({ key: 'refused at once', account_id, chat_id, text: 'refused at once' })
  const { status, code, asked_at, answered_at } = await ask(plant, call)
  if (status !== 503) throw new Broken(`a send of an account that waits got ${status} ${code}`)
  return requireWithin('it was refused', (answered_at ?? 0) - asked_at, promises.refusedMs)
}

/** No worker drives over one account more than another. */
export async function spread(plant: Plant): Promise<Figures> {
  let counts: number[] = []
  await until('the accounts are spread', stateMsMax, async () => {
    const rows = await plant.db.rows<{ count: number }>(sql`
      select count(h.account_id)::int as count from workers w left join account_hosts h on h.lease_owner = w.id
        and h.lease_until > clock_timestamp()
      where w.stopped_at is null and w.beat_at > clock_timestamp() - interval '30 seconds' group by w.id`)
    counts = rows.map(({ count }) => count)
    return counts.length === plant.works.length && Math.max(...counts) - Math.min(...counts) <= 1
  }).catch(() => {
    throw new Broken(`the workers drive ${counts.join(', ')} accounts`)
  })
  return { least: Math.min(...counts), most: Math.max(...counts) }
}

/** A revoked key and a closed gate hold on every process. */
export async function changeAccess(plant: Plant): Promise<Figures> {
  const app = await plant.openApp()
  const { id, key } = await newKey(plant, 'to be revoked')
  const statusesOf = (path: string, with_key: string) =>
    Promise.all(plant.urls.map(async (url) => (await get(url, path, with_key)).status))
  const untilAll = async (path: string, with_key: string, status: number) => {
    const begunAt = performance.now()
    let answers: number[] = []
    const isSo = async () => {
      answers = await statusesOf(path, with_key)
      return answers.every((each) => each === status)
    }
    await until(`every process answers ${status}`, stateMsMax, isSo, askMs).catch(() => {
      throw new Broken(`the processes answered ${answers.join(', ')} instead of ${status}`)
    })
    return performance.now() - begunAt
  }
  await untilAll('/me', key, 200)
  await revokeKey(app, 'system', id)
  const revokedMs = requireWithin('the key is refused', await untilAll('/me', key, 401), promises.changedMs)
  await setGates(app, 'system', { names: ['analytics'], enabled: false })
  const { key: other } = await newKey(plant, 'at a closed gate')
  const closed = await untilAll('/analytics', other, 503)
  const closedMs = requireWithin('the gate is closed', closed, promises.changedMs)
  await setGates(app, 'system', { names: ['analytics'], enabled: true })
  return { processes: plant.urls.length, key_refused_ms: revokedMs, gate_closed_ms: closedMs }
}

/** One key gets its limit once, however many processes answer it. */
export async function countLimit(plant: Plant, url: string, limit: number): Promise<Figures> {
  const { key } = await newKey(plant, 'one limit')
  const statuses: number[] = []
  let left = limit + 60
  const askAll = async () => {
    while (left-- > 0) statuses.push((await get(url, '/me', key)).status)
  }
  await Promise.all(Array.from({ length: 10 }, askAll))
  const answered = statuses.filter((status) => status === 200).length
  const refused = statuses.filter((status) => status === 429).length
  if (answered !== limit) throw new Broken(`one key got ${answered} answers within its limit of ${limit}`)
  return { answered, refused }
}

/**
 * The database fails over to a standby that is some seconds behind. The workers notice, record again what their journals hold,
 * and send nothing until an operator says so. The standby is a copy of the frozen server's files: the embedded PostgreSQL writes
 * too little WAL (`wal_level = minimal`) for `pg_backup_start`.
 */
export async function failOver(plant: Plant, behindMs: number): Promise<Figures> {
  const copy = join(plant.directory, 'standby')
  await plant.postgres.snapshot(copy)
  await sleep(behindMs)
  await plant.postgres.halt()
  await plant.postgres.restore(copy)
  await plant.postgres.untilUp('plant')
  const upAt = performance.now()
  await until('sending is off, and every journal is recorded', stateMsMax, () =>
    plant.db
      .maybe(sql`select 1 from settings where name = 'dispatch' and value = 'false'
        and not exists (select from workers where owes)`)
      .catch(() => undefined),
  ).catch(() => {
    throw new Broken('no worker noticed that the database went back in time')
  })
  const noticedMs = Math.round(performance.now() - upAt)
  const before = (await plant.journal()).length
  await sleep(1_000)
  const since = (await plant.journal()).length - before
  if (since > 0) throw new Broken(`${since} messages were sent while sending was off`)
  await setDispatch(await plant.openApp(), 'system', true)
  await plant.untilReady()
  return { behind_ms: behindMs, noticed_ms: noticedMs }
}

export async function newKey(plant: Plant, name: string): Promise<{ id: string; key: string }> {
  const { workspace_id, user_id } = plant.tenant
  return createKey(await plant.openApp(), 'system', { workspace_id, user_id, name, scopes })
}

async function get(url: string, path: string, key: string): Promise<Response> {
  const response = await fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } })
  await response.arrayBuffer()
  return response
}

/** The accounts whose leases this process has. */
async function listDriven(plant: Plant, { name }: Member): Promise<string[]> {
  const rows = await plant.db.rows<{ account_id: string }>(sql`
    select h.account_id from account_hosts h join faults.workers w on w.id = h.lease_owner
    where w.name = ${name} and h.lease_until > clock_timestamp()`)
  return rows.map(({ account_id }) => account_id)
}

function untilDriven(plant: Plant, accounts: readonly string[]): Promise<unknown> {
  return until('they are driven again', stateMsMax, async () => {
    const { count } = await plant.db.one<{ count: number }>(sql`
      select count(*)::int as count from account_hosts h join faults.workers w on w.id = h.lease_owner
      where h.account_id = any(${accounts}::text[]) and h.lease_until > clock_timestamp() and h.observed_at is not null
        and w.name = any(${plant.works.filter(({ alive }) => alive).map(({ name }) => name)}::text[])`)
    return count === accounts.length
  })
}
