/** The plans of the hot reads: index ranges that begin with the account, and no sort of more than a page. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { overlapOf } from '../src/capabilities/campaigns/create.ts'
import { chatPage } from '../src/capabilities/chats/chat-pages.ts'
import { refreshLastMessages } from '../src/capabilities/chats/chats.ts'
import { contactPage } from '../src/capabilities/contacts/contact-pages.ts'
import { messagePage } from '../src/capabilities/messages/message-pages.ts'
import { placementBatch, placementPage } from '../src/capabilities/pipeline/placements.ts'
import type { Account } from '../src/contract.ts'
import { type Sql, sql } from '../src/db/sql.ts'
import { insertCampaign } from './harness/campaigns.ts'
import { openService, type Service } from './harness/service.ts'

const chats = 3_000
const limit = 51
let service: Service
let accounts: Account[]

beforeAll(async () => {
  service = await openService({ plans: 'shipped' })
  accounts = []
  for (const name of ['Own', 'Other', 'Third']) {
    const tenant = await service.tenant(name)
    for (let n = 0; n < 2; n++) {
      const id = await service.account(tenant.workspace_id)
      if (name === 'Own')
        accounts.push({ id, provider: 'sandbox', type: 'MESSAGING', name: '', status: 'READY' })
      await fill(id, tenant.workspace_id)
    }
  }
  await service.app.db.run(sql`analyze chats`)
  await service.app.db.run(sql`analyze messages`)
  await service.app.db.run(sql`analyze contacts`)
  await service.app.db.run(sql`analyze chat_sync`)
})
afterAll(() => service.close())

async function fill(account_id: string, workspace_id: string): Promise<void> {
  const { db } = service.app
  await db.run(sql`
    insert into chats (account_id, chat_id, workspace_id, kind, name, last_message_at, placed_at)
    select ${account_id}, n, ${workspace_id}, 'private', 'Person ' || n, now() - n * interval '1 minute',
      case when n % 2 = 0 then now() end
    from generate_series(1, ${chats}::int) n`)
  await db.run(sql`
    insert into contacts (account_id, provider_id, workspace_id, name, sort_name)
    select ${account_id}, n, ${workspace_id}, 'Person ' || n, 'person ' || n from generate_series(1, ${chats}::int) n`)
  await db.run(sql`
    insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
    select ${account_id}, n % 10 + 1, n, ${workspace_id}, 'text', false, now() - n * interval '1 minute'
    from generate_series(1, ${chats}::int) n`)
  await db.run(sql`
    insert into chat_sync (account_id, chat_id, workspace_id, complete)
    select ${account_id}, n, ${workspace_id}, true from generate_series(1, ${chats}::int) n`)
}

interface Node {
  readonly 'Node Type': string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Plans?: readonly Node[]
}

function flatten(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)]
}

/** Every node of the plan, as the statement runs when it is prepared. */
async function nodesOf({ text, values }: Sql): Promise<Node[]> {
  const { rows } = await service.app.db.pool.query(
    `explain (analyze, format json) ${text}`,
    values as unknown[],
  )
  return flatten(rows[0]['QUERY PLAN'][0].Plan)
}

describe.each([
  ['one account', () => accounts.slice(0, 1)],
  ['several accounts', () => accounts],
] as const)('with %s', (_, chosen) => {
  test.each([
    ['chats', 'chats_recent', () => chatPage(chosen(), { filters: {}, after: undefined, limit })],
    [
      'chats, far down',
      'chats_recent',
      () =>
        chatPage(chosen(), {
          filters: {},
          after: [new Date(Date.now() - 2_000 * 60_000).toISOString(), '2000', chosen()[0]?.id ?? ''],
          limit,
        }),
    ],
    [
      'chats of a stage',
      'chats_stage',
      () => chatPage(chosen(), { filters: { stage_key: 'new' }, after: undefined, limit }),
    ],
    [
      'messages',
      'chat_sync_pkey, messages_history',
      () => messagePage(chosen()[0]?.id ?? '', '3', { limit }),
    ],
    ['contacts', 'contacts_name', () => contactPage(chosen(), { limit })],
    ['placements', 'chats_placed', () => placementPage(chosen(), { after: undefined, limit })],
    [
      'placements, far down',
      'chats_placed',
      () => placementPage(chosen(), { after: [chosen()[0]?.id ?? '', '2000'], limit }),
    ],
    ['a batch of placements', 'chats_placed', () => placementBatch(chosen()[0]?.id ?? '', ['2000'], limit)],
  ])('%s: a range of %s, and it reads and sorts no more than a page', async (_name, index, statement) => {
    const nodes = await nodesOf(statement())
    const scans = nodes.filter(
      (node) =>
        /Scan/.test(node['Node Type']) &&
        node['Node Type'] !== 'Function Scan' &&
        node['Node Type'] !== 'Subquery Scan',
    )
    expect(scans.map((node) => node['Index Name']).join(', ')).toBe(index)
    for (const scan of scans) {
      expect(scan['Index Cond']).toContain('account_id')
      expect(scan['Actual Rows']).toBeLessThanOrEqual(limit)
      expect(scan['Rows Removed by Filter'] ?? 0).toBeLessThanOrEqual(1)
    }
    for (const sort of nodes.filter((node) => /Sort/.test(node['Node Type']))) {
      expect(sort['Actual Rows']).toBeLessThanOrEqual(limit * chosen().length)
    }
  })
})

