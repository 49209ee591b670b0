/** People who are erased in a story: nothing crosses to them from then on, and nothing of them comes back, until they write again. */
import { previewErasure, requestErasure } from '../../src/capabilities/erasing/erasing.ts'
import { type Database, sql } from '../../src/db/sql.ts'
import type { Place } from './place.ts'

interface Crossed {
  /** An operation and its attempt. */
  readonly attempt: string
}

export class Erased {
  readonly #db: Database
  /** Attempts that had crossed to somebody before they were erased. */
  readonly #before = new Set<string>()

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
      select o.id || ' ' || o.attempt_no as attempt
      from erased_chats e join operations o on o.account_id = e.account_id and o.chat_id = e.chat_id
      where e.from_id is null and o.attempt_no > 0 and o.state <> 'queued' and o.kind <> 'set_read_state'
        and not exists (select from erasures x where x.number = e.chat_id and x.contact_allowed)
      order by 1`)
  }

  /** After every step. */
  async wrong(): Promise<string[]> {
    const crossed = await this.#listCrossed()
    return crossed.filter(({ attempt }) => !this.#before.has(attempt)).map(() => 'erased: crossed to them')
  }

  async isDone(): Promise<boolean> {
    // No search runs in a story, which would drop the words.
    await this.#db.run(sql`delete from search_forgetting`)
    return (await this.#db.maybe(sql`select 1 from erasures where done_at is null`)) === undefined
  }

  /** Once every erasure is done. */
  async wrongAtEnd(): Promise<string[]> {
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
    return rows.map(({ what }) => `erased: ${what} is back`)
  }
}
