/**
 * A large workspace to measure on: 10 accounts, 1,000,000 chats, 5,000,000 messages in several languages, and 200
 * other workspaces in the same tables. Made once with COPY and kept in its own data directory.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { from as copyFrom } from 'pg-copy-streams'
import { createAccount } from '../src/capabilities/accounts/accounts.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { createWorkspace } from '../src/capabilities/workspaces/workspaces.ts'
import { makeLogger } from '../src/cli/log.ts'
import { type OpenApp, openApp } from '../src/cli/open.ts'
import { type Config, readConfig } from '../src/config.ts'
import { type Database, sql } from '../src/db/sql.ts'
import { normalise, tokenise, toTsvector } from '../src/lib/tokens.ts'
import { messageTokens } from '../src/lib/tokens-message.ts'
import { routes } from '../src/routes.ts'
import { type Random, seeded, sentence } from './texts.ts'

export const benchDirectory = process.env.BENCH_DIR ?? '.parley-bench'

/** One account has more than half of the chats, so that a single account is large too. */
const shape = {
  accounts: 10,
  chats: 1_000_000,
  messages: 5_000_000,
  largest: 0.55,
  others: 200,
  otherChats: 500,
}
const perChat = shape.messages / shape.chats
const newest = Date.UTC(2026, 10, 1)

interface Tenant {
  readonly account_id: string
  readonly workspace_id: string
  readonly chats: number
}

export async function openBench(overrides: Partial<Config> = {}): Promise<OpenApp> {
  const config = { ...readConfig({ PARLEY_POOL_SIZE: '16' }), ...overrides }
  const log = makeLogger('silent')
  return openApp({ config, data_dir: benchDirectory, log, claim: 'service', operations: routes })
}

/** How a process of its own reaches the database that the service has opened. */
export function embeddedConnection(): { host: string; user: string; password: string; database: string } {
  const directory = resolve(benchDirectory)
  const password = readFileSync(join(directory, 'postgres.password'), 'utf8').trim()
  return { host: join(directory, 'socket'), user: 'parley', password, database: 'postgres' }
}

/** Makes the data unless it is there. Returns the workspace to measure on. */
export interface Size {
  readonly scale?: number
  /** Nothing but the small workspace: what the large one is compared with. */
  readonly alone?: boolean
}