describe('a plan is kept', () => {
  const deep = () => [new Date(Date.now() - 2_000 * 60_000).toISOString(), '2000', accounts[0]?.id ?? '']
  test.each([
    ['chats', () => [undefined, deep()].map((after) => chatPage(accounts, { filters: {}, after, limit }))],
    [
      'chats of one account',
      () =>
        [undefined, deep()].map((after) => chatPage(accounts.slice(0, 1), { filters: {}, after, limit: 11 })),
    ],
    [
      'contacts',
      () =>
        [undefined, ['person 2', '2', accounts[0]?.id ?? '']].map((after) =>
          contactPage(accounts.slice(0, 1), { after, limit }),
        ),
    ],
    ['messages', () => Array.from({ length: 2 }, () => messagePage(accounts[0]?.id ?? '', '3', { limit }))],
  ])('%s: the first page and a later one are one statement, planned once for all', async (_name, pages) => {
    const [first, later] = pages()
    expect(later?.text).toBe(first?.text)
    const client = await service.app.db.client()
    try {
      for (let n = 0; n < 5; n++) {
        for (const { name, text, values } of pages()) await client.query({ name, text, values: [...values] })
      }
      const { rows } = await client.query('select generic_plans, custom_plans from pg_prepared_statements')
      // PostgreSQL tries five before it decides.
      expect(rows).toEqual([{ generic_plans: '5', custom_plans: '5' }])
    } finally {
      await client.end()
    }
  })
})

/** The scans of a statement that was planned, and run, before something happened. */
async function scansOfOldPlan({ text, values }: Sql, happens: () => Promise<unknown>): Promise<Node[]> {
  const client = await service.app.db.client()
  try {
    await client.query('set plan_cache_mode = force_generic_plan')
    await client.query(`prepare old_plan as ${text}`)
    const given = values.map((value) =>
      client.escapeLiteral(Array.isArray(value) ? `{${value.join()}}` : String(value)),
    )
    const execute = `execute old_plan (${given.join()})`
    await client.query(execute)
    await happens()
    const { rows } = await client.query(`explain (analyze, format json) ${execute}`)
    return flatten(rows[0]['QUERY PLAN'][0].Plan).filter(
      (node) => /Scan/.test(node['Node Type']) && node['Node Type'] !== 'Function Scan',
    )
  } finally {
    await client.end()
  }
}

async function someoneWith(count: number) {
  const tenant = await service.tenant()
  const account_id = await service.account(tenant.workspace_id)
  const people = Array.from({ length: count }, (_, n) => ({ account_id, person_id: n + 1 }))
  return { tenant, account_id, people }
}

test('looks up by key who is in another campaign, also with a plan from when there were fewer', async () => {
  const { tenant, account_id, people } = await someoneWith(3_000)
  const found = people.slice(0, 100).map(({ person_id }) => ({
    ...{ contact: `another:${person_id}`, account_id, chat_id: `${person_id + 50_000}` as const },
  }))
  await insertCampaign(service.app.db, tenant, { chats: people.slice(0, 300) })
  await service.app.db.run(sql`analyze campaign_recipients`)
  const scans = await scansOfOldPlan(overlapOf(tenant.workspace_id, found), () =>
    insertCampaign(service.app.db, tenant, { chats: people }),
  )
  expect(scans.map((node) => [node['Index Name'], node['Actual Loops'], node['Actual Rows']])).toEqual([
    ['campaign_recipients_contact', 100, 0],
    ['campaign_recipients_chat', 100, 0],
  ])
  expect(scans.map((node) => node['Index Cond'])).toEqual([
    expect.stringContaining('contact'),
    expect.stringContaining('chat_id'),
  ])
})

test('looks up due recipients in the one index that can serve it, whatever the statistics say', async () => {
  const { tenant, account_id, people } = await someoneWith(300)
  await insertCampaign(service.app.db, tenant, { chats: people })
  const client = await service.app.db.client()
  const due = () =>
    client.query(`
    explain select id from campaign_recipients where account_id = '${account_id}' and status = 'waiting'`)
  try {
    await client.query('set enable_seqscan = off')
    expect(JSON.stringify((await due()).rows)).toContain('campaign_recipients_due')
    // While no recipient is open every index of open recipients is empty, and the server takes any of them.
    await client.query('begin')
    await client.query('drop index campaign_recipients_due')
    await client.query('drop index campaign_recipients_chat')
    expect(JSON.stringify((await due()).rows)).not.toContain('campaign_recipients_contact')
  } finally {
    await client.end()
  }
})

test('the last messages of chats cost the same in a large account that PostgreSQL has not looked at yet', async () => {
  const growing = await openService({ plans: 'shipped' })
  const { workspace_id } = await growing.tenant('Growing')
  const account_id = await growing.account(workspace_id)
  await growing.app.db.run(sql`
    insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
    select ${account_id}, n, n, ${workspace_id}, 'text', false, now() - n * interval '1 minute'
    from generate_series(1, ${chats}::int) n`)
  const read = await growing.app.db.transaction(async (tx) => {
    const count = () =>
      tx.one<{ rows: number }>(sql`
        select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows from pg_stat_xact_user_tables
        where relname = 'messages'`)
    const before = await count()
    const oldest = Array.from({ length: 25 }, (_, n) => String(chats - n) as `${number}`)
    await refreshLastMessages(tx, { account_id, workspace_id }, oldest)
    return (await count()).rows - before.rows
  })
  expect(read).toBe(25)
  await growing.close()
})
