/** What is stored about one person, part by part. Every statement finds its rows by a key of the person. */
import { type Sql, sql } from '../../db/sql.ts'
import { unsent } from '../../ledger/unsent.ts'
import { memberName } from '../chats/chats.ts'
import { namesOfPerson, namesOverTime } from '../people/people.ts'
import { joinOrigin, originOf, originOfMessage, sentElsewhere } from '../timeline/timeline.ts'

export interface PersonRow {
  readonly id: string
  readonly workspace_id: string
  readonly platform: string
  /** Their number on the platform: of their private chats and contacts as well. */
  readonly number: string
}

/** The accounts that may know the person. */
function accountsOf({ workspace_id, platform }: PersonRow): Sql {
  return sql`(select a.id from accounts a
    where a.workspace_id = ${workspace_id} and a.platform = ${platform}) a` // guard: what own accounts know of a person
}

/** Their private chats `c`. */
function chatsOf(person: PersonRow): Sql {
  return sql`${accountsOf(person)} cross join lateral (
    select * from chats c
    where c.account_id = a.id and c.chat_id = ${person.number}::bigint and c.kind = 'private' limit 1) c`
}

/** Usernames and phone numbers over time, and what chats and address books call the person now. */
export function namesOf(person: PersonRow, limit: number): Sql {
  return sql`
    select kind, value, account_id, source, wire_time(since) as since, wire_time(seen_at) as last_seen_at,
      wire_time(until) as until
    from (
      select kind, value, account_id, 'platform' as source, since, seen_at, until from (${namesOverTime(person.id)}) seen
      union all
      select 'name', c.name, c.account_id, 'chat', null, null, null from ${chatsOf(person)} where btrim(c.name) <> ''
      union all
      select 'name', o.name, o.account_id, 'contact', null, null, null
      from ${accountsOf(person)} cross join lateral (
        select * from contacts o where o.account_id = a.id and o.provider_id = ${person.number}::bigint limit 1) o
      where btrim(o.name) <> '') named
    order by named.until desc nulls first, kind, named.since desc, value, account_id, source limit ${limit}`
}

export function chatRows(person: PersonRow, limit: number): Sql {
  return sql`
    select c.account_id, 'platform:chat:' || c.chat_id as chat_id, c.name, c.stage_key,
      wire_time(c.last_message_at) as last_message_at,
      case when u.id is not null then json_build_object('user_id', u.id, 'name', ${memberName}) end as assignee
    from ${chatsOf(person)} left join users u on u.id = c.assignee_id
    order by c.last_message_at desc, c.account_id limit ${limit}`
}

/** With what no page shows of them. */
export function exportedChats(person: PersonRow, limit: number): Sql {
  return sql`
    select shown.*, c.username, c.participants, wire_time(c.read_by_them_at) as read_by_them_at
    from (${chatRows(person, limit)}) shown
    join chats c on c.account_id = shown.account_id and c.chat_id = ${person.number}::bigint
    order by c.last_message_at desc, c.account_id`
}

/** The entries of the suppression list that stop the person, under any of their names: requests to stop first. */
export function suppressionRows({ id, workspace_id, number }: PersonRow, limit: number): Sql {
  return sql`
    select s.kind, s.value, s.source, s.evidence, wire_time(s.created_at) as created_at
    from (
      select kind, value, case when bool_or(until is null) then null else max(until) end as until
      from (${namesOfPerson({ id: sql`${id}::uuid`, number: sql`${number}::bigint` })}) own group by 1, 2) named
    cross join lateral (
      select * from suppressions s
      where s.workspace_id = ${workspace_id} and s.kind = named.kind and s.value = named.value
        and (named.until is null or named.until >= s.created_at) -- guard: entries of the time of a name
      limit 1) s
    order by s.source <> 'opt_out', s.created_at desc, s.kind, s.value limit ${limit}`
}

/**
 * The person's entries in campaigns: by chat, and by a name that they had when the campaign was made, unless the recipient is
 * tied to somebody else.
 */
export function campaignRows(person: PersonRow, limit: number): Sql {
  const { id, workspace_id, number } = person
  return sql`
    with names as materialized (
      select kind || ':' || value as contact, case when bool_or(until is null) then null else max(until) end as until
      from (${namesOfPerson({ id: sql`${id}::uuid`, number: sql`${number}::bigint` })}) own group by 1)
    select r.id as recipient_id, k.id, k.name, k.status, r.account_id, r.contact, r.name as given_name, r.told_name,
      r.status as recipient_status, r.step, r.reason, r.opted_out, wire_time(r.last_sent_at) as last_sent_at,
      wire_time(r.replied_at) as replied_at, wire_time(r.ended_at) as ended_at,
      wire_time(r.next_action_at) as next_action_at, wire_time(k.created_at) as created_at
    from (
      select r.id from ${accountsOf(person)} cross join lateral (
        select r.id from campaign_recipients r where r.account_id = a.id and r.chat_id = ${number}::bigint) r
      union
      select r.id from campaigns k cross join names n cross join lateral (
        -- In the order of the key: PostgreSQL would read a whole campaign in a plan from when there were few recipients.
        select * from campaign_recipients r
        where r.campaign_id = k.id and r.contact >= n.contact order by r.contact limit 1) r
      where k.workspace_id = ${workspace_id} and r.contact = n.contact
        and (r.person_id is null or r.person_id = ${id}) -- guard: a recipient who is somebody else
        and (n.until is null or n.until >= k.created_at) -- guard: a campaign of after the name passed on
      ) own
    cross join lateral (select * from campaign_recipients r where r.id = own.id limit 1) r
    join campaigns k on k.id = r.campaign_id and k.workspace_id = ${workspace_id}
    order by r.ended_at is null desc, k.created_at desc, r.id limit ${limit}`
}

