/** People who are erased in a story: nothing crosses to them from then on, and nothing of them comes back, until they write again. */
import { previewErasure, requestErasure } from '../../src/capabilities/erasing/erasing.ts'
import { type Database, sql } from '../../src/db/sql.ts'
import type { World } from '../../src/platform/sandbox/world.ts'
import type { Place } from './place.ts'

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
    await this.#db.transaction((tx) => requestErasure(own, tx, 'system', wanted))
    for (const { attempt } of await this.#listCrossed()) this.#before.add(attempt)
    return 'is erased'
  }

  /** What has crossed to people who are erased and have not written again. */
  #listCrossed(): Promise<Crossed[]> {
    return this.#db.rows<Crossed>(sql`
      select o.id, o.id || ' ' || o.attempt_no as attempt
      from erased_chats e join operations o on o.account_id = e.account_id and o.chat_id = e.chat_id
      where e.from_id is null and o.attempt_no > 0 and o.state <> 'queued' and o.kind <> 'set_read_state'
        and not exists (select from erasures x where x.number = e.chat_id and x.contact_allowed)
      order by 1`)
  }

  /** After every step. */
  async wrong(): Promise<string[]> {
    const crossed = await this.#listCrossed()
    return crossed
      .filter(({ id, attempt }) => !this.#before.has(attempt) && !this.#attempted.has(id))
      .map(() => 'erased: crossed to them')
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
        and not exists (select from erasures x where x.number = g.chat_id and x.contact_allowed)`)
    return [
      ...forgotten.map(() => 'erased: an older copy has forgotten it'),
      ...reached.map(() => 'erased: got a message after the database had gone back'),
      ...rows.map(({ what }) => `erased: ${what} is back`),
    ]
  }
}
