/**
 * People: one row for each workspace, platform and number on the platform, with the names that accounts saw and when. This
 * slice alone learns names: from contacts, by triggers on their table, and from look-ups.
 */
import type { AccountKey } from '../../contract.ts'
import { type Db, type Sql, sql } from '../../db/sql.ts'
import { isLive } from '../../ledger/liveness.ts'
import type { AskedPerson, Person } from '../../platform/port.ts'
import type { Identifier } from '../../rules/identifier.ts'

export {
  addTombstones,
  type ErasedChat,
  type ErasedPerson,
  findErasedChats,
  forbiddenByErasure,
  forgetNames,
  heldBy,
  isErased,
  isGone,
  listGone,
  listNames,
  markErased,
  namesOf,
  noteLast,
  noteReturned,
  tombstoneOf,
  tombstonesOf,
  wasErased,
} from './erased.ts'
export {
  calledOf,
  currentNamesOf,
  isPersonListed,
  namesOfPerson,
  namesOverTime,
  peopleNamed,
} from './names-of-person.ts'

/** A name that the platform was asked about, and whether the person has it: what it shows of them may leave the name out. */
interface AskedName {
  readonly identifier: Identifier
  readonly has_name: boolean
}

/** Stores what the platform has said about people now. `asked`: it was asked for the only one of them. Contacts that are stored need no call. */
export async function learnPeople(
  db: Db,
  { workspace_id, account_id }: AccountKey,
  people: readonly Person[],
  asked?: AskedName,
): Promise<void> {
  const seen = people.filter(({ kind, stale }) => kind === 'person' && !stale) // guard: no name that was not shown is learned
  if (seen.length === 0) return
  await db.run(sql`
    select learn_names(${workspace_id}, ${account_id}, ${seen.map(({ id }) => id)}::bigint[],
      ${seen.map(({ username }) => username)}::text[], ${seen.map(({ phone }) => phone)}::text[],
      ${asked?.identifier.kind ?? null}, ${asked?.identifier.value ?? null}, -- guard: the name that was asked for
      ${asked?.has_name ?? true})`)
}

/** Stores the answer about a person who was asked about. Returns them if they have the name; null: it is not known whose it is. */
export async function learnAsked(
  db: Db,
  account: AccountKey,
  identifier: Identifier,
  asked: AskedPerson | null,
): Promise<Person | null> {
  if (!asked) return null
  await learnPeople(db, account, [asked.person], { identifier, has_name: asked.has_name })
  return asked.has_name ? asked.person : null
}

export interface NameOwner {
  /** Whom to ask first whether the name is still theirs: who had it last, as far as is known, of those whom the account can reach. */
  readonly number: string | null
  /** Some person has or had it. */
  readonly known: boolean
}

/** Of an id, the number itself. */
export async function findOwner(
  db: Db,
  { workspace_id, account_id }: AccountKey,
  { kind, value }: Identifier,
): Promise<NameOwner> {
  if (kind === 'id') return { number: value, known: true }
  return db.one<NameOwner>(sql`
    with named as materialized (${namedAs(workspace_id, { kind, value })})
    select exists (select from named) as known, (
      select p.number::text from named n join people p on p.id = n.person_id
      where n.until is null and n.platform = (select a.platform from accounts a where a.id = ${account_id})
      order by exists (
        select from contacts c where c.account_id = ${account_id} and c.provider_id = p.number) desc,
        n.last_seen_at desc nulls last, p.number limit 1) as number`)
}

function namedAs(workspace_id: string, { kind, value }: Identifier): Sql {
  const listed = kind === 'phone' ? sql`phone_digits(${value})` : sql`lower(${value})`
  return sql`select * from person_names where workspace_id = ${workspace_id} and kind = ${kind} and value = ${listed}`
}

/** The name in a recipient's `contact`, in the suppression list's form. */
const isNamed = (contact: Sql): Sql => sql`n.kind = split_part(${contact}, ':', 1)
  and n.value = case split_part(${contact}, ':', 1) when 'phone' then phone_digits(split_part(${contact}, ':', 2))
    else split_part(${contact}, ':', 2) end`

/** Whether a recipient was given by a name, which may pass on, and not by a number. */
export const isByName = (contact: Sql): Sql => sql`split_part(${contact}, ':', 1) in ('username', 'phone')`

