/** People who were erased: which of their chats are not stored, and the tombstones of their names. */
import type { App } from '../../app.ts'
import type { AccountKey } from '../../contract.ts'
import { given } from '../../db/given.ts'
import { type Db, type Sql, sql, type Tx } from '../../db/sql.ts'
import type { ChatNumber } from '../../lib/shapes.ts'

/** The private chat of a person who was erased, in one account. */
export interface ErasedChat {
  readonly chat_id: ChatNumber
  readonly erased_at: Date
  /** The newest message that was stored when they were erased. */
  readonly last_id: string
  /** The message with which they wrote again; null: they have not. */
  readonly from_id: string | null
}

/** Those of these people who were erased. */
export async function findErasedChats(
  db: Db,
  { account_id }: Pick<AccountKey, 'account_id'>,
  numbers: readonly ChatNumber[],
): Promise<ReadonlyMap<ChatNumber, ErasedChat>> {
  if (numbers.length === 0) return new Map()
  const rows = await db.rows<ErasedChat>(sql`
    select chat_id::text, erased_at, last_id::text, from_id::text from erased_chats
    where account_id = ${account_id} and chat_id = any(${numbers}::bigint[])`)
  return new Map(rows.map((row) => [row.chat_id, row]))
}

/** Of a row with `account_id`, `chat_id` and the id of a message: whether nothing of it may be stored. */
export function isErased(row: Sql): Sql {
  return sql`exists (select from erased_chats e
    where e.account_id = ${row}.account_id and e.chat_id = ${row}.chat_id
      and (e.from_id is null or ${row}.id < e.from_id))`
}

/** Of a row with `account_id` and `chat_id`: whether the person of this private chat was erased, and has not written again. */
export function isGone(row: Sql): Sql {
  return sql`exists (select from erased_chats e
    where e.account_id = ${row}.account_id and e.chat_id = ${row}.chat_id and e.from_id is null)`
}

/** Why the boundary forbids operation `o`. A crossing that begins before the erasure commits counts as one before it. */
export const forbiddenByErasure: Sql = sql`case when ${isGone(sql`o`)} then 'erased' end`

/** They wrote again, from this message on: their chat in this account and their names are stored again. */
export async function noteReturned(
  tx: Tx,
  { account_id, workspace_id }: AccountKey,
  returned: ReadonlyMap<ChatNumber, string>,
): Promise<void> {
  if (returned.size === 0) return
  const numbers = [...returned.keys()]
  // People first, as an erasure locks them.
  await tx.run(sql`
    update people p set erased_at = null from accounts a
    where a.id = ${account_id} and p.workspace_id = ${workspace_id} and p.platform = a.platform
      and p.number = any(${numbers}::bigint[]) and p.erased_at is not null`)
  await tx.run(sql`
    update erased_chats e set from_id = least(e.from_id, g.from_id)
    from unnest(${numbers}::bigint[], ${[...returned.values()]}::bigint[]) as g (chat_id, from_id)
    where e.account_id = ${account_id} and e.chat_id = g.chat_id`)
}

/** A keyed hash of each name (`kind:value` in the suppression list's form): it says whether a name was theirs, and not which. */
export function tombstoneOf({ secrets }: Pick<App, 'secrets'>, workspace_id: string, name: string): Buffer {
  return secrets.sign('tombstone', workspace_id, name)
}

/** The tombstones of these names, as the suppression list is asked about them beside the names. Numbers have none. */
export function tombstonesOf(
  app: Pick<App, 'secrets'>,
  workspace_id: string,
  names: readonly string[],
): string[] {
  const given = names.filter((name) => /^(username|phone):/.test(name))
  return given.map((name) => `tombstone:${tombstoneOf(app, workspace_id, name).toString('hex')}`)
}

export interface ErasedPerson {
  readonly id: string
  readonly workspace_id: string
  readonly platform: string
  /** Their number on the platform. */
  readonly number: ChatNumber
}

/** Every name that a person has or had, in the suppression list's form. */
export async function listNames(db: Db, person_id: string): Promise<string[]> {
  const rows = await db.rows<{ name: string }>(sql`
    select distinct kind || ':' || value as name from person_names where person_id = ${person_id} order by 1`)
  return rows.map(({ name }) => name)
}

interface Erasing extends ErasedPerson {
  /** Null: now. Otherwise the erasure is repeated in an older copy of the database, to which they may have written since. */
  readonly erased_at: Date | null
  readonly tombstones: readonly Buffer[]
}

/**
 * From here on nothing that arrives of the person is stored. The database may have forgotten them, or know them
 * under another id, which is returned.
 */
