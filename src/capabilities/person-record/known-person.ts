/** A person of the workspace by their id, with what they are called. */
import { type Db, sql } from '../../db/sql.ts'
import { isUuid } from '../../lib/ids.ts'
import { notFound } from '../../lib/names.ts'
import { calledOf } from '../people/people.ts'
import type { PersonRow } from './stored-parts.ts'

export interface KnownPerson extends PersonRow {
  readonly name: string | null
  readonly first_seen_at: string
}

export async function requirePerson(db: Db, workspace_id: string, id: string): Promise<KnownPerson> {
  const person =
    isUuid(id) &&
    (await db.maybe<KnownPerson>(sql`
      select p.id, p.workspace_id, p.platform, p.number::text, wire_time(p.first_seen_at) as first_seen_at,
        ${calledOf({ workspace_id: sql`p.workspace_id`, platform: sql`p.platform`, number: sql`p.number` })} as name
      from people p
      where p.id = ${id} and p.workspace_id = ${workspace_id} -- guard: people of own workspace
      `))
  if (!person) throw notFound('person', id)
  return person
}
