/** The people whom a workspace never writes to first. */
import type { App } from '../../app.ts'
import type { AccountKey } from '../../contract.ts'
import { given } from '../../db/given.ts'
import { type Db, type Sql, sql, type Tx } from '../../db/sql.ts'
import { erasedSentence } from '../../ledger/released.ts'
import { ApiError } from '../../lib/errors.ts'
import { type ChatNumber, chatIdOf } from '../../lib/shapes.ts'
import type { Message } from '../../platform/port.ts'
import { listedDigits } from '../../rules/identifier.ts'
import { type Actor, record } from '../audit/audit.ts'
import { peopleUnder, type TiedPerson, tombstonesOf, wasErased } from '../people/people.ts'
import { type Entry, type Kind, kinds, toEntry } from './entries.ts'
import { isOptOut } from './opt-out.ts'
import { entryColumns, insertEntries, lockList, type Suppression } from './stored-entries.ts'

export { hasAskedToStop, isChatListed } from './chat-suppression.ts'
export { eraseEntries, listErased } from './erased-entries.ts'
export { exportSuppressions, type ImportReport, importSuppressions } from './list-file.ts'
export { isOptOut } from './opt-out.ts'
export { listSuppressions } from './stored-entries.ts'

/** The known names of a person. */
export interface Identity {
  readonly id?: string | null
  readonly username?: string | null
  readonly phone?: string | null
}

/**
 * Whether this person is on the list, under any name they have or had while an entry stood, whichever account saw it. Throws if
 * the list cannot be read, so that nothing is sent.
 */
export async function findSuppressed(
  db: Db,
  { workspace_id, account_id }: AccountKey,
  identity: Identity,
): Promise<boolean> {
  const asked = { account_id, id: identity.id ?? null, names: namesOf(identity) }
  return (await listSuppressed(db, workspace_id, [asked])).size > 0
}

/** Refuses a person on the list, also by a name that only a tombstone knows. Says so if they were erased. */
export async function requireUnlisted(
  app: Pick<App, 'db' | 'secrets'>,
  { workspace_id, account_id }: AccountKey,
  identity: Identity,
): Promise<void> {
  const known = namesOf(identity)
  const tombstones = tombstonesOf(app, workspace_id, known)
  const id = identity.id ?? null
  const names = [...known, ...tombstones] // guard: tombstones are asked about
  if ((await listSuppressed(app.db, workspace_id, [{ account_id, id, names }])).size === 0) return
  const erased = await wasErased(app.db, { workspace_id, account_id }, { number: id, tombstones })
  throw new ApiError('identity_suppressed', erased ? { detail: erasedSentence } : {})
}

/** Throws if the list cannot be read, so that nothing is sent. */
export async function requireList(db: Db): Promise<void> {
  try {
    await db.run(sql`select from suppressions limit 0`)
  } catch (cause) {
    throw new ApiError('suppression_unavailable', { cause })
  }
}

/** A person as the list is asked about them. */
export interface AskedPerson {
  /** An account on their platform. */
  readonly account_id: string
  /** Their number on the platform; null: only names are known. */
  readonly id: string | null
  /** Each as `kind:value`, in the list's form. */
  readonly names: readonly string[]
}

/** Every name of this person, as `kind:value` in the list's form. */
export function namesOf({ id, username, phone }: Identity): string[] {
  const digits = listedDigits(phone ?? '')
  return [
    ...(id ? [`platform_id:${id}`] : []),
    ...(username ? [`username:${username.toLowerCase()}`] : []), // guard: usernames of the list have no case
    ...(digits === undefined ? [] : [`phone:${digits}`]),
  ]
}

/** Which of these people are on the list. */
export async function listSuppressed<Asked extends AskedPerson>(
  db: Db,
  workspace_id: string,
  people: readonly Asked[],
): Promise<ReadonlySet<Asked>> {
  const person = {
    account_id: sql`g.account_id`,
    number: sql`g.id`,
    names: sql`string_to_array(g.names, ' ')`,
  }
  try {
    const rows = await db.rows<{ place: number }>(sql`
      select place::int from ${given(people, {
        account_id: ['text', ({ account_id }) => account_id],
        id: ['bigint', ({ id }) => id],
        names: ['text', ({ names }) => names.join(' ')],
        place: 'ordinality',
      })} as g
      where ${isListed(sql`${workspace_id}::uuid`, person)}`)
    return new Set(rows.flatMap(({ place }) => people[place - 1] ?? []))
  } catch (cause) {
    throw new ApiError('suppression_unavailable', { cause })
  }
}

/** A person in a statement: their number on the account's platform, or null, and names as `kind:value` in the list's form. */
interface PersonColumns {
  readonly account_id: Sql
  readonly number: Sql
  readonly names: Sql
}

/** Whether a person is on the list: the one question, asked by everything that writes first. */
export function isListed(workspace_id: Sql, { account_id, number, names }: PersonColumns): Sql {
  return sql`is_listed(${workspace_id}, ${account_id}, ${number}, ${names})`
}

/** A phone number in the list's form. */
export const listedPhone = (phone: Sql): Sql => sql`phone_digits(${phone})`

/**
 * The re-check at the boundary for an operation in a private chat, whose row is `o`. Adding to the list waits for crossings
 * in flight, and crossings that start meanwhile check again: once an entry has committed, nothing crosses to that person.
 */
export const forbiddenBySuppression: Sql = sql`forbidden_by_suppression(o.workspace_id, o.account_id, o.chat_id)`

/** One of the kinds, named by its property. */
type GivenEntry = { readonly [K in Kind]?: string | undefined }