export async function markErased(tx: Tx, person: Erasing): Promise<string> {
  const { id: given_id, workspace_id, platform, number, erased_at } = person
  const { id } = await tx.one<{ id: string }>(sql`
    insert into people (id, workspace_id, platform, number, erased_at)
    values (${given_id}, ${workspace_id}, ${platform}, ${number}, coalesce(${erased_at}, domain_now()))
    on conflict (workspace_id, platform, number) do update set erased_at = excluded.erased_at
    returning id`)
  await addTombstones(tx, person)
  await tx.run(sql`
    insert into erased_chats as e (account_id, chat_id, workspace_id, erased_at, last_id)
    select a.id, ${number}, a.workspace_id, coalesce(${erased_at}, domain_now()), coalesce((
      select max(m.id) from messages m where m.account_id = a.id and m.chat_id = ${number}
        and (${erased_at}::timestamptz is null or m.sent_at <= ${erased_at})), 0)
    from accounts a where a.workspace_id = ${workspace_id} and a.platform = ${platform} order by a.id
    on conflict (account_id, chat_id) do update set erased_at = excluded.erased_at, last_id = excluded.last_id, from_id = null
      where e.erased_at < excluded.erased_at`)
  return id
}

export async function addTombstones(
  tx: Tx,
  {
    workspace_id,
    platform,
    number,
    tombstones,
  }: Pick<Erasing, 'workspace_id' | 'platform' | 'number' | 'tombstones'>,
): Promise<void> {
  await tx.run(sql`
    insert into tombstones (workspace_id, hash, platform, number)
    select ${workspace_id}, t.hash, ${platform}, ${number}
    from ${given(
      tombstones.map((hash) => ({ hash })),
      { hash: 'bytea' },
    )} as t
    on conflict do nothing`)
}

/**
 * A transaction that was storing updates when the person was marked may have stored a message after it. In accounts to which they have
 * not written since, it goes with the others.
 */
export async function noteLast(tx: Tx, account_ids: readonly string[], number: ChatNumber): Promise<void> {
  await tx.run(sql`
    update erased_chats e set last_id = coalesce((
      select max(m.id) from messages m where m.account_id = e.account_id and m.chat_id = e.chat_id), 0)
    where e.account_id = any(${account_ids}) and e.chat_id = ${number} and e.from_id is null`)
}

/** The accounts in which they have not written again. */
export async function listGone(
  tx: Tx,
  account_ids: readonly string[],
  number: ChatNumber,
): Promise<string[]> {
  const rows = await tx.rows<{ account_id: string }>(sql`
    select account_id from erased_chats
    where account_id = any(${account_ids}) and chat_id = ${number} and from_id is null order by 1`)
  return rows.map(({ account_id }) => account_id)
}

/** The names of a person, last of all: until then they find what is to be erased. Names that they have shown since stay. */
export async function forgetNames(tx: Tx, person_id: string, erased_at: Date): Promise<void> {
  await tx.run(sql`
    delete from person_names n using people p
    where n.person_id = ${person_id} and p.id = n.person_id and (
      p.erased_at is not null or coalesce(n.last_seen_at, '-infinity') <= ${erased_at}::timestamptz + interval '1 millisecond')`)
}

/** Whether a person was erased whom one of these names or numbers means: then a refusal says so. */
export async function wasErased(
  db: Db,
  { workspace_id, account_id }: AccountKey,
  { number, tombstones }: { readonly number: string | null; readonly tombstones: readonly string[] },
): Promise<boolean> {
  const hashes = tombstones.map((text) => Buffer.from(text.slice('tombstone:'.length), 'hex'))
  const row = await db.maybe(sql`
    select 1 from accounts a where a.id = ${account_id} and (
      exists (
        select from erased_chats e where e.account_id = a.id and e.chat_id = ${number}::bigint and e.workspace_id = ${workspace_id})
      or exists (
        select from tombstones t
        where t.workspace_id = ${workspace_id} and t.hash = any(${hashes}::bytea[]) and t.platform = a.platform))`)
  return row !== undefined
}

/** Selects the names that a person has or had: kind, value, and until when. */
export const namesOf = (person_id: string): Sql =>
  sql`select n.kind, n.value, n.until from person_names n where n.person_id = ${person_id}`

/** Selects the people who had the name of an entry of the suppression list while it stood: number and id. */
export function heldBy({
  workspace_id,
  ...s
}: {
  readonly workspace_id: string
  readonly kind: Sql
  readonly value: Sql
  readonly created_at: Sql
}): Sql {
  return sql`
    select p.id, p.number from person_names n join people p on p.id = n.person_id
    where n.workspace_id = ${workspace_id} and n.kind = ${s.kind} and n.value = ${s.value}
      and (n.until is null or n.until >= ${s.created_at})`
}
