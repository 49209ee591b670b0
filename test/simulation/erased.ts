/** People who are erased in a story: nothing crosses to them from then on, and nothing of them comes back, until they write again. */
import { previewErasure, requestErasure } from '../../src/capabilities/erasing/erasing.ts'
import { listNames } from '../../src/capabilities/people/people.ts'
import { type Database, type Sql, sql } from '../../src/db/sql.ts'
import type { World } from '../../src/platform/sandbox/world.ts'
import type { Place } from './place.ts'

/**
 * People who may be contacted again are left out of what must not cross and of whose texts must be gone, because what crosses to them
 * before they write again keeps its text. With `false` they are judged like all others.
 */
const leavesOutContactable = true

const isJudged = (number: Sql): Sql =>
  leavesOutContactable
    ? sql`not exists (select from erasures x where x.number = ${number} and x.contact_allowed)`
    : sql`true`

interface Crossed {
  readonly id: string
  /** The operation and its attempt. */
  readonly attempt: string
}

interface Begun {
  readonly id: string
  readonly number: string
  readonly contact_allowed: boolean
}

export class Erased {
  readonly #db: Database
  /** Attempts that had crossed to somebody before they were erased. */
  readonly #before = new Set<string>()
  /** Operations that had been attempted when the database went back: they come back as unknown, with another number. */
  readonly #attempted = new Set<string>()
  /** Erasures that had begun then, and whom nothing may reach since. */
  #begun: readonly Begun[] = []
  #sentThen = 0
  /** Whom a name of an erased person meant when they were erased: their numbers. */
  readonly #names = new Map<string, Set<string>>()
  /** What imports have done wrong since the last step. */
  #imported: string[] = []
  #reached: string[] = []

  constructor(db: Database) {
    this.#db = db
  }

