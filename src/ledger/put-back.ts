/** Puts back from journals what a restored database has forgotten. */
import { given } from '../db/given.ts'
import { type Db, sql, type Tx } from '../db/sql.ts'
import type { CampaignPlace, Operation, OperationKinds, SettledOperation } from '../operation.ts'
import { changeUse, type UseChange } from './account-usage.ts'
import { executable } from './columns.ts'

/** What a journal remembers of an operation. Lines of earlier versions have no campaign. */
export interface JournaledOperation
  extends Partial<CampaignPlace>,
    Pick<Operation, 'id' | 'workspace_id' | 'kind' | 'account_id' | 'chat_id' | 'random_id'> {
  readonly token: string
  readonly key: string | null
  readonly fingerprint: string
}

const knownBatch = 1_000

/** Entries that the database may have forgotten. It knows most by their tokens; after an ordinary restart, all of them. */
export async function listUnknown<T extends JournaledOperation>(
  { db, operations }: { readonly db: Db; readonly operations: OperationKinds },
  entries: readonly T[],
): Promise<T[]> {
  const unknown: T[] = []
  for (let at = 0; at < entries.length; at += knownBatch) {
    const batch = entries.slice(at, at + knownBatch)
    const known = await db.rows<{ token: string }>(sql`
      select g.token from ${given(batch as readonly JournaledOperation[], {
        id: 'uuid',
        token: 'uuid',
        forgettable: ['boolean', ({ kind }) => operations.get(kind)?.forgettable ?? false],
      })} as g
      left join operations o on o.id = g.id
      -- Another token, released: an earlier attempt provably sent nothing, and the database has forgotten this one.
      where o.attempt_token = g.token or o.state in ('completed', 'refused') -- guard: what was released may have been sent since
        or (o.id is null and g.forgettable and g.id <= (select removed_id from instance)) -- guard: what was removed is not forgotten
      `)
    const tokens = new Set(known.map(({ token }) => token))
    unknown.push(...batch.filter(({ token }) => !tokens.has(token)))
  }
  return unknown
}

/**
 * If the database has forgotten the row, or has it as not yet submitted or as an earlier attempt, its outcome is unknown.
 * Puts it back as `ambiguous` with its key and token, so that the outcome the journal records next still applies to it. A
 * repeat may have made another row for the same key meanwhile. False: the database knew the attempt.
 */
export async function putBack(tx: Tx, kinds: OperationKinds, entry: JournaledOperation): Promise<boolean> {
  const kind = kinds.get(entry.kind)
  let known = await findKnown(tx, entry)
  const inserted = known ? undefined : await insertForgotten(tx, entry, kind?.forgettable ?? false)
  // A repeat may have queued its own row between the two statements: that row must not run.
  if (!known && !inserted) known = await findKnown(tx, entry) // guard: a repeat of this moment is put back
  const row = known ? await reopen(tx, entry, known) : inserted
  if (!row) return false
  changeUse(tx, useOf(entry, known))
  await kind?.settled(tx, [row]) // guard: a recipient is put back with its operation
  return true
}

interface KnownRow {
  readonly id: string
  readonly account_id: string
  readonly state: string
  readonly attempt_token: string | null
  readonly quota_day: string | null
  readonly cold: boolean
}

/** An unknown outcome uses the quota of its day, unless the database has counted it already. */
function useOf(entry: JournaledOperation, known: KnownRow | undefined): UseChange[] {
  const { workspace_id } = entry
  const counted = known?.state === 'submitting' || known?.state === 'ambiguous' ? known : undefined
  const use = (by: 1 | -1, row: JournaledOperation | KnownRow | undefined): UseChange[] =>
    row?.quota_day
      ? [{ account_id: row.account_id, workspace_id, day: row.quota_day, cold: row.cold ?? false, by }]
      : []
  return [...use(-1, counted), ...use(1, entry)] // guard: use is put back
}

