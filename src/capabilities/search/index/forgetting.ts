/**
 * Takes the words of cleared messages out of the lists. A tombstone hides such a message at once, but its words stay in the lists
 * until a merge: `mergeSegments` makes one when it is due here.
 */
import type { AccountKey } from '../../../contract.ts'
import { given } from '../../../db/given.ts'
import { type Db, type Sql, sql, type Tx } from '../../../db/sql.ts'
import { format } from './segment-writer.ts'

/** Wants a merge of these accounts within this time. One that is due earlier stays due. */
export async function forgetWords(tx: Tx, owners: readonly AccountKey[], seconds: number): Promise<void> {
  await tx.run(sql`
    insert into search_forgetting as f (account_id, workspace_id, due_at)
    select account_id, workspace_id, clock_timestamp() + make_interval(secs => ${seconds})
    from (
      select distinct account_id, workspace_id from ${given(owners, { account_id: 'text', workspace_id: 'uuid' })} as g) g
    order by account_id
    on conflict (account_id) do update set due_at = least(f.due_at, excluded.due_at), turn = f.turn + 1`)
}

/** Whether a merge of the account is due that leaves no word behind. */
export function mustForget(account_id: Sql): Sql {
  return sql`exists (
    select from search_forgetting f where f.account_id = ${account_id} and f.due_at <= clock_timestamp())`
}

/** Deletes the wants of accounts whose lists have no word left that a tombstone hides. */
export async function settleForgetting(db: Db): Promise<void> {
  await db.run(sql`
    delete from search_forgetting f
    using (
      select account_id, workspace_id, turn from search_forgetting r
      where not exists (select from search_stale t where t.account_id = r.account_id)
        and not exists (
          select from search_segments s where s.account_id = r.account_id and s.format <> ${format})) r
    where f.account_id = r.account_id
      and f.turn = r.turn -- guard: what was cleared meanwhile is forgotten too
      and f.workspace_id = r.workspace_id`)
}

/** Whether no list of these accounts has a word of a cleared message. */
export async function areWordsForgotten(db: Db, account_ids: readonly string[]): Promise<boolean> {
  const row = await db.maybe(
    sql`select 1 from search_forgetting where account_id = any(${account_ids}) limit 1`,
  )
  return row === undefined
}
