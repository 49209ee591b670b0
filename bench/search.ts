/**
 * Search over millions of messages, as a ratio to reading one chat by its key in the same run, both through HTTP.
 * One million messages, or with `--full` five. The rows lie in the table chat by chat, as a first sync leaves them, so
 * that what is close in time is far apart on disk. `--dir` keeps the data there for the next run.
 */
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { from as copyFrom } from 'pg-copy-streams'
import { setGates } from '../src/capabilities/gates/gates.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { sql } from '../src/db/sql.ts'
import { buildServer } from '../src/http/server.ts'
import { messageTokens } from '../src/lib/tokens-message.ts'
import { routes } from '../src/routes.ts'
import { makeAccounts, number, quantile, row, verdict, withInstance } from './harness.ts'
import { type Random, seeded } from './texts.ts'

const { values: given } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    messages: { type: 'string' },
    rounds: { type: 'string', default: '60' },
    dir: { type: 'string' },
  },
})
const total = Number(given.messages ?? (given.full ? 5_000_000 : 1_000_000))
const rounds = Number(given.rounds)
const accounts = 10
const perChat = 5
/** The first chat of each account is a long one. */
const longChat = Math.floor(total / 100)
const newest = Date.UTC(2026, 10, 1)
const yearMs = 365 * 86_400_000

/** Words that nobody knows, in three alphabets; how common one is goes by its place, as in any language. */
const vocabularies = [
  ['ba de fi go lu ma ne ri so tu ve ra ki po an el', 40_000],
  ['ка ло ме ни ру са то ви да по ше рю ан ел', 20_000],
  ['的 一 是 不 了 人 我 在 有 他 这 中 大 来 上 国', 3_000],
].map(([syllables, size]) => makeWords(String(syllables).split(' '), Number(size)))
/** In the oldest quarter of the year one message in ten has it, later none. */
const oldWord = 'formerly'

function makeWords(syllables: readonly string[], size: number): string[] {
  const random = seeded(size)
  const words = new Set<string>()
  while (words.size < size) {
    const length = 2 + Math.floor(random() * 3)
    words.add(Array.from({ length }, () => syllables[Math.floor(random() * syllables.length)]).join(''))
  }
  return [...words]
}

function wordAt(vocabulary: number, place: number): string {
  return vocabularies[vocabulary]?.[place - 1] ?? ''
}

function sentence(random: Random, age: number): string {
  const words = vocabularies[Math.floor(random() ** 2 * vocabularies.length)] ?? []
  const length = 4 + Math.floor(random() * 14)
  const said = Array.from({ length }, () => words[Math.floor(words.length ** random()) - 1] ?? '')
  if (age > 0.75 && random() < 0.1) said.push(oldWord)
  return said.join(' ')
}

await withInstance(
  async (app) => {
    if (!(await isMade(app))) await makeData(app)
    await setGates(app, 'system', { names: ['all'], enabled: true })
    await measure(app)
  },
  { kept: given.dir },
)

async function isMade(app: OpenApp): Promise<boolean> {
  return (await app.db.one<{ made: boolean }>(sql`select exists (select from messages) as made`)).made
}

async function makeData(app: OpenApp): Promise<void> {
  const startedAt = performance.now()
  const { workspace_id, ids } = await makeAccounts(app, accounts)
  await app.db.run(sql`update accounts set status = 'READY'`)
  const client = await app.db.client()
  await client.query(
    "set session_replication_role = 'replica'; set statement_timeout = 0; set lock_timeout = 0",
  )
  await client.query("set maintenance_work_mem = '1GB'")
  const { rows } = await client.query(`select indexname, indexdef from pg_indexes
    where tablename = 'messages' and indexname in ('messages_tokens', 'messages_recent', 'messages_history')`)
  for (const { indexname } of rows) await client.query(`drop index ${indexname}`)
  const copy = async (statement: string, lines: Iterable<string>) => {
    const stream = client.query(copyFrom(statement))
    let block = ''
    for (const line of lines) {
      block += line
      if (block.length < 65_536) continue
      if (!stream.write(block)) await once(stream, 'drain')
      block = ''
    }
    stream.end(block)
    await once(stream, 'finish')
  }
  await copy(
    'copy messages (account_id, chat_id, id, workspace_id, text, is_sender, sender_id, sent_at, tokens) from stdin',
    messageLines(ids, workspace_id),
  )
  await copy(
    'copy chats (account_id, chat_id, workspace_id, kind, name) from stdin',
    chatLines(ids, workspace_id),
  )
  for (const { indexdef } of rows) await client.query(indexdef)
  await client.query('vacuum analyze messages')
  await client.query('vacuum analyze chats')
  await client.end()
  row(`${number(total)} messages made`, `${number((performance.now() - startedAt) / 1000)} s`)
}

