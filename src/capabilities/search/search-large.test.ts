/** Search over much data: it finds the same as a scan of every message, by index only. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import type { App } from '../../app.ts'
import { type Database, type Db, type Sql, sql } from '../../db/sql.ts'
import { indexPending, mergeSegments } from './index/search-index.ts'
import { checkSearch, searchMessages } from './search.ts'

const perAccount = 12_000
const newest = Date.UTC(2026, 9, 1)
const yearMs = 365 * 86_400_000

interface Row {
  readonly account_id: string
  readonly chat_id: string
  readonly id: string
  readonly text: string
  readonly sent_at: number
}

let service: Service
let own: Tenant
let accounts: string[]
let rows: Row[]

beforeAll(async () => {
  service = await openService({ plans: 'shipped', env: { PARLEY_RATE_LIMIT: '100000' } })
  own = await service.tenant('Own')
  accounts = [await service.account(own.workspace_id), await service.account(own.workspace_id)]
  rows = accounts.flatMap((account_id) => makeRows(account_id))
  await insert(own.workspace_id, rows)
  for (let n = 0; n < 3; n++) {
    const other = await service.tenant(`Other ${n}`)
    const theirs = await service.account(other.workspace_id)
    await insert(other.workspace_id, makeRows(theirs).slice(0, 4000))
  }
  // A thousand other accounts: PostgreSQL reads a small table without an index.
  const { workspace_id } = await service.tenant('Many')
  await service.app.db.run(sql`
    insert into accounts (id, workspace_id, platform, name, status)
    select 'acc_many' || n, ${workspace_id}, 'sandbox', 'Many', 'READY' from generate_series(1, 1000) as n`)
  await service.app.db.run(sql`
    insert into search_segments (account_id, workspace_id, format, messages, oldest_at, newest_at)
    select 'acc_many' || n, ${workspace_id}, 2, 1, '2020-01-01', '2030-01-01' from generate_series(1, 1000) as n`)
  for (const table of ['search_pending', 'search_stale']) {
    const [more, value] = table === 'search_stale' ? [', listing', ', 0'] : ['', '']
    await service.app.db.pool.query(
      `insert into ${table} (account_id, sent_at, chat_id, workspace_id, id${more})
       select 'acc_many' || n, '2026-01-01', 1, $1, id${value} from generate_series(1, 1000) n, generate_series(1, 50) id`,
      [workspace_id],
    )
  }
  for (const table of [
    'messages',
    'chats',
    'search_segments',
    'search_lists',
    'search_ranks',
    'search_stale',
    'search_pending',
  ]) {
    await service.app.db.pool.query(`vacuum analyze ${table}`)
  }
})
afterAll(() => service.close())

/** Four years, most of it recent; chat 1 is long; some words are common, some rare, one was common long ago. */
function makeRows(account_id: string): Row[] {
  let state = 42 + accounts.indexOf(account_id)
  const random = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state / 0x7fffffff
  }
  return Array.from({ length: perAccount }, (_, at) => {
    const age = random() ** 2 * 4
    const words = ['word', at % 2 ? 'even odd' : 'odd even', `w${Math.floor(random() * 40)}`]
    if (random() < 0.02) words.push('seldom')
    if (random() < 0.002) words.push('rarely seen')
    if (age > 2.5 && random() < 0.9) words.push('formerly')
    if (at === 7) words.push('unique')
    return {
      account_id,
      chat_id: String(at % 3 === 0 ? 1 : 2 + Math.floor(random() * 2000)),
      id: String(at + 1),
      text: words.join(' '),
      sent_at: newest - Math.floor(age * yearMs),
    }
  })
}

async function insert(workspace_id: string, made: readonly Row[]): Promise<void> {
  for (let at = 0; at < made.length; at += 2000) {
    const some = made.slice(at, at + 2000)
    await service.app.db.run(sql`
      insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
      select account_id, chat_id, id, ${workspace_id}, text, false, sent_at
      from unnest(${some.map(({ account_id }) => account_id)}::text[], ${some.map(({ chat_id }) => chat_id)}::bigint[],
        ${some.map(({ id }) => id)}::bigint[], ${some.map(({ text }) => text)}::text[],
        ${some.map(({ sent_at }) => new Date(sent_at))}::timestamptz[])
        as m (account_id, chat_id, id, text, sent_at)`)
    // Several segments, some of them merged.
    for (const account_id of new Set(some.map((row) => row.account_id))) {
      await indexPending(service.app.db, { account_id, workspace_id })
    }
  }
  for (const account_id of new Set(made.map((row) => row.account_id))) {
    await mergeSegments(service.app.db, { account_id, workspace_id })
  }
  await service.app.db.run(sql`
    insert into chats (account_id, chat_id, workspace_id, kind, name)
    select distinct account_id, chat_id, ${workspace_id}::uuid, 'private', 'Chat ' || chat_id from messages
    where workspace_id = ${workspace_id}`)
}

interface Case {
  readonly query?: string
  readonly matches: (text: string) => boolean
  readonly more?: Readonly<Record<string, string>>
}

