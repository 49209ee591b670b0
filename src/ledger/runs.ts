/**
 * What the accounts of a pool must know of each other. Any of them may have written to a contact that, as far as the
 * database knows, has had no message. After a start of the database server, or with a new generation, the database may have
 * forgotten some: so an account that was READY then holds the first messages of its pools until it is confirmed. Nowhere
 * else do accounts wait for each other.
 */
import { given } from '../db/given.ts'
import { type Db, type Sql, sql, type Tx } from '../db/sql.ts'
import type { Instance } from './crossing.ts'
import type { HeldLease } from './leases.ts'

/** Records which accounts are READY at the start of the present run, unless another process has done so. */
export async function beginRun(db: Db | Tx): Promise<void> {
  await db.run(sql`select begin_run()`)
}

/** The marks of accounts: the highest count of writes that this process saw committed, by account. */
export type Marks = ReadonlyMap<string, string>

/** Accounts for which the database has forgotten commits that this process saw. */
export async function listBehind(db: Db, marks: Marks): Promise<string[]> {
  if (marks.size === 0) return []
  const rows = await db.rows<{ account_id: string }>(sql`
    select g.account_id from unnest(${[...marks.keys()]}::text[], ${[...marks.values()]}::bigint[]) as g (account_id, writes)
    left join account_hosts h on h.account_id = g.account_id
    where h.account_id is null or h.writes < g.writes order by 1`)
  return rows.map(({ account_id }) => account_id)
}

/**
 * Confirms accounts whose worker, this one, has put its journals back and compared its marks in the present run: every
 * update from the platform is stored, and nothing stored is forgotten. Returns those that are confirmed now; an account
 * that another transaction has locked waits for the next heartbeat.
 */
export async function confirmAccounts(
  db: Db,
  { worker_id, generation, server_run }: Instance,
  accounts: readonly HeldLease[],
): Promise<string[]> {
  const rows = await db.rows<{ account_id: string }>(sql`
    with caught_up as materialized (
      select h.account_id, i.run_no
      from ${given(accounts, {
        account_id: 'text',
        epoch: 'bigint',
        writes: ['bigint', ({ writes }) => writes.seen],
      })} as g
      join account_hosts h on h.account_id = g.account_id cross join instance i
      where i.generation = ${generation}::uuid and server_run() = ${server_run} -- guard: confirmed in the run that was compared
        and h.lease_owner = ${worker_id} and h.lease_epoch = g.epoch -- guard: only its worker confirms an account
        and h.writes >= g.writes -- guard: an account that is behind is not confirmed
        and h.observed_at is not null -- guard: confirmed once caught up
      order by h.account_id for no key update of h skip locked)
    update account_hosts h set confirmed_run = c.run_no from caught_up c where h.account_id = c.account_id
    returning h.account_id`)
  return rows.map(({ account_id }) => account_id)
}

/** An operator who disables an account takes responsibility for what it may have written. */
export async function confirmDisabled(tx: Tx, account_id: string): Promise<void> {
  await beginRun(tx)
  await tx.run(sql`
    update account_hosts set confirmed_run = (select run_no from instance) where account_id = ${account_id}`)
}

/** Whether the account of a row of `account_hosts` is confirmed in the present run. Before the run has begun, none is. */
export const isConfirmed = (host: Sql): Sql =>
  sql`coalesce(${host}.confirmed_run = (
    select run_no from instance where run = generation || ' ' || server_run() -- guard: confirmed in a run that is over
    ), false)`

/** Whether the account holds the first messages of its pools: it was READY when the run began, and is not confirmed. */
export const holdsPools = (host: Sql): Sql =>
  sql`(coalesce(${host}.ready_run = (select run_no from instance), false) and not ${isConfirmed(host)})`

export interface HoldingAccount {
  readonly account_id: string
  readonly workspace_id: string
  readonly status: string
}

/** Accounts for which contacts wait: those of their pools without a message, or their own that no other account may take yet. */
export function listHolding(db: Db): Promise<HoldingAccount[]> {
  return db.rows<HoldingAccount>(sql`
    select a.id as account_id, a.workspace_id, a.status from account_hosts h join accounts a on a.id = h.account_id
    where not ${isConfirmed(sql`h`)} and exists (
      select from campaign_accounts c join campaigns k on k.id = c.campaign_id and k.kind = 'contacts'
        and k.status in ('queued', 'sending')
      where c.account_id = h.account_id and c.pool and (
        ${holdsPools(sql`h`)} and exists (
          select from campaign_accounts q where q.campaign_id = c.campaign_id and q.queued > 0)
        or a.status not in ('CONNECTING', 'READY') and c.queued > 0))
    order by 1`)
}