export async function requireData(app: OpenApp, { scale = 1, alone = false }: Size = {}): Promise<void> {
  const { made } = await app.db.one<{ made: boolean }>(sql`
    select exists (select from settings where name = 'bench_data') as made`)
  if (made) return
  const startedAt = performance.now()
  const tenants = await makeTenants(app, scale, alone)
  const restore = await withoutIndexes(app.db)
  for (const table of ['contacts', 'chats', 'messages'] as const) await copy(app.db, table, tenants)
  await restore()
  await bar('analyze', 1, async (tick) => {
    await byItself(app.db, 'vacuum analyze')
    tick(1)
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
      tenants.push({ account_id: account.id, workspace_id: workspace.id, chats: count })
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

type Table = 'contacts' | 'chats' | 'messages'

/** Rows as COPY takes them, made on the fly: memory stays flat. */
async function copy(db: Database, table: Table, tenants: readonly Tenant[]): Promise<void> {
  const total = sum(tenants.map(({ chats }) => chats)) * (table === 'messages' ? perChat : 1)
  const client = await db.client()
  await client.query("set session_replication_role = 'replica'; set statement_timeout = 0")
  await bar(table, total, async (tick) => {
    const stream = client.query(copyFrom(`copy ${table} (${columns[table]}) from stdin`))
    let block = ''
    for (const row of rowsOf(table, tenants)) {
      block += `${row.join('\t')}\n`
      tick(1)
      if (block.length < 65_536) continue
      if (!stream.write(block)) await once(stream, 'drain')
      block = ''
    }
    stream.end(block)
    await once(stream, 'finish')
  })
  await client.end()
}

const columns: Record<Table, string> = {
  contacts: 'account_id, provider_id, workspace_id, name, username, sort_name, name_tokens',
  chats:
    'account_id, chat_id, workspace_id, kind, name, username, participants, last_message_id, last_message_text, last_message_at, unread_count',
  messages:
    'account_id, chat_id, id, workspace_id, text, is_sender, sender_id, sent_at, attachments, tokens, announced',
}

function* rowsOf(table: Table, tenants: readonly Tenant[]): Generator<string[]> {
  for (const tenant of tenants) {
    const random = seeded(tenant.chats + table.length)
    let id = 0
    for (let chat = 1; chat <= tenant.chats; chat++) {
      if (table === 'contacts') yield contactRow(tenant, chat)
      else if (table === 'chats') yield chatRow(tenant, chat, random)
      else
        for (const row of messageRows(tenant, chat, messagesIn(tenant, chat), random, () => ++id)) yield row
    }
  }
}

/** Most chats are short; the first hundred of a large account are long. */
function messagesIn({ chats }: Tenant, chat: number): number {
  return chat <= 100 && chats > 10_000 ? 500 : perChat
}

function nameOf(chat: number): string {
  const first = ['Ana', 'Bruno', 'Chiara', 'Дмитрий', 'Élise', 'Fatima', 'Günther', '美咲', 'Olga', 'Peter']
  const last = [
    'Abara',
    'Becker',
    'García',
    'Иванова',
    'Jansen',
    'Müller',
    '田中',
    'Okafor',
    'Rossi',
    'Žižek',
  ]
  return `${first[chat % 10]} ${last[Math.floor(chat / 10) % 10]} ${Math.floor(chat / 100)}`
}

function contactRow({ account_id, workspace_id }: Tenant, chat: number): string[] {
  const name = nameOf(chat)
  return [
    account_id,
    String(chat),
    workspace_id,
    name,
    `user_${chat}`,
    normalise(name),
    copyText(toTsvector(tokenise(name))),
  ]
}

function chatRow({ account_id, workspace_id, chats }: Tenant, chat: number, random: Random): string[] {
  const at = new Date(newest - Math.floor((chat / chats) * 300 * 86_400_000) - Math.floor(random() * 60_000))
  const name = nameOf(chat)
  const participants = JSON.stringify([{ id: String(chat), name, username: `user_${chat}`, kind: 'person' }])
  const text = copyText(sentence(random))
  return [
    account_id,
    String(chat),
    workspace_id,
    'private',
    name,
    `user_${chat}`,
    copyText(participants),
    String(chat),
    text,
    at.toISOString(),
    String(chat % 3),
  ]
}

function* messageRows(
  { account_id, workspace_id, chats }: Tenant,
  chat: number,
  count: number,
  random: Random,
  nextId: () => number,
): Generator<string[]> {
  const last = newest - Math.floor((chat / chats) * 300 * 86_400_000)
  const chat_id = String(chat)
  for (let at = 0; at < count; at++) {
    const text = sentence(random)
    const sent = new Date(last - (count - at) * 3_600_000 - Math.floor(random() * 3_000_000))
    yield [
      account_id,
      String(chat),
      String(nextId()),
      workspace_id,
      copyText(text),
      at % 2 ? 't' : 'f',
      String(chat),
      sent.toISOString(),
      '[]',
      copyText(messageTokens({ account_id, chat_id, sender_id: chat_id, sent_at: sent.getTime(), text })),
      'f',
    ]
  }
}

/** COPY's text format: these four characters mean something else. */
function copyText(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\t', '\\t').replaceAll('\n', '\\n').replaceAll('\r', '\\r')
}

/** Building an index at the end is many times faster than keeping it while rows arrive. */
async function withoutIndexes(db: Database): Promise<() => Promise<void>> {
  const indexes = await db.rows<{ name: string; definition: string }>(sql`
    select c.relname as name, pg_get_indexdef(i.indexrelid) as definition
    from pg_index i join pg_class c on c.oid = i.indexrelid
    where i.indrelid in ('chats'::regclass, 'messages'::regclass, 'contacts'::regclass)
      and not exists (select from pg_constraint k where k.conindid = i.indexrelid)`)
  for (const { name } of indexes) await byItself(db, `drop index ${name}`)
  return () =>
    bar('indexes', indexes.length, async (tick) => {
      for (const { definition } of indexes) {
        await byItself(
          db,
          `set maintenance_work_mem = '1GB'; set max_parallel_maintenance_workers = 2; ${definition}`,
        )
        tick(1)
      }
    })
}

async function byItself(db: Database, statement: string): Promise<void> {
  const client = await db.client()
  try {
    await client.query('set statement_timeout = 0')
    await client.query('set lock_timeout = 0')
    for (const each of statement.split('; ')) await client.query(each)
  } finally {
    await client.end()
  }
}

/** A progress bar at a terminal, a line otherwise. */
async function bar(
  label: string,
  total: number,
  work: (tick: (by: number) => void) => Promise<void>,
): Promise<void> {
  const startedAt = performance.now()
  let done = 0
  let shownAt = 0
  const show = () => {
    const part = total === 0 ? 1 : Math.min(1, done / total)
    const filled = '█'.repeat(Math.round(part * 30)).padEnd(30, '░')
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    process.stderr.write(`\r${label.padEnd(10)} ${filled} ${Math.floor(part * 100)} % ${seconds} s`)
  }
  await work((by) => {
    done += by
    if (!process.stderr.isTTY || performance.now() - shownAt < 200) return
    shownAt = performance.now()
    show()
  })
  done = total
  if (process.stderr.isTTY) {
    show()
    process.stderr.write('\n')
  } else
    console.log(
      `${label}: ${total.toLocaleString('en')} in ${Math.round((performance.now() - startedAt) / 1000)} s`,
    )
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
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
