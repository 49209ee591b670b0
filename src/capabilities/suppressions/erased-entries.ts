/** What the suppression list has of a person who is erased: their number stays, their names go. */
import { sql, type Tx } from '../../db/sql.ts'
import { heldBy, namesOf } from '../people/people.ts'
import { insertEntries, lockList } from './stored-entries.ts'

interface ErasedPerson {
  readonly id: string
  readonly workspace_id: string
  /** Their number on the platform. */
  readonly number: string
}

/** Puts the person on the list by their number, and waits for crossings: from the commit on nothing crosses to them. */
export async function listErased(tx: Tx, { workspace_id, number }: ErasedPerson): Promise<void> {
  await insertEntries(tx, workspace_id, [{ kind: 'platform_id', value: number, evidence: {} }], 'operator') // guard: an erased person is on the list
}

/**
 * Replaces entries by names of the person with entries by number: theirs, and those of others whom such an entry stops besides. The
 * evidence of a request to stop goes; that they asked stays.
 */
export async function eraseEntries(tx: Tx, { id, workspace_id, number }: ErasedPerson): Promise<void> {
  lockList(tx, workspace_id)
  const held = heldBy({ workspace_id, kind: sql`s.kind`, value: sql`s.value`, created_at: sql`s.created_at` })
  await tx.run(sql`
    with named as materialized (
      select s.kind, s.value, s.source, s.created_at from suppressions s
      where s.workspace_id = ${workspace_id} and (s.kind, s.value) in (select kind, value from (${namesOf(id)}) own)
        and exists (select from (${held}) held where held.id = ${id})
      order by s.kind, s.value for update of s),
    stopped as materialized (
      select distinct on (held.number) held.number::text as value, s.source, s.created_at
      from named s cross join lateral (${held}) held
      where true -- guard: others whom an erased entry stops stay stopped
      order by held.number, s.source <> 'opt_out', s.created_at),
    kept as (
      insert into suppressions (workspace_id, kind, value, source, created_at)
      select ${workspace_id}, 'platform_id', value, source, created_at from stopped order by value
      on conflict do nothing)
    delete from suppressions s using named
    where s.workspace_id = ${workspace_id} and s.kind = named.kind and s.value = named.value`)
  await tx.run(sql`
    update suppressions set evidence = '{}'
    where workspace_id = ${workspace_id} and kind = 'platform_id' and value = ${number} and evidence <> '{}'`)
}