const cases: Readonly<Record<string, Case>> = {
  'a common word': { query: '"word"', matches: (text) => /\bword\b/.test(text) },
  'a common prefix': { query: 'wo', matches: (text) => /\bwo/.test(text) },
  'a prefix of some': { query: 'w1', matches: (text) => /\bw1/.test(text) },
  'one word of many': { query: '"w17"', matches: (text) => /\bw17\b/.test(text) },
  'a word that is seldom': { query: '"seldom"', matches: (text) => text.includes('seldom') },
  'a rare word': { query: 'rarely', matches: (text) => text.includes('rarely') },
  'a word that is there once': { query: 'unique', matches: (text) => text.includes('unique') },
  'a word that is nowhere': { query: 'nowhere', matches: () => false },
  'two words': { query: '"seldom" "w3"', matches: (text) => /seldom/.test(text) && /\bw3\b/.test(text) },
  'a word and a common prefix': {
    query: '"seldom" wo',
    matches: (text) => /seldom/.test(text) && /\bwo/.test(text),
  },
  'a rare word and a common prefix': {
    query: '"rarely" od',
    matches: (text) => /rarely/.test(text) && /\bod/.test(text),
  },
  'a phrase of common words': { query: '"odd even"', matches: (text) => text.includes('odd even') },
  'without a word': {
    query: '"odd even" -w1 -"w2"',
    matches: (text) => /odd even/.test(text) && !/\bw[12]\b/.test(text),
  },
  'a word that was common long ago': { query: '"formerly"', matches: (text) => text.includes('formerly') },
  'only a time': { matches: () => true, more: { time_before: '2024-06-01', time_after: '2023-06-01' } },
  'a word in a time': {
    query: '"word"',
    matches: (text) => text.includes('word'),
    more: { time_before: '2025-01-01', time_after: '2024-12-01T00:00:00Z' },
  },
}

const scopes: Readonly<Record<string, () => { account_id?: string; chat_id?: `platform:chat:${number}` }>> = {
  workspace: () => ({}),
  account: () => ({ account_id: accounts[1] ?? '' }),
  chat: () => ({ account_id: accounts[0] ?? '', chat_id: 'platform:chat:1' }),
}

const every = Object.keys(scopes).flatMap((scope) => Object.keys(cases).map((name) => [name, scope] as const))

/** By scanning every message. */
function expectedOf(name: string, scope: string): Row[] {
  const { matches, more = {} } = cases[name] as Case
  const { account_id, chat_id } = scopes[scope]?.() ?? {}
  return rows
    .filter((row) => account_id === undefined || row.account_id === account_id)
    .filter((row) => chat_id === undefined || chat_id === `platform:chat:${row.chat_id}`)
    .filter((row) => row.sent_at >= Date.parse(more.time_after ?? '2000-01-01'))
    .filter((row) => row.sent_at < Date.parse(more.time_before ?? '2100-01-01'))
    .filter((row) => matches(row.text))
    .sort((a, b) => b.sent_at - a.sent_at || Number(b.id) - Number(a.id))
}

describe('POST /search', () => {
  test.each(every)('200 finds the same as a scan of every message: %s in the %s', async (name, scope) => {
    const { query, more } = cases[name] as Case
    const body = { ...(query && { query }), ...more, ...scopes[scope]?.(), limit: 100 }
    const { status, body: found } = await service.post('/search', { key: own.key, body })
    expect(status).toBe(200)
    const expected = expectedOf(name, scope)
    expect(found).toMatchObject({
      match_count: Math.min(1000, expected.length),
      has_more: expected.length > 100,
    })
    expect(found.match_count_capped).toBe(expected.length > 1000 ? true : undefined)
    const matches = found.matches as { account_id: string; message_id: string; timestamp: string }[]
    expect(matches.map(({ message_id, timestamp }) => [message_id, timestamp])).toEqual(
      expected.slice(0, 100).map(({ id, sent_at }) => [id, new Date(sent_at).toISOString()]),
    )
  })

  test.each(every)('reads indexes only: %s in the %s', async (name, scope) => {
    const { query, more } = cases[name] as Case
    const { account_id, chat_id } = scopes[scope]?.() ?? {}
    const statements: Sql[] = []
    const request = {
      query,
      chat_id,
      limit: 50,
      account_types: 'all' as const,
      time_after: more?.time_after === undefined ? undefined : new Date(more.time_after),
      time_before: more?.time_before === undefined ? undefined : new Date(more.time_before),
    }
    await searchMessages(
      recording(statements),
      accounts.filter((id) => account_id === undefined || id === account_id).map(toAccount),
      { request, checked: checkSearch(service.app, own, request) },
    )
    expect(statements.length).toBeGreaterThan(0)
    for (const statement of statements) {
      for (const node of nodesOf(await explain(statement))) {
        const relation = node['Relation Name']
        if (relation) expect(`${node['Node Type']} of ${relation}`).toMatch(/^(Index|Bitmap)/)
        // It sorts no more than a page, and reads and discards nothing: no rows of others, and none of ours.
        if (node['Node Type'].includes('Sort')) expect(node['Actual Rows']).toBeLessThanOrEqual(51)
        expect(node['Rows Removed by Filter'] ?? 0).toBe(0)
        expect(node['Rows Removed by Index Recheck'] ?? 0).toBe(0)
      }
    }
  })
})

function toAccount(id: string) {
  return { id, provider: 'sandbox', type: 'MESSAGING', name: 'Sales', status: 'READY' } as const
}

function recording(statements: Sql[]): App {
  const { db } = service.app
  const recorded = <D extends Db>(from: D): D => {
    const note = (statement: Sql) => {
      if (/from (messages|search_|unnest)/.test(statement.text)) statements.push(statement)
      return statement
    }
    return {
      ...from,
      rows: <T>(statement: Sql) => from.rows<T>(note(statement)),
      one: <T>(statement: Sql) => from.one<T>(note(statement)),
    }
  }
  const snapshot: Database['snapshot'] = (work) => db.snapshot((at) => work(recorded(at)))
  return { ...service.app, db: { ...recorded(db), snapshot } }
}

interface Node {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly Plans?: readonly Node[]
}

async function explain({ text, values }: Sql): Promise<Node> {
  const { rows: plans } = await service.app.db.pool.query(
    `explain (analyze, format json) ${text}`,
    values as unknown[],
  )
  return plans[0]['QUERY PLAN'][0].Plan
}

function nodesOf(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)]
}
