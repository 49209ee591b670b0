/** The plans of the pages for a team: each reads a range of an index that begins with the account, and no more than a page. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { boardOf, cardsMax } from '../src/capabilities/board/board.ts'
import { audienceCounts, audiencePage } from '../src/capabilities/broadcast/audience.ts'
import { leftOutBy } from '../src/capabilities/broadcast/broadcast.ts'
import { countedMax, inboxCounts, inboxPage, type View } from '../src/capabilities/chats/inbox.ts'
import { endOfTimeline, timelinePage } from '../src/capabilities/timeline/timeline-page.ts'
import type { Account } from '../src/contract.ts'
import { type Sql, sql } from '../src/db/sql.ts'
import { openService, type Service } from './harness/service.ts'

const chats = 10_000
const messages = 3_000
const limit = 51
const shown = { stages: true, columns: true, kinds: ['send_message'] }
let service: Service
let accounts: Account[]
let workspace_id: string
let user_id: string

beforeAll(async () => {
  service = await openService({ plans: 'shipped' })
  accounts = []
  for (const name of ['Own', 'Other']) {
    const tenant = await service.tenant(name)
    for (let n = 0; n < 2; n++) {
      const id = await service.account(tenant.workspace_id)
      await fill(id, tenant)
      if (name === 'Other') continue
      accounts.push({ id, provider: 'sandbox', type: 'MESSAGING', name: '', status: 'READY' })
      workspace_id = tenant.workspace_id
      user_id = tenant.user_id
    }
  }
  for (const table of [sql`chats`, sql`messages`, sql`operations`, sql`notes`]) {
    await service.app.db.run(sql`analyze ${table}`)
  }
})
afterAll(() => service.close())

/** Most chats are in every view, so that an index that does not fit would read thousands of rows, or sort them. */
async function fill(account_id: string, tenant: { workspace_id: string; user_id: string }): Promise<void> {
  const { db } = service.app
  const workspace = tenant.workspace_id
  await db.run(sql`
    insert into chats (account_id, chat_id, workspace_id, kind, name, last_message_at, unread_count, last_is_sender,
      assignee_id)
    select ${account_id}, n, ${workspace}, 'private', 'Person ' || n, now() - n * interval '1 minute', n % 3,
      n % 4 = 0, case when n % 3 > 0 then ${tenant.user_id}::uuid end
    from generate_series(1, ${chats}::int) n`)
  await db.run(sql`
    insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at, random_id)
    select ${account_id}, n % 3 + 1, n, ${workspace}, 'text', n % 2 = 0, now() - (${messages}::int - n) * interval '1 minute',
      case when n % 2 = 0 then n end
    from generate_series(1, ${messages}::int) n`)
  await db.run(sql`
    insert into operations (id, workspace_id, kind, effect, fingerprint, state, account_id, chat_id, payload, random_id,
      reply_status, reply_body, created_at)
    select gen_random_uuid(), ${workspace}, 'send_message', 'platform', ${Buffer.alloc(32)},
      case when n % 10 = 0 then 'ambiguous' else 'completed' end, ${account_id}, n % 3 + 1, '{"text": "x"}',
      case when n % 10 = 0 then -n else n end, 200, '{}', now() - (${messages}::int - n) * interval '1 minute'
    from generate_series(2, ${messages}::int, 2) n`)
  await db.run(sql`
    insert into notes (id, workspace_id, account_id, chat_id, author_id, text, created_at)
    select gen_random_uuid(), ${workspace}, ${account_id}, n % 3 + 1, ${tenant.user_id}, 'x', now() - (${messages}::int - n) * interval '1 minute'
    from generate_series(1, ${messages}::int) n`)
}

interface Node {
  readonly 'Node Type': string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Plans?: readonly Node[]
}

function flatten(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)]
}

async function scansOf({ text, values }: Sql): Promise<Node[]> {
  const { rows } = await service.app.db.pool.query(
    `explain (analyze, format json) ${text}`,
    values as unknown[],
  )
  const nodes = flatten(rows[0]['QUERY PLAN'][0].Plan)
  expect(nodes.filter((node) => node['Node Type'] === 'Seq Scan' && !isSmall(node))).toEqual([])
  return nodes.filter((node) => /Scan/.test(node['Node Type']))
}

/** Tables with a row for each user, stage or account, with one row, or without rows in this test. */
const isSmall = (node: Node) =>
  [
    'users',
    'stages',
    'keys',
    'campaigns',
    'accounts',
    'contacts',
    'suppressions',
    'people_backfill',
  ].includes(node['Relation Name'] ?? '')

const over = (scans: readonly Node[], table: string) =>
  scans.filter((node) => node['Relation Name'] === table)

const by = (scans: readonly Node[], index: string) => scans.filter((node) => node['Index Name'] === index)

