/** In which campaigns the person of a chat is. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { sql } from '../../db/sql.ts'
import { notFound } from '../../lib/names.ts'
import { type ChatId, chatNumber } from '../../lib/shapes.ts'

/** Older ones are left out: what is under way now comes first. */
const shownMax = 20

interface ChatCampaign {
  readonly id: string
  readonly name: string | null
  readonly status: string
  readonly recipient: {
    readonly status: string
    readonly step: number
    readonly opted_out: boolean
    readonly next_action_at: string | null
  }
}

/** Those under way first, then the newest. */
export async function listChatCampaigns(
  { db }: App,
  { workspace_id }: Caller,
  { account_id, chat_id }: { account_id: string; chat_id: ChatId },
): Promise<readonly ChatCampaign[]> {
  const found = await db.maybe<{ campaigns: readonly ChatCampaign[] }>(sql`
    select coalesce((
      select json_agg(item order by under_way desc, created_at desc) from (
        select k.created_at, r.ended_at is null as under_way,
          json_build_object('id', k.id, 'name', k.name, 'status', k.status, 'recipient', json_build_object(
            'status', r.status, 'step', r.step, 'opted_out', r.opted_out, 'next_action_at', wire_time(r.next_action_at))) as item
        from campaign_recipients r
        join campaigns k on k.id = r.campaign_id and k.workspace_id = r.workspace_id
        where r.account_id = c.account_id and r.chat_id = c.chat_id
        order by under_way desc, k.created_at desc limit ${shownMax}) newest), '[]') as campaigns
    from chats c
    where c.account_id = ${account_id} and c.chat_id = ${chatNumber(chat_id)} and c.workspace_id = ${workspace_id}`)
  if (!found) throw notFound('chat', chat_id, 'chat_not_found')
  return found.campaigns
}