export async function addSuppression(
  app: App,
  actor: Actor,
  { workspace_id, ...given }: GivenEntry & { workspace_id: string },
): Promise<Entry & { added: boolean }> {
  const entry = requireEntry(given)
  const added = await app.db.transaction(async (tx) => {
    const rows = await insertEntries(tx, workspace_id, [{ ...entry, evidence: {} }], 'operator')
    if (rows > 0) await note(app, tx, actor, { workspace_id, action: 'added', entry })
    return rows > 0
  })
  return { ...entry, added }
}

/** Removes opt-outs as well; the audit log records who did it, and the reason if there is one. */
export async function removeSuppression(
  app: App,
  actor: Actor,
  { workspace_id, reason, ...given }: GivenEntry & { workspace_id: string; reason?: string | undefined },
): Promise<Entry & { removed: boolean; people: readonly TiedPerson[] }> {
  const entry = requireEntry(given)
  return app.db.transaction(async (tx) => {
    const row = await tx.maybe<Pick<Suppression, 'source'> & { people: TiedPerson[] }>(sql`
      delete from suppressions s
      where s.workspace_id = ${workspace_id} and s.kind = ${entry.kind} and s.value = ${entry.value}
      returning s.source, ${peopleUnder(entryColumns)} as people`)
    if (row) {
      const { source } = row
      const detail = { source, ...(reason !== undefined && { reason }) } // guard: the reason of a removal
      await note(app, tx, actor, { workspace_id, action: 'removed', entry, detail })
    }
    return { ...entry, removed: row !== undefined, people: row?.people ?? [] }
  })
}

function requireEntry(given: GivenEntry): Entry {
  const named = kinds.filter((kind) => given[kind] !== undefined)
  const [kind, another] = named
  if (kind === undefined || another !== undefined) {
    throw new ApiError('invalid_request', {
      detail: 'Give exactly one of platform_id, username and phone.',
      missing: 'identity',
    })
  }
  const entry = toEntry(kind, given[kind] ?? '')
  if (typeof entry === 'string') throw new ApiError('invalid_request', { detail: entry })
  return entry
}

/** The audit log gets no phone numbers and no names: only the kind, and the value if it is an id. */
function note(
  app: App,
  tx: Tx,
  actor: Actor,
  {
    workspace_id,
    action,
    entry: { kind, value },
    detail = {},
  }: { workspace_id: string; action: string; entry: Entry; detail?: object },
): Promise<void> {
  const target = kind === 'platform_id' ? value : kind
  return record(app, tx, actor, {
    action: `suppression.${action}`,
    target,
    workspace_id,
    detail: { kind, ...detail },
  })
}

/** A message from the other side of a private chat. */
interface IncomingMessage {
  readonly chat_id: ChatNumber
  readonly message: Message
  /** A live message. One from history may be older than anything that Parley did. */
  readonly announce: boolean
}

/**
 * Adds everyone who asks to stop, with the message as evidence. A second request keeps the first evidence. A message from
 * history counts only if this workspace had written to the person before it: earlier requests are for people to judge.
 */
export function noteOptOuts(
  app: App,
  tx: Tx,
  { account_id, workspace_id }: AccountKey,
  incoming: readonly IncomingMessage[],
): void {
  const asked = incoming.filter(({ message }) => isOptOut(app.config.opt_out_words, message.text))
  if (asked.length === 0) return
  const evidenceOf = ({ chat_id, message }: IncomingMessage) => ({
    account_id,
    chat_id: chatIdOf(chat_id),
    message_id: message.id,
    text: message.text,
    timestamp: message.timestamp,
  })
  tx.atCommit(sql`
    with asked as materialized ${given(asked, {
      value: ['text', ({ chat_id, message }) => message.sender_id ?? chat_id],
      evidence: ['jsonb', evidenceOf],
      chat_id: 'bigint',
      at: ['timestamptz', ({ message }) => message.timestamp],
      live: ['boolean', ({ announce }) => announce],
      place: 'ordinality',
    })},
    written as materialized (
      select chat_id, ${firstWrittenAt(workspace_id, sql`chats.chat_id`)} as at
      from (select distinct chat_id from asked where not live) chats)
    insert into suppressions (workspace_id, kind, value, source, evidence)
    select ${workspace_id}, 'platform_id', value, 'opt_out', evidence from asked left join written using (chat_id)
    where asked.live
      or written.at <= asked.at -- guard: history asks to stop after a message of ours
    order by value, place
    on conflict do nothing`)
  lockList(tx, workspace_id)
  tx.afterCommit(() => app.wake.mark({ workspace_id, kind: 'suppressions' })) // guard: a request to stop marks the list
}

/**
 * When an account of the workspace first wrote to a person: by its messages, and by campaign messages, of which one in
 * flight or unknown counts from its crossing. Platforms report whole seconds.
 */
const firstWrittenAt = (workspace_id: string, chat_id: Sql): Sql => sql`least(
  (select min(m.sent_at) from accounts a
    join messages m on m.account_id = a.id and m.chat_id = ${chat_id} and m.is_sender and m.random_id is not null
    where a.workspace_id = ${workspace_id}), -- guard: written by what was sent
  (select min(date_trunc('second', coalesce((o.reply_body ->> 'timestamp')::timestamptz, o.crossed_at))) from accounts a
    join campaign_recipients r on r.account_id = a.id and r.chat_id = ${chat_id}
    join operations o on o.recipient_id = r.id and o.state in ('completed', 'submitting', 'ambiguous')
    where a.workspace_id = ${workspace_id}) -- guard: written by a campaign
  )`