/** At most this many rows in each pass, and hardly any that were read and discarded. */
function expectRange(scan: Node | undefined, index: string, most: number): void {
  expect(scan?.['Index Name']).toBe(index)
  expect(scan?.['Index Cond']).toContain('account_id')
  expect(scan?.['Actual Rows']).toBeLessThanOrEqual(most)
  expect(scan?.['Rows Removed by Filter'] ?? 0).toBeLessThanOrEqual(1)
}

const deep = () => [new Date(Date.now() - 2_000 * 60_000).toISOString(), '2000', accounts[0]?.id ?? '']

const indexes: readonly [View, string][] = [
  ['all', 'chats_recent'],
  ['unread', 'chats_unread'],
  ['unanswered', 'chats_unanswered'],
  ['mine', 'chats_assigned'],
]

describe.each([
  ['one account', () => accounts.slice(0, 1)],
  ['several accounts', () => accounts],
] as const)('with %s', (_, chosen) => {
  test.each(indexes)(
    'the view %s reads a range of %s, on the first page and far down',
    async (view, index) => {
      for (const after of [undefined, deep()]) {
        const page = inboxPage(chosen(), { chosen: { view, user_id, filters: {} }, shown, after, limit })
        const scans = await scansOf(page)
        expect(over(scans, 'chats')).toHaveLength(1)
        expectRange(over(scans, 'chats')[0], index, limit)
        // One look for each row of the page.
        const [operations] = by(scans, 'operations_unsent')
        expect(operations?.['Index Cond']).toContain('account_id')
        expect(operations?.['Actual Loops']).toBeLessThanOrEqual(limit)
        const [values] = over(scans, 'column_values')
        expect(values?.['Index Cond']).toContain('chat_id')
        expect(values?.['Actual Loops']).toBeLessThanOrEqual(limit)
      }
    },
  )

  test('a stage is a range of its index', async () => {
    const filters = { stage_key: 'new' }
    const page = inboxPage(chosen(), {
      chosen: { view: 'all', user_id, filters },
      shown,
      after: undefined,
      limit,
    })
    expectRange(over(await scansOf(page), 'chats')[0], 'chats_stage', limit)
  })

  test('counts read no more than they count', async () => {
    const scans = over(await scansOf(inboxCounts(chosen(), user_id)), 'chats')
    expect(scans).toHaveLength(4)
    for (const scan of scans) {
      expect(scan['Index Cond']).toContain('account_id')
      expect(scan['Actual Rows'] * scan['Actual Loops']).toBeLessThanOrEqual(countedMax)
      expect(scan['Rows Removed by Filter'] ?? 0).toBe(0)
    }
  })

  test('the board reads what it counts and the cards it shows', async () => {
    const scans = over(await scansOf(boardOf(workspace_id, chosen(), { shown })), 'chats')
    expect(scans).toHaveLength(2)
    const [counted, cards] = scans.toSorted((one, two) => two['Actual Rows'] - one['Actual Rows'])
    expectRange(counted, 'chats_stage', countedMax)
    expectRange(cards, 'chats_stage', cardsMax)
  })
})

describe.each([
  ['one account', () => accounts.slice(0, 1)],
  ['several accounts', () => accounts],
] as const)('the audience with %s', (_, chosen) => {
  const audience = () => ({
    accounts: chosen(),
    filters: { stage_key: 'new' },
    reason: leftOutBy({ workspace_id, named: true }),
  })

  test('reads a range of the stage, on the first page and far down', async () => {
    for (const after of [undefined, deep()]) {
      const scans = await scansOf(audiencePage(audience(), { after, limit }))
      expectRange(over(scans, 'chats')[0], 'chats_stage', limit)
    }
  })

  test('reads no more than it counts', async () => {
    const [scan] = over(await scansOf(audienceCounts(audience())), 'chats')
    expectRange(scan, 'chats_stage', countedMax)
    expect((scan?.['Actual Rows'] ?? 0) * (scan?.['Actual Loops'] ?? 0)).toBeLessThanOrEqual(countedMax)
  })
})

describe.each(['older', 'newer'] as const)('the timeline, %s', (direction) => {
  const from = { ...endOfTimeline, at: new Date(Date.now() - 1_500 * 60_000).toISOString() }
  test('reads a range of messages, operations and notes each', async () => {
    const place = { account_id: accounts[0]?.id ?? '', chat_id: '2', from, direction, limit } as const
    const scans = await scansOf(
      timelinePage(place, { user_id, admin: false, across_gaps: false, kinds: shown.kinds }),
    )
    expectRange(by(scans, 'messages_history')[0], 'messages_history', limit)
    // A chat has few of them, so that the server may also sort those of the range.
    expect(by(scans, 'operations_unsent')[0]?.['Index Cond']).toContain('account_id')
    expectRange(over(scans, 'notes')[0], 'notes_timeline', limit)
    // Whose operation a message is: by its random id.
    expect(by(scans, 'operations_account_id_random_id_key')[0]?.['Actual Loops']).toBeLessThanOrEqual(limit)
  })
})