interface GivenRecipient {
  readonly workspace_id: Sql
  readonly contact: Sql
  /** Whom it is tied to; null: nobody. */
  readonly person_id: Sql
}

/**
 * Those of the accounts that can ask about the recipient without a look-up, as an array: their contacts (chats, basic groups, address
 * book) have the person whose name it is, as far as is known. By number, all of them.
 */
export function listAskers({ workspace_id, contact, person_id }: GivenRecipient, accounts: Sql): Sql {
  return sql`case when not ${isByName(contact)} then ${accounts} else array(
    select distinct c.account_id from person_names n join people p on p.id = n.person_id
    join contacts c on c.account_id = any(${accounts}) and c.provider_id = p.number
    where n.workspace_id = ${workspace_id} and ${isNamed(contact)} and n.until is null
      and n.person_id = coalesce(${person_id}, n.person_id)) end`
}

/** A stored name that was seen within this time counts, wherever the person is. */
const countsHours = 24
/** What the platform shows of a name is believed for this long, so a chat that begins within it tells of every later change. */
const believedHours = 1

/**
 * The person to whom a recipient is tied at creation: the only one who has the name as far as is known, if that counts for one of
 * the accounts. It does for a day; and while the account that saw it has a chat with the person, and gets its updates. A chat begins with
 * its first message: of somebody whose chat was only opened, or whom the account knows from elsewhere, a platform may tell nothing. And
 * a name that was seen before the chat began may have passed on before.
 */
export function tieOf(
  { workspace_id, contact }: Pick<GivenRecipient, 'workspace_id' | 'contact'>,
  accounts: Sql,
): Sql {
  return sql`(
    select case when count(distinct n.person_id) = 1 -- guard: a name that two people have ties nobody
      and bool_or(n.account_id = any(${accounts}) and (
        n.last_seen_at > (select domain_now()) - make_interval(hours => ${countsHours}) -- guard: a stored name counts for a day
        or n.last_seen_at is not null and exists (
          select from accounts a join account_hosts h on h.account_id = a.id
          where a.id = n.account_id
            and a.status = 'READY' and ${isLive} and h.gap_since is null -- guard: a chat whose updates arrive
            and exists (
              select from messages m
              where m.account_id = n.account_id and m.deleted_at is null
                and m.chat_id = p.number -- guard: a contact without a chat
                and m.sent_at < n.last_seen_at + make_interval(hours => ${believedHours}) -- guard: a name from before the chat
            )))) then min(n.person_id::text)::uuid end
    from person_names n
    -- Not a join, which may read everybody.
    cross join lateral (select known.number from people known where known.id = n.person_id limit 1) p
    where n.workspace_id = ${workspace_id} and ${isNamed(contact)} and n.until is null
      and n.platform in (select a.platform from accounts a where a.id = any(${accounts})) -- guard: a name on another platform
      )`
}

/** A private chat in a statement: its person is the number, `username` what the chat shows. */
export interface ChatColumns {
  readonly workspace_id: Sql
  readonly platform: Sql
  readonly number: Sql
  readonly username: Sql
}

/**
 * Selects every name by which an entry of the suppression list can stop the person of a chat, each with `until`, as `is_listed`
 * asks about them.
 */
export function namesOfChat(chat: ChatColumns): Sql {
  return sql`
    select 'platform_id' as kind, ${chat.number}::text as value, null::timestamptz as until
    union all
    select 'username', lower(${chat.username}), null where ${chat.username} is not null
    union all
    ${learntNamesOfChat(chat)}`
}

/** Those of them that the chat itself does not show. */
export function learntNamesOfChat({ workspace_id, platform, number }: Omit<ChatColumns, 'username'>): Sql {
  return sql`
    select n.kind, n.value, n.until
    from people person
    join person_names n on n.person_id = person.id
    where person.workspace_id = ${workspace_id} and person.platform = ${platform} and person.number = ${number}
    union all
    -- Until every contact of before was read, some people have no row.
    select t.kind, t.value, null from accounts reader
    cross join lateral (
      select * from contacts stored where stored.account_id = reader.id and stored.provider_id = ${number} limit 1) unread
    cross join lateral (values ('username', lower(unread.username)), ('phone', phone_digits(unread.phone))) as t (kind, value)
    where reader.platform = ${platform}
      and reader.workspace_id = ${workspace_id} -- guard: contacts of own accounts mark a chat
      and exists (select from people_backfill where done_at is null) -- guard: contacts that are not read mark a chat
      `
}

