/** What Parley has of one person: found by any of their names, and read as a whole. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import type { Sql } from '../../db/sql.ts'
import { messageKinds } from '../../ledger/unsent.ts'
import { requirePerson } from './known-person.ts'
import {
  campaignRows,
  chatRows,
  namesOf,
  noteRows,
  type PersonRow,
  sentRows,
  suppressionRows,
  valueRows,
} from './stored-parts.ts'

export { findPeople, readPersonPaging } from './find-people.ts'
export { exportPerson } from './person-export.ts'

/** How many rows of each part a person has at most: their newest. */
export const shownMax = 100

/** Everything but texts of messages, as of one moment. */
export async function readPerson(app: App, { workspace_id }: Pick<Caller, 'workspace_id'>, id: string) {
  const kinds = messageKinds(app.operations)
  return app.db.snapshot(async (db) => {
    const person = await requirePerson(db, workspace_id, id)
    const { platform, number, name, first_seen_at } = person
    const read = (rows: (person: PersonRow, limit: number) => Sql) =>
      db.rows<Record<string, unknown>>(rows(person, shownMax))
    return {
      person: {
        id: person.id,
        platform,
        platform_id: number,
        name,
        first_seen_at,
        names: await read(namesOf),
        chats: await read(chatRows),
        suppressions: await read(suppressionRows),
        campaigns: await read(campaignRows),
        columns: await read(valueRows),
        notes: await read(noteRows),
        sent: await db.rows<Record<string, unknown>>(sentRows(person, { kinds, limit: shownMax })),
      },
    }
  })
}
