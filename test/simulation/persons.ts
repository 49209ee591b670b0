/**
 * Who is who in a story, by what the platform shows: who has had which name when, and whom an entry of the suppression list
 * stops. It reads nothing that the product has concluded about people, only what its accounts have stored in their address books.
 */
import { type Database, sql } from '../../src/db/sql.ts'
import type { World } from '../../src/platform/sandbox/world.ts'
import type { Identifier } from '../../src/rules/identifier.ts'

const hourMs = 3_600_000

/** A person who has or had a name. */
interface Owner {
  readonly person_id: number
  readonly from: number
  to: number | null
}

/** A name of an entry that an account has stored for a person. */
export interface StoredName {
  readonly person_id: string
  readonly name: string
}

/** A first message to a contact that was given by name. */
interface FirstMessage {
  readonly account_id: string
  readonly contact: string
  readonly chat_id: string
}

export class Persons {
  readonly #world: World
  readonly #now: () => Date
  /** By `kind:value`, in the order of time. */
  readonly #owners = new Map<string, Owner[]>()
  /** People on the list: tied once, they stay tied. */
  readonly #tied = new Set<number>()
  /** The last look-up of each account that no crossing has followed. */
  readonly #lookUps = new Map<string, { readonly name: string; readonly at: number }>()

  constructor(world: World, now: () => Date) {
    this.#world = world
    this.#now = now
  }

  get tied(): ReadonlySet<number> {
    return this.#tied
  }

  /** The names that somebody has at this moment. */
  names(person_id: number): string[] {
    const person = this.#world.state.people.get(person_id)
    if (!person) return []
    const { username, phone } = person
    return [
      ...(username === null ? [] : [`username:${username.toLowerCase()}`]),
      ...(phone === null ? [] : [`phone:${phone.replace(/\D/g, '')}`]),
    ]
  }

  /** Call it after every change of people. */
  note(): void {
    const now = this.#now().getTime()
    const present = new Map(
      [...this.#world.state.people.keys()].flatMap((id) => this.names(id).map((name) => [name, id] as const)),
    )
    for (const [name, owners] of this.#owners) {
      const last = owners.at(-1)
      if (last && last.to === null && present.get(name) !== last.person_id) last.to = now
    }
    for (const [name, person_id] of present) {
      const owners = this.#owners.get(name) ?? []
      if (owners.at(-1)?.to === null) continue
      owners.push({ person_id, from: now, to: null })
      this.#owners.set(name, owners)
    }
  }

  /** An account asks who has a name. */
  lookedUp(account_id: string, { kind, value }: Identifier): void {
    const name = `${kind}:${kind === 'phone' ? value.replace(/\D/g, '') : value.toLowerCase()}`
    this.#lookUps.set(account_id, { name, at: this.#now().getTime() })
  }

  /** Ties everybody for whom an account has stored a listed name that they have at this moment. */
  tie(stored: readonly StoredName[]): void {
    for (const { person_id, name } of stored) {
      if (this.names(Number(person_id)).includes(name)) this.#tied.add(Number(person_id))
    }
  }

  /** The database has gone back to when only these were tied. */
  forget(then: ReadonlySet<number>): void {
    for (const person_id of this.#tied) if (!then.has(person_id)) this.#tied.delete(person_id)
    this.#lookUps.clear()
  }

  /**
   * The person had the name within the last hour, or since the account asked for this very message: what changes between a
   * look-up and its crossing, nobody can know.
   */
  isOwner({ account_id, contact, chat_id }: FirstMessage): boolean {
    const now = this.#now().getTime()
    const asked = this.#lookUps.get(account_id)
    const since = Math.min(now - hourMs, asked?.name === contact ? asked.at : now)
    return (this.#owners.get(contact) ?? []).some(
      ({ person_id, to }) => String(person_id) === chat_id && (to === null || to >= since),
    )
  }

  /** The account's look-up has been used. */
  crossed(account_id: string): void {
    this.#lookUps.delete(account_id)
  }
}

/** Names on the list that an account has stored for somebody. */
export const storedNames = sql`
  (select coalesce(json_agg(distinct jsonb_build_object('person_id', c.provider_id::text, 'name', s.kind || ':' || s.value)),
    '[]') from contacts c join suppressions s on s.workspace_id = c.workspace_id
    and ((s.kind = 'username' and lower(c.username) = s.value) or (s.kind = 'phone' and phone_digits(c.phone) = s.value)))`

interface CrossedTo extends FirstMessage {
  readonly kind: string
  readonly step_no: number
  /** The person wrote to an account of the workspace after the first message of this sequence. */
  readonly answered: boolean
}

function readCrossed(db: Database, ids: readonly string[]): Promise<CrossedTo[]> {
  return db.rows<CrossedTo>(sql`
    select o.account_id, o.chat_id::text, o.step_no, k.kind, r.contact,
      o.step_no > 0 and exists (
        select from operations first join messages m on m.workspace_id = o.workspace_id and m.chat_id = o.chat_id
          and not m.is_sender and m.sent_at > (first.reply_body ->> 'timestamp')::timestamptz
        where first.recipient_id = o.recipient_id and first.step_no = 0) as answered
    from operations o join campaign_recipients r on r.id = o.recipient_id join campaigns k on k.id = r.campaign_id
    where o.id = any(${ids}::uuid[]) and o.proof_message_id is null`)
}

/** Whether the messages that crossed in the last step were for these people. */
export async function wrongPersons(
  db: Database,
  persons: Persons,
  ids: readonly string[],
): Promise<string[]> {
  if (ids.length === 0) return []
  const rows = await readCrossed(db, ids)
  const wrong = rows.flatMap((row) => [...wrongPerson(persons, row)])
  for (const { account_id } of rows) persons.crossed(account_id)
  return wrong
}

function* wrongPerson(persons: Persons, row: CrossedTo): Generator<string> {
  if (persons.tied.has(Number(row.chat_id))) yield 'person: crossed to somebody who is listed under a name'
  if (row.answered) yield 'person: crossed to somebody who had answered an account of the workspace'
  const byName = row.kind === 'contacts' && row.step_no === 0 && !row.contact.startsWith('platform_id:')
  if (byName && !persons.isOwner(row)) yield `person: the first message went to another than ${row.contact}`
}

/**
 * Whether somebody gets nothing because of a message that nobody got: another recipient of the campaign has, or may have, written to the
 * person of those that have just ended as duplicates.
 */
export async function wrongDuplicates(db: Database, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return []
  const rows = await db.rows(sql`
    select r.id from campaign_recipients r left join people p on p.id = r.person_id
    where r.id = any(${ids}::uuid[]) and not exists (
      select from operations o where o.campaign_id = r.campaign_id and o.recipient_id <> r.id
        and o.chat_id = coalesce(r.chat_id, p.number) and o.state in ('submitting', 'completed', 'ambiguous'))`)
  return rows.map(() => 'person: ended as a duplicate of nobody who was written to')
}