/**
 * What the person of an entry is called in a chat or a contact of the workspace; null if neither has a name. Of several people,
 * the one who has the entry's name now.
 */
export function calledUnder({ workspace_id, kind, value }: EntryColumns): Sql {
  return sql`(
    select known.name
    from (
      select case when ${value} ~ '^[0-9]{1,18}$' then ${value}::bigint end as number, null::timestamptz as until
      where ${kind} = 'platform_id'
      union all
      select p.number, n.until from person_names n join people p on p.id = n.person_id
      where n.workspace_id = ${workspace_id} and n.kind = ${kind} and n.value = ${value}) tied
    cross join accounts a
    cross join lateral (
      select c.name, c.last_message_at as at from chats c
      where c.account_id = a.id and c.chat_id = tied.number and c.kind = 'private'
      union all
      select o.name, null from contacts o where o.account_id = a.id and o.provider_id = tied.number) known
    where a.workspace_id = ${workspace_id} -- guard: what a person is called in this workspace only
      and btrim(known.name) <> ''
    order by tied.until desc nulls first, known.at desc nulls last limit 1)`
}

/** How many people an entry of the suppression list shows, and how many names of each. */
const shownMax = 20

/** A person whom an entry of the suppression list stops. */
export interface TiedPerson {
  /** Their number on the platform. */
  readonly platform_id: string
  /** What they are called now, besides the entry: `kind:value` in the list's form. */
  readonly names: readonly string[]
  /** When they were first seen under the entry's name; null if the entry is their number. */
  readonly since: string | null
  /** When the name passed on; null while they have it. */
  readonly until: string | null
  /** Whether removing the entry releases them: no other entry stops them. */
  readonly released: boolean
}

/** Columns of an entry of the suppression list. */
interface EntryColumns {
  readonly workspace_id: Sql
  readonly kind: Sql
  readonly value: Sql
  readonly created_at: Sql
}

/**
 * The people whom an entry stops, as JSON, a list of `TiedPerson`: those who had the name at any time while the entry stood, as in
 * `is_listed`. Reads names of the entry's workspace only.
 */
export function peopleUnder({ workspace_id, kind, value, created_at }: EntryColumns): Sql {
  // Another entry stops person `p` as well.
  const isHeld = sql`exists (
    select from (
      select n.kind, n.value, case when bool_or(n.until is null) then null else max(n.until) end as until
      from person_names n where n.person_id = p.id group by 1, 2
      union all
      select 'platform_id', p.number::text, null) own
    cross join lateral (
      select other.kind, other.value from suppressions other
      where other.workspace_id = ${workspace_id} and other.kind = own.kind and other.value = own.value
        and (own.until is null or own.until >= other.created_at)
      limit 1) other
    where (other.kind, other.value) <> (${kind}, ${value}))` // guard: another entry holds them
  return sql`(
    select coalesce(json_agg(json_build_object('platform_id', p.number::text, 'names', named.names,
      'since', wire_time(tied.since), 'until', wire_time(tied.until), 'released', not ${isHeld}) order by tied.until nulls first, p.number), '[]')
    from (
      select n.person_id, min(n.first_seen_at) as since,
        case when bool_or(n.until is null) then null else max(n.until) end as until
      from person_names n
      where n.kind = ${kind} and n.value = ${value}
        and n.workspace_id = ${workspace_id} -- guard: names of this workspace only
        and (n.until is null or n.until >= ${created_at}) -- guard: only who had the name while the entry stood
      group by 1
      union all
      select p.id, null, null from people p
      where ${kind} = 'platform_id' and p.workspace_id = ${workspace_id}
        and p.platform in (select a.platform from accounts a where a.workspace_id = ${workspace_id})
        and p.number = case when ${value} ~ '^[0-9]{1,18}$' then ${value}::bigint end
      limit ${shownMax}) tied
    join people p on p.id = tied.person_id
    cross join lateral (
      select coalesce(json_agg(name order by name), '[]') as names from (
        select distinct n.kind || ':' || n.value as name from person_names n
        where n.person_id = p.id and n.until is null and (n.kind, n.value) <> (${kind}, ${value})
        limit ${shownMax}) current) named)`
}