/** With the names that the account had found for them, which no page shows. */
export function exportedCampaigns(person: PersonRow, limit: number): Sql {
  return sql`
    select shown.*, r.identifier, r.username, r.found_id::text, r.found_username, r.found_phone
    from (${campaignRows(person, limit)}) shown join campaign_recipients r on r.id = shown.recipient_id
    order by r.ended_at is null desc, shown.created_at desc, r.id`
}

export function noteRows(person: PersonRow, limit: number): Sql {
  return sql`
    select n.id, n.account_id, 'platform:chat:' || n.chat_id as chat_id, wire_time(n.created_at) as at, n.text,
      json_build_object('user_id', u.id, 'name', ${memberName}) as author
    from ${chatsOf(person)} cross join lateral (
      select * from notes n where n.account_id = c.account_id and n.chat_id = c.chat_id
      order by n.created_at desc, n.id desc limit ${limit}) n
    join users u on u.id = n.author_id
    order by n.created_at desc, n.id desc limit ${limit}`
}

export function valueRows(person: PersonRow, limit: number): Sql {
  return sql`
    select v.account_id, 'platform:chat:' || v.chat_id as chat_id, v.column_id, k.name, v.value,
      wire_time(v.updated_at) as updated_at
    from ${chatsOf(person)} cross join lateral (
      select * from column_values v where v.account_id = c.account_id and v.chat_id = c.chat_id) v
    join columns k on k.id = v.column_id
    order by k.position, k.id, v.account_id limit ${limit}`
}

/** Of each chat: what the account sent among them is shown. */
const newestMessages = 500

/** What was sent to the person and by whom, without its text: messages, and operations that have none. Newest first. */
export function sentRows(
  person: PersonRow,
  { kinds, limit }: { kinds: readonly string[]; limit: number },
): Sql {
  return sql`
    select sent.account_id, 'platform:chat:' || ${person.number}::text as chat_id, wire_time(sent.at) as at,
      sent.message_id, sent.state, sent.by, sent.campaign, sent.operation_id
    from (
      (select m.account_id, m.sent_at as at, m.id as number, m.id::text as message_id, 'accepted' as state,
        coalesce(origin.by, ${sentElsewhere}) as by, origin.campaign, origin.operation_id
      from ${chatsOf(person)} cross join lateral (
        select * from (
          select * from messages m
          where m.account_id = c.account_id and m.chat_id = c.chat_id and m.deleted_at is null
          order by m.sent_at desc, m.id desc limit ${newestMessages}) newest
        where is_sender order by sent_at desc, id desc limit ${limit}) m
      left join lateral (${originOfMessage}) origin on true)
      union all
      (select o.account_id, o.created_at, null, null, o.state, origin.by, origin.campaign, origin.operation_id
      from ${chatsOf(person)} cross join lateral (
        select * from operations o
        where o.account_id = c.account_id and o.chat_id = c.chat_id and ${unsent(kinds)}
        order by o.created_at desc, o.id desc limit ${limit}) o
      cross join lateral (select ${originOf} from (select) once ${joinOrigin}) origin)) sent
    order by sent.at desc, sent.number desc nulls last, sent.operation_id limit ${limit}`
}

export function contactRows(person: PersonRow): Sql {
  return sql`
    select o.account_id, o.name, o.username, o.phone
    from ${accountsOf(person)} cross join lateral (
      select * from contacts o where o.account_id = a.id and o.provider_id = ${person.number}::bigint limit 1) o
    order by o.account_id`
}

/** Operations that were to send a message to the person, with its text. */
export function unsentRows(
  person: PersonRow,
  { kinds, limit }: { kinds: readonly string[]; limit: number },
): Sql {
  return sql`
    select coalesce(o.public_id, o.id) as id, o.account_id, o.kind, o.state, o.reason, wire_time(o.created_at) as at,
      o.payload ->> 'text' as text, o.payload #>> '{file,file_name}' as file_name
    from ${accountsOf(person)} cross join lateral (
      select * from operations o
      where o.account_id = a.id and o.chat_id = ${person.number}::bigint and ${unsent(kinds)}
      order by o.created_at desc, o.id desc limit ${limit}) o
    order by o.created_at desc, o.id desc limit ${limit}`
}

export function approvalRows({ workspace_id, platform, number }: PersonRow, limit: number): Sql {
  return sql`
    select p.id, p.account_id, p.operation, p.state, wire_time(p.created_at) as at, p.client_name, p.payload
    from approvals p join accounts a on a.id = p.account_id and a.platform = ${platform}
    where p.workspace_id = ${workspace_id} and p.chat_id = ${number}::bigint
    order by p.created_at desc, p.id desc limit ${limit}`
}
