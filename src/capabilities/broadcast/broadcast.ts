/** One message to everyone in a stage or with a column value: finds them and inserts the rows that the worker sends. */
import { requireMaker } from '../../access/makers.ts'
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { type Sql, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import { quote } from '../../lib/text.ts'
import { findFault, needsName, parseTemplate } from '../../rules/placeholders.ts'
import { type FoundRecipient, insertBroadcast, requireKnown } from '../campaigns/campaigns.ts'
import { columnNotFound, invalidStage } from '../chats/chats.ts'
import { isListed, requireList } from '../suppressions/suppressions.ts'

/** The contract's limit per call. */
export const recipientsMax = 30

interface BroadcastRequest {
  readonly account_id: string
  readonly audience_type: 'stage' | 'column'
  readonly audience_ref: string
  readonly column_value?: string | undefined
  readonly message_text: string
}

interface Broadcast {
  readonly broadcast_id: string
  readonly recipients: number
  readonly audience_total: number
  readonly capped: boolean
}

export async function createBroadcast(
  app: App,
  tx: Tx,
  caller: Caller,
  { request, key }: { request: BroadcastRequest; key: string | undefined },
): Promise<Broadcast> {
  const template = parseTemplate(request.message_text, 'braces')
  requireKnown(template, 'braces')
  const chats = await audienceOf(tx, caller, request)
  await requireList(tx)
  const { found, audience_total } = await readAudience(tx, caller.workspace_id, {
    account_id: request.account_id,
    chats,
    named: needsName(template),
  })
  const long = found.find((one) => findFault(template, one) === 'text_too_long')
  if (long) {
    throw new ApiError('invalid_request', {
      detail: `message_text is longer than 4096 characters for platform:chat:${long.chat_id}.`,
    })
  }
  const { message_text } = request
  const broadcast_id = await insertBroadcast(app, tx, caller, { message_text, audience_total, found, key })
  await requireMaker(tx, caller) // guard: broadcasts of a member who leaves
  return {
    broadcast_id,
    recipients: found.length,
    audience_total,
    capped: audience_total > found.length,
  }
}

/** Selects the chats `c` of the audience. */
async function audienceOf(
  tx: Tx,
  caller: Caller,
  { account_id, audience_type, audience_ref, column_value }: BroadcastRequest,
): Promise<Sql> {
  const { workspace_id } = caller
  if (audience_type === 'stage') {
    const stage = await tx.maybe(sql`
      select 1 from stages where workspace_id = ${workspace_id} and key = ${audience_ref} and not hidden`)
    if (!stage) throw await invalidStage(tx, caller, `The stage ${quote(audience_ref)} is unknown or hidden.`)
    return sql`from chats c where c.account_id = ${account_id} and c.stage_key = ${audience_ref}`
  }
  const column =
    isUuid(audience_ref) &&
    (await tx.maybe(sql`select 1 from columns where workspace_id = ${workspace_id} and id = ${audience_ref}`))
  if (!column) throw await columnNotFound(tx, caller, audience_ref)
  return sql`from column_values v join chats c on c.account_id = v.account_id and c.chat_id = v.chat_id
    where v.column_id = ${audience_ref} and v.account_id = ${account_id} and v.value @> array[${column_value}::text]`
}

interface AudienceRow {
  readonly chat_id: ChatNumber
  readonly name: string
  readonly username: string | null
  readonly total: number
}

/** Why the person of chat `c` gets no broadcast, as an `ExclusionReason`; null if they do. */
export function leftOutBy({ workspace_id, named }: { workspace_id: string; named: boolean }): Sql {
  return sql`case
    when c.kind <> 'private'
      or exists (
        select from jsonb_array_elements(c.participants) as one
        where one ->> 'id' = c.chat_id::text and coalesce(one ->> 'kind', 'person') <> 'person')
      or exists (select from accounts self where self.id = c.account_id and self.platform_user_id = c.chat_id)
      then 'no_person'
    when ${isListed(sql`${workspace_id}::uuid`, {
      account_id: sql`c.account_id`,
      number: sql`c.chat_id`,
      names: sql`array_remove(array['username:' || lower(c.username)], null)`,
    })} then 'suppressed'
    when ${named}::boolean and btrim(c.name) = '' then 'nameless' end`
}

/** Most recent first, without suppressed people, bots, deleted accounts and ourselves; `named`: without nameless chats. */
async function readAudience(
  tx: Tx,
  workspace_id: string,
  { account_id, chats, named }: { account_id: string; chats: Sql; named: boolean },
): Promise<{ found: FoundRecipient[]; audience_total: number }> {
  const rows = await tx.rows<AudienceRow>(sql`
    select c.chat_id::text, c.name, c.username, (count(*) over ())::int as total
    from (select c.* ${chats} and c.kind = 'private') c
    where ${leftOutBy({ workspace_id, named })} is null
    order by c.last_message_at desc, c.chat_id desc limit ${recipientsMax}`)
  const found = rows.map(({ chat_id, name, username }) => ({
    contact: `${account_id}:${chat_id}`,
    account_id,
    chat_id,
    identifier: null,
    name: name.trim() === '' ? null : name,
    username,
  }))
  return { found, audience_total: rows[0]?.total ?? 0 }
}