function findKnown(tx: Tx, entry: JournaledOperation): Promise<KnownRow | undefined> {
  return tx.maybe<KnownRow>(sql`
    select id, account_id, state, attempt_token, quota_day::text, cold from operations where id = ${entry.id}
      or (workspace_id = ${entry.workspace_id} and kind = ${entry.kind} and idempotency_key = ${entry.key}) -- guard: a repeat of the key is put back
      or (recipient_id = ${entry.recipient_id ?? null} and step_no = ${entry.step_no ?? null}) -- guard: another row of the message is put back
    order by id for update`)
}

async function reopen(
  tx: Tx,
  entry: JournaledOperation,
  { id, state, attempt_token }: KnownRow,
): Promise<SettledOperation | undefined> {
  if (state === 'completed' || state === 'refused') return undefined
  // The row already knows this attempt, so its state is newer. Released or queued again means nothing was sent.
  // guard: a known attempt is not put back
  if (attempt_token === entry.token) return undefined
  // The trigger allows no shorter way.
  await tx.run(sql`
    update operations set state = 'submitting' where id = ${id} and state in ('queued', 'released')`)
  return tx.maybe<SettledOperation>(sql`
    update operations o set state = 'ambiguous', reason = 'restored', detail = null, finished_at = domain_now(),
      lease_until = null, attempt_no = attempt_no + 1, attempt_token = ${entry.token},
      public_id = case when id <> ${entry.id} then ${entry.id}::uuid end,
      -- A campaign's message may have gone out through another account of its pool.
      account_id = case when recipient_id is null then account_id else ${entry.account_id} end, -- guard: the account is put back
      chat_id = case when recipient_id is null then chat_id else ${entry.chat_id}::bigint end,
      quota_day = ${entry.quota_day ?? null}::date, cold = ${entry.cold ?? false} -- guard: the day is put back
    where id = ${id} and state in ('submitting', 'ambiguous')
    returning ${executable}, 'submitting' as from_state, o.state, o.reason, o.detail, o.closed_as`)
}

function insertForgotten(
  tx: Tx,
  entry: JournaledOperation,
  forgettable: boolean,
): Promise<SettledOperation | undefined> {
  return tx.maybe<SettledOperation>(sql`
    insert into operations as o (id, workspace_id, kind, effect, idempotency_key, fingerprint, state, reason, account_id,
      chat_id, random_id, attempt_no, attempt_token, finished_at, forgettable, campaign_id, recipient_id, step_no,
      quota_day, cold)
    select ${entry.id}::uuid, ${entry.workspace_id}::uuid, ${entry.kind}, 'platform', ${entry.key},
      decode(${entry.fingerprint}, 'hex'), 'ambiguous', 'restored', ${entry.account_id}, ${entry.chat_id}::bigint,
      ${entry.random_id}::bigint, 1, ${entry.token}::uuid, domain_now(), ${forgettable},
      ${entry.campaign_id ?? null}::uuid, ${entry.recipient_id ?? null}::uuid, ${entry.step_no ?? null}::int,
      ${entry.quota_day ?? null}::date, ${entry.cold ?? false}
    where exists (select from accounts where id = ${entry.account_id} and workspace_id = ${entry.workspace_id})
    on conflict do nothing
    returning ${executable}, 'submitting' as from_state, o.state, o.reason, o.detail, o.closed_as`)
}

interface OpenAttempt extends Operation {
  readonly attempt_token: string
  /** The operation's id in responses. */
  readonly public_id: string
}

/** Attempts with an unknown outcome, by their tokens: a row that was put back may have another id. */
export function listOpen(db: Db, tokens: readonly string[]): Promise<OpenAttempt[]> {
  return db.rows<OpenAttempt>(sql`
    select ${executable}, o.attempt_token, coalesce(o.public_id, o.id) as public_id from operations o
    where o.attempt_token = any(${tokens}::uuid[]) and o.state in ('submitting', 'ambiguous')`)
}