function* messageLines(ids: readonly string[], workspace_id: string): Generator<string> {
  const random = seeded(1)
  for (const account_id of ids) {
    for (let id = 1; id <= total / accounts; id++) {
      const chat_id = String(chatOf(id))
      const age = random()
      const sent_at = newest - Math.floor(age * yearMs)
      const text = sentence(random, age)
      const tokens = messageTokens({ account_id, chat_id, sender_id: chat_id, sent_at, text })
      const at = new Date(sent_at).toISOString()
      yield `${account_id}\t${chat_id}\t${id}\t${workspace_id}\t${text}\tf\t${chat_id}\t${at}\t${tokens}\n`
    }
  }
}

function chatOf(id: number): number {
  return id <= longChat ? 1 : 2 + Math.floor((id - longChat) / perChat)
}

function* chatLines(ids: readonly string[], workspace_id: string): Generator<string> {
  for (const account_id of ids) {
    for (let chat = 1; chat <= chatOf(total / accounts); chat++) {
      yield `${account_id}\t${chat}\t${workspace_id}\tprivate\tPerson ${chat}\n`
    }
  }
}

async function measure(app: OpenApp): Promise<void> {
  const key = await makeKey(app)
  const server = await buildServer(unlimited(app), routes, {
    readiness: { worker: () => 'elsewhere', stopping: () => false },
  })
  const address = await server.listen({ port: 0, host: '127.0.0.1' })
  const ids = (await app.db.rows<{ id: string }>(sql`select id from accounts order by id`)).map(
    ({ id }) => id,
  )
  const ask = async (method: string, path: string, body?: unknown): Promise<number> => {
    const startedAt = performance.now()
    const response = await fetch(`${address}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const answer = await response.text()
    if (response.status !== 200) throw new Error(`${response.status} ${answer}`)
    return performance.now() - startedAt
  }
  try {
    const random = seeded(7)
    const chat = () => `platform:chat:${2 + Math.floor(random() * (chatOf(total / accounts) - 2))}`
    const one = () => ask('GET', `/chats/${encodeURIComponent(chat())}?account_id=${pick(ids, random)}`)
    const base = await times(one)
    row('GET /chats/{chat_id}, p50 and p95', `${number(base.p50, 2)}  ${number(base.p95, 2)} ms`)
    const scopes = {
      workspace: () => ({}),
      account: () => ({ account_id: pick(ids, random) }),
      chat: () => ({ account_id: pick(ids, random), chat_id: 'platform:chat:1' }),
    }
    for (const [scope, narrow] of Object.entries(scopes)) {
      for (const [kind, query] of Object.entries(kinds(random))) {
        const { p50, p95 } = await times(() => ask('POST', '/search', { query: query(), ...narrow() }))
        row(`${kind} in one ${scope}, p50 and p95`, `${number(p50, 2)}  ${number(p95, 2)} ms`)
        verdict(`${kind} in one ${scope}`, p95 / base.p95, { most: kind === 'common long ago' ? 30 : 5 })
      }
    }
  } finally {
    await server.close()
  }
}

/** What people look for. The place of a word in its vocabulary is how common it is. */
function kinds(random: Random): Record<string, () => string> {
  const between = (least: number, most: number, vocabulary = random() < 0.6 ? 0 : 1) =>
    wordAt(vocabulary, least + Math.floor(random() * (most - least)))
  return {
    'a rare word': () => `"${between(10_000, 20_000)}"`,
    'a word of middle frequency': () => `"${between(300, 3000)}"`,
    'a common word': () => `"${between(1, 20)}"`,
    'two words': () => `${between(1, 100, 0)} "${between(20, 500, 0)}"`,
    'a phrase': () => `"${between(1, 30, 0)} ${between(1, 30, 0)}"`,
    'a prefix': () => between(50, 2000).slice(0, 4),
    'common long ago': () => `"${oldWord}"`,
  }
}

function pick<T>(values: readonly T[], random: Random): T {
  return values[Math.floor(random() * values.length)] as T
}

async function times(work: () => Promise<number>): Promise<{ p50: number; p95: number }> {
  for (let warm = 0; warm < 10; warm++) await work()
  const measured: number[] = []
  for (let round = 0; round < rounds; round++) measured.push(await work())
  return { p50: quantile(measured, 0.5), p95: quantile(measured, 0.95) }
}

async function makeKey(app: OpenApp): Promise<string> {
  const member = await app.db.one<{ workspace_id: string; user_id: string }>(
    sql`select workspace_id, user_id from memberships limit 1`,
  )
  const { key } = await createKey(app, 'system', {
    ...member,
    name: `search ${Date.now()}`,
    scopes: ['read'],
  })
  return key
}

/** The limit of requests is not what is measured. */
function unlimited(app: OpenApp): OpenApp {
  return { ...app, config: { ...app.config, rate_limit: 1_000_000 } }
}
