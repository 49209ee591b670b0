/**
 * What the dashboard's benchmark reads: two workspaces with as many accounts each, one with 100,000 chats and one with 100,
 * each with a campaign; a million rows of the audit log, and of a suppression list.
 */
import { setAllowed, setGates } from '../src/capabilities/gates/gates.ts'
import { addStages } from '../src/capabilities/pipeline/pipeline.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { createWorkspace } from '../src/capabilities/workspaces/workspaces.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { sql } from '../src/db/sql.ts'
import { signIn } from '../test/harness/person.ts'
import { addAccounts } from './harness.ts'
import { addWaiting } from './waiting-recipients.ts'

export const chats = { many: 100_000, few: 100 }
export const placed = { many: 10_000, few: 80 }
export const recipients = { many: 5_000, few: 50 }
export const listed = 1_000_000
const accounts = 5
const stages = ['contacted', 'talking', 'won', 'lost']
/** Every fiftieth chat of the large team is unread, unanswered and assigned to the user; in the small team, every chat is. */
const viewEvery = { many: 50, few: 1 }
/** The newest chats have messages to show. */
const withMessages = 500

export interface Team {
  readonly workspace_id: string
  readonly campaign_id: string
  readonly account_id: string
}

export interface Stage {
  readonly many: Team
  readonly few: Team
  /** Each allows 600 requests a minute. */
  readonly cookies: readonly string[]
}

export async function fillDashboard(app: OpenApp, sessions: number): Promise<Stage> {
  await setGates(app, 'system', { names: ['all', 'extended'], enabled: true })
  const own = await createWorkspace(app, 'system', { name: 'Many' })
  const { id: user_id } = await createUser(app, 'system', {
    email: 'bench@example.org',
    workspace_id: own.id,
    role: 'owner',
  })
  await app.db.run(sql`update users set operator = true where id = ${user_id}`)
  const other = await createWorkspace(app, 'system', { name: 'Few' })
  await app.db.run(
    sql`insert into memberships (workspace_id, user_id, role) values (${other.id}, ${user_id}, 'owner')`,
  )
  await setAllowed(app, 'system', { list: 'campaign_user', id: user_id, allowed: true })
  const many = await fillTeam(app, own.id, user_id, 'many')
  const few = await fillTeam(app, other.id, user_id, 'few')
  await fillLists(app, own.id)
  const cookies: string[] = []
  // A user may have only a few sessions.
  for (let at = 0; at < sessions; at++) {
    const email = `member${at}@example.org`
    const member = await createUser(app, 'system', { email, workspace_id: own.id, role: 'owner' })
    await app.db.run(sql`
      insert into memberships (workspace_id, user_id, role) values (${other.id}, ${member.id}, 'owner')`)
    await app.db.run(sql`update users set operator = true where id = ${member.id}`)
    await setAllowed(app, 'system', { list: 'campaign_user', id: member.id, allowed: true })
    cookies.push(await signIn({ app }, member.id))
  }
  return { many, few, cookies }
}

async function fillTeam(
  app: OpenApp,
  workspace_id: string,
  user_id: string,
  size: 'many' | 'few',
): Promise<Team> {
  const ids = await addAccounts(app, workspace_id, accounts)
  await app.db.run(sql`update accounts set status = 'READY' where workspace_id = ${workspace_id}`)
  await setAllowed(app, 'system', { list: 'campaign_workspace', id: workspace_id, allowed: true })
  await app.db.transaction((tx) =>
    addStages(
      tx,
      workspace_id,
      stages.map((key) => ({ key, label: key })),
    ),
  )
  await inHaste(app, async (run) => {
    // Consecutive rows differ in account, stage and age. Those in a view are spread over all ages.
    await run(
      `insert into chats (account_id, chat_id, workspace_id, kind, name, username, last_message_id, last_sender_of,
        last_message_text, last_message_at, last_is_sender, unread_count, assignee_id, stage_key, placed_at)
      select ($2::text[])[1 + n % $3::int], n, $1, 'private', 'Person ' || n, 'person_' || n, 3, 3, 'Message 3 of ' || n,
        now() - age * interval '1 minute', age % $7::int <> 0, case when age % $7::int = 0 then 2 else 0 end,
        case when age % $7::int = 0 then $4::uuid end, coalesce(stage, 'new'), case when stage is not null then now() end
      from generate_series(1, $5::int) n
        cross join lateral (select (n::bigint * 7919) % $5::int as age,
          case when n <= $6::int then ($8::text[])[1 + n % 4] end as stage) c`,
      [workspace_id, ids, accounts, user_id, chats[size], placed[size], viewEvery[size], stages],
    )
    await run(
      `insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sender_id, sent_at, announced)
      select account_id, chat_id, n, workspace_id, 'Message ' || n || ' of ' || chat_id, n % 2 = 0, chat_id,
        last_message_at - (3 - n) * interval '1 minute', true
      from (select * from chats where workspace_id = $1 order by last_message_at desc limit $2) c
        cross join generate_series(1, 3) n`,
      [workspace_id, withMessages],
    )
    await run(
      `insert into chat_sync (account_id, chat_id, workspace_id, complete)
      select account_id, chat_id, workspace_id, true from chats where workspace_id = $1`,
      [workspace_id],
    )
  })
  await addWaiting({ app, workspace_id, user_id, accounts: ids }, { count: recipients[size], first_chat: 1 })
  const { id: campaign_id } = await app.db.one<{ id: string }>(
    sql`select id from campaigns where workspace_id = ${workspace_id}`,
  )
  return { workspace_id, campaign_id, account_id: ids[0] ?? '' }
}

/** Rows as the service writes them, except for the chain of hashes, which no page checks. */
async function fillLists(app: OpenApp, workspace_id: string): Promise<void> {
  await inHaste(app, async (run) => {
    await run(
      `insert into audit (seq, at, workspace_id, actor, action, target, detail, hash)
      select (select max(seq) from audit) + n, now(), case when n % 2 = 0 then $1::uuid end, 'system',
        (array['key.created', 'key.revoked', 'chat.assigned'])[1 + n % 3], 'target ' || n, '{"name": "a name"}',
        decode(repeat(md5(n::text), 2), 'hex')
      from generate_series(1, $2::int) n`,
      [workspace_id, listed],
    )
    await run(
      `insert into suppressions (workspace_id, kind, value, source, evidence)
      select $1, 'phone', (4900000000 + (n::bigint * 7919) % 99999989)::text, 'import',
        json_build_object('file', 'list.csv', 'line', n)
      from generate_series(1, $2::int) n`,
      [workspace_id, listed],
    )
  })
}

type Run = (text: string, values: readonly unknown[]) => Promise<unknown>

/** Without triggers and without a limit on time. */
async function inHaste(app: OpenApp, work: (run: Run) => Promise<void>): Promise<void> {
  const client = await app.db.client()
  try {
    await client.query(
      "set statement_timeout = 0; set session_replication_role = 'replica'; set synchronous_commit = off",
    )
    await work((text, values) => client.query(text, [...values]))
    await client.query('vacuum analyze chats, messages, audit, suppressions')
  } finally {
    await client.end()
  }
}
