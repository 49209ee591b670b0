/** The counters of campaigns, per quarter of an hour and in total, updated with every outcome. */
import { given } from '../../../db/given.ts'
import { sql, type Tx } from '../../../db/sql.ts'

export interface CountChange {
  readonly campaign_id: string
  readonly workspace_id: string
  readonly account_id: string
  /** When it happened. A correction is subtracted at the same time. */
  readonly at: Date
  readonly sent: number
  readonly failed: number
  readonly ambiguous: number
  readonly reached: number
  readonly replied: number
  /** How many of those who replied asked to stop. */
  readonly opted_out: number
}

export function countReply(
  reply: Pick<CountChange, 'campaign_id' | 'workspace_id' | 'account_id' | 'at'> & {
    readonly opted_out: boolean
  },
): CountChange {
  const { campaign_id, workspace_id, account_id, at } = reply
  return {
    ...{ campaign_id, workspace_id, account_id, at },
    ...{ sent: 0, failed: 0, ambiguous: 0, reached: 0 },
    replied: 1,
    opted_out: reply.opted_out ? 1 : 0,
  }
}

/** Runs with COMMIT, in the order that every transaction keeps. */
export function countOutcomes(tx: Tx, changes: readonly CountChange[]): void {
  const real = changes.filter(
    ({ sent, failed, ambiguous, reached, replied }) => sent || failed || ambiguous || reached || replied,
  )
  if (real.length === 0) return
  tx.atCommit(sql`
    insert into campaign_counts as c (workspace_id, at, campaign_id, account_id, sent, failed, ambiguous, reached, replied,
      opted_out)
    select workspace_id, case when grouping(quarter) = 0 then quarter else '-infinity' end, campaign_id, account_id,
      sum(sent), sum(failed), sum(ambiguous), sum(reached), sum(replied), sum(opted_out)
    from (
      select *, date_bin('15 minutes', at, '2000-01-01 00:00Z') as quarter
      from ${given(real, {
        workspace_id: 'uuid',
        campaign_id: 'uuid',
        account_id: 'text',
        at: ['timestamptz', ({ at }) => at.toISOString()],
        sent: 'int',
        failed: 'int',
        ambiguous: 'int',
        reached: 'int',
        replied: 'int',
        opted_out: 'int',
      })} as g) changes
    group by grouping sets ((workspace_id, campaign_id, account_id), (workspace_id, campaign_id, account_id, quarter))
    order by 1, 2, 3, 4
    on conflict (workspace_id, at, campaign_id, account_id) do update set sent = c.sent + excluded.sent,
      failed = c.failed + excluded.failed, ambiguous = c.ambiguous + excluded.ambiguous,
      reached = c.reached + excluded.reached, replied = c.replied + excluded.replied,
      opted_out = c.opted_out + excluded.opted_out`)
}

/** A message of campaign `k` has gone out, even if the loop has not set the campaign's status yet. */
export const hasBegun = sql`exists (
  select from campaign_accounts c where c.campaign_id = k.id
    and c.submitting + c.waiting + c.completed + c.replied + c.ambiguous > 0)`