  /** Returns what became of it. */
  async erase({ app, tenant, newId }: Place, person_id: number, contact_allowed: boolean): Promise<string> {
    const { workspace_id } = tenant
    const person = await this.#db.maybe<{ id: string; open: boolean }>(sql`
      select p.id, exists (select from erasures e where e.person_id = p.id and e.done_at is null) as open
      from people p where p.workspace_id = ${workspace_id} and p.number = ${String(person_id)}::bigint`)
    if (!person) return 'nobody knows them'
    if (person.open) return 'is being erased'
    const { preview } = await previewErasure(this.#db, workspace_id, person.id)
    const wanted = { workspace_id, person_id: person.id, preview, contact_allowed }
    const own = { ...app, sources: { ...app.sources, newId } }
    for (const name of await listNames(this.#db, person.id)) this.#addName(name, String(person_id))
    this.#addName(`platform_id:${person_id}`, String(person_id))
    await this.#db.transaction((tx) => requestErasure(own, tx, 'system', wanted))
    for (const { attempt } of await this.#listCrossed()) this.#before.add(attempt)
    return 'is erased'
  }

  #addName(name: string, number: string): void {
    this.#names.set(name, (this.#names.get(name) ?? new Set()).add(number))
  }

  /** A campaign was made with these contacts, as `kind:value`. A name that somebody else has by now is theirs. */
  async noteImport({
    taken,
    refused,
  }: {
    taken: readonly string[]
    refused: readonly string[]
  }): Promise<void> {
    const known = new Set(await this.#listRefused())
    for (const contact of taken)
      if (known.has(contact)) this.#imported.push('erased: an import takes a name of theirs')
    if (refused.some((contact) => known.has(contact))) this.#reached.push('an import refused')
  }

  /** Names of erased people that mean nobody else. */
  async #listRefused(): Promise<string[]> {
    const given = [...this.#names].flatMap(([name, numbers]) =>
      [...numbers].map((number) => ({ name, number })),
    )
    const rows = await this.#db.rows<{ name: string }>(sql`
      select g.name from unnest(${given.map(({ name }) => name)}::text[], ${given.map(({ number }) => number)}::bigint[])
        as g (name, number)
      where exists (select from erasures x where x.number = g.number and not x.contact_allowed)
        and not exists (select from person_names n join people p on p.id = n.person_id
          where n.kind || ':' || n.value = g.name and n.until is null and p.number <> g.number)
      order by 1`)
    return rows.map(({ name }) => name)
  }

  /** What people were called when they were erased, as `kind:value`. */
  get names(): string[] {
    return [...this.#names.keys()]
  }

  /** Whether anybody was erased. */
  get any(): boolean {
    return this.#names.size > 0
  }

  /** What has been reached since the last call. */
  takeReached(): string[] {
    return this.#reached.splice(0)
  }

  /** What has crossed to people who are erased and have not written again. */
  #listCrossed(): Promise<Crossed[]> {
    return this.#db.rows<Crossed>(sql`
      select o.id, o.id || ' ' || o.attempt_no as attempt
      from erased_chats e join operations o on o.account_id = e.account_id and o.chat_id = e.chat_id
      where e.from_id is null and o.attempt_no > 0 and o.state <> 'queued' and o.kind <> 'set_read_state'
        and ${isJudged(sql`e.chat_id`)}
      order by 1`)
  }

  /** After every step. */
  async wrong(): Promise<string[]> {
    const crossed = (await this.#listCrossed()).filter(
      ({ id, attempt }) => !this.#before.has(attempt) && !this.#attempted.has(id),
    )
    return [...crossed.map(() => 'erased: crossed to them'), ...this.#imported]
  }

  /** The database goes back to an older copy. An erasure that a worker has begun is on a disk by now. */
  async goBack(sent: number): Promise<void> {
    this.#sentThen = sent
    this.#begun = await this.#db.rows<Begun>(sql`
      select id, number::text, contact_allowed from erasures where step <> 'begin' order by id`)
    const rows = await this.#db.rows<{ id: string }>(sql`select id from operations where attempt_no > 0`)
    for (const { id } of rows) this.#attempted.add(id)
  }

  /** How many erasures the present database would not know without the disks. */
  async countForgotten(): Promise<number> {
    return (await this.#listForgotten()).length
  }

  #listForgotten(): Promise<{ id: string }[]> {
    return this.#db.rows(sql`
      select b.id from unnest(${this.#begun.map(({ id }) => id)}::uuid[]) as b (id)
      where not exists (select from erasures e where e.id = b.id)`)
  }

  /** Whom a message has reached since the database went back, although they were erased and have not written again. */
  async #listReached({ journal }: World['state']): Promise<string[]> {
    const refused = this.#begun.filter((one) => !one.contact_allowed).map(({ number }) => number)
    const again = await this.#db.rows<{ chat_id: string }>(
      sql`select chat_id::text from erased_chats where from_id is not null`,
    )
    const wrote = new Set(again.map(({ chat_id }) => chat_id))
    return journal
      .slice(this.#sentThen)
      .filter(({ kind }) => kind === 'send')
      .map(({ chat_id }) => String(chat_id))
      .filter((chat_id) => refused.includes(chat_id) && !wrote.has(chat_id))
  }

  async isDone(): Promise<boolean> {
    // No search runs in a story, which would drop the words.
    await this.#db.run(sql`delete from search_forgetting`)
    return (await this.#db.maybe(sql`select 1 from erasures where done_at is null`)) === undefined
  }

  /** Once every erasure is done. */
  async wrongAtEnd({ state }: World): Promise<string[]> {
    const forgotten = await this.#listForgotten()
    const reached = await this.#listReached(state)
    const rows = await this.#db.rows<{ what: string }>(sql`
      with gone as (select * from erased_chats where from_id is null)
      select 'a chat' as what from gone g join chats c on c.account_id = g.account_id and c.chat_id = g.chat_id
      union all
      select 'a contact' from gone g join contacts c on c.account_id = g.account_id and c.provider_id = g.chat_id
      union all
      select 'a text' from gone g join messages m on m.account_id = g.account_id and m.chat_id = g.chat_id and m.text <> ''
      union all
      select 'the text of an operation' from gone g join operations o on o.account_id = g.account_id and o.chat_id = g.chat_id
      where o.state in ('completed', 'refused', 'released') and o.cleared_at is null and o.kind <> 'set_read_state'
        and ${isJudged(sql`g.chat_id`)}`)
    return [
      ...forgotten.map(() => 'erased: an older copy has forgotten it'),
      ...reached.map(() => 'erased: got a message after the database had gone back'),
      ...rows.map(({ what }) => `erased: ${what} is back`),
    ]
  }
}
