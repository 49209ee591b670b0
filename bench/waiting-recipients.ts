/** Recipients that have had their first message and wait for the next. Every second campaign is paused. */
import type { OpenApp } from '../src/cli/open.ts'
import { sql } from '../src/db/sql.ts'
import { newId } from '../src/lib/ids.ts'

interface CampaignOwner {
  readonly app: OpenApp
  readonly workspace_id: string
  readonly user_id: string
  readonly accounts: readonly string[]
}

interface WaitingRecipients {
  readonly count: number
  /** The number of their first chat. */
  readonly first_chat: number
}

/** Of a campaign. */
const size = 5_000

export async function addWaiting(
  { app, workspace_id, user_id, accounts }: CampaignOwner,
  { count, first_chat }: WaitingRecipients,
): Promise<void> {
  for (let made = 0; made < count; made += size) {
    const paused = (made / size) % 2 === 1
    const id = newId()
    await app.db.run(sql`
      insert into campaigns (id, workspace_id, user_id, kind, status, pause_reason, message_text,
        daily_quota_per_account, max_followups, sequence)
      values (${id}, ${workspace_id}, ${user_id}, 'scoped', ${paused ? 'paused' : 'sending'},
        ${paused ? 'requested' : null}, 'A message.', 200, 1, true)`)
    await app.db.run(sql`
      insert into campaign_steps (campaign_id, workspace_id, branch, position, wait_hours, variants)
      values (${id}, ${workspace_id}, 'no_reply', 1, 168, '{Again.}')`)
    await app.db.run(sql`
      insert into campaign_recipients (id, campaign_id, workspace_id, account_id, chat_id, contact, position, status, step,
        last_sent_at, last_message_id, next_action_at)
      select gen_random_uuid(), ${id}, ${workspace_id}, a.id, chat, a.id || ':' || chat, n, 'waiting', 1,
        domain_now(), 0, domain_now() + interval '7 days'
      from generate_series(0, ${Math.min(size, count - made) - 1}::int) as n
      cross join lateral (select ${first_chat}::bigint + (${made}::bigint + n) / ${accounts.length}::int as chat) c
      join unnest(${accounts}::text[]) with ordinality as a (id, place)
        on a.place = (${made}::bigint + n) % ${accounts.length}::int + 1`)
  }
  await app.db.run(sql`analyze campaign_recipients, campaign_accounts, campaigns`)
}
