/**
 * Search over millions of messages, as a ratio to reading one chat by its key in the same run, both through HTTP. One million
 * messages, or five with `--full`. The rows lie in the table chat by chat, as a first sync leaves them, so that messages close
 * in time are far apart on disk. `--dir` keeps the data there for the next run.
 */
import { parseArgs } from 'node:util'
import { setGates } from '../src/capabilities/gates/gates.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { sql } from '../src/db/sql.ts'
import { buildServer } from '../src/http/server.ts'
import { routes } from '../src/lists/routes.ts'
import { load } from './fill.ts'
import { makeAccounts, number, quantile, row, verdict, withInstance } from './harness.ts'
import { chatsIn, oldWord, type World, wordAt } from './search-rows.ts'
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
const warmup = 50

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
  await load(app.db, {
    rows: new URL('search-rows.ts', import.meta.url),
    tables: [
      { name: 'chats', count: accounts * chatsIn(total / accounts) },
      { name: 'messages', count: total },
    ],
    from: { ids, workspace_id, perAccount: total / accounts } satisfies World,
    listed: true,
  })
  row(`${number(total)} messages made`, `${number((performance.now() - startedAt) / 1000)} s`)
}

async function measure(app: OpenApp): Promise<void> {
  const key = await makeKey(app)
  const server = await buildServer(unlimited(app), routes, {
    readiness: { worker: () => 'elsewhere', journal: () => 'elsewhere', stopping: () => false },
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
    const chat = () => `platform:chat:${2 + Math.floor(random() * (chatsIn(total / accounts) - 2))}`
    const one = () => ask('GET', `/chats/${encodeURIComponent(chat())}?account_id=${pick(ids, random)}`)
    const scopes = {
      workspace: () => ({}),
      account: () => ({ account_id: pick(ids, random) }),
      chat: () => ({ account_id: pick(ids, random), chat_id: 'platform:chat:1' }),
    }
    // Measure a service that has been running for a while: its code is compiled, and its connections have their plans.
    for (let round = 0; round < warmup; round++) {
      await one()
      for (const narrow of Object.values(scopes)) {
        for (const query of Object.values(kinds(random))) {
          await ask('POST', '/search', { query: query(), ...narrow() })
        }
      }
    }
    // The base of all ratios is measured five times as often as the rest, to make it steady.
    const base = await times(one, 5 * rounds)
    row('GET /chats/{chat_id}, p50 and p95', `${number(base.p50, 2)}  ${number(base.p95, 2)} ms`)
    for (const [scope, narrow] of Object.entries(scopes)) {
      for (const [kind, query] of Object.entries(kinds(random))) {
        const { p50, p95 } = await times(() => ask('POST', '/search', { query: query(), ...narrow() }))
        row(`${kind} in one ${scope}, p50 and p95`, `${number(p50, 2)}  ${number(p95, 2)} ms`)
        verdict(`${kind} in one ${scope}`, p95 / base.p95, { most: kind === 'common long ago' ? 30 : 10 })
      }
    }
  } finally {
    await server.close()
  }
}

/** What people search for. A word's position in its vocabulary is how common it is. */
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

async function times(work: () => Promise<number>, count = rounds): Promise<{ p50: number; p95: number }> {
  for (let warm = 0; warm < 10; warm++) await work()
  const measured: number[] = []
  for (let round = 0; round < count; round++) measured.push(await work())
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

/** Lifts the rate limit, which is not what this measures. */
function unlimited(app: OpenApp): OpenApp {
  return { ...app, config: { ...app.config, rate_limit: 1_000_000 } }
}
