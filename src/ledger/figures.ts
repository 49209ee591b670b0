/** What an operator watches of the ledger. Counting costs little however many operations there are. */
import { type Db, type Sql, sql } from '../db/sql.ts'

/** Counting stops here: an operator with more of them needs no exact figure. */
const countedMax = 10_000

export const ages = ['hour', 'day', 'week', 'older'] as const

export interface LedgerFigures {
  /** Unknown outcomes without a person's note, by how long ago they were requested. */
  readonly ambiguous: Readonly<Record<(typeof ages)[number], number>>
  /** How long the oldest queued operation has waited for a worker; null when none waits. */
  readonly queued_seconds: number | null
  readonly queued: number
}

/** Reads the partial indexes of unsettled rows, and skips the settled ones, which are nearly all. */
export function ledgerFigures(): Sql {
  return sql`
    select json_build_object(
        'hour', count(*) filter (where age < interval '1 hour'),
        'day', count(*) filter (where age >= interval '1 hour' and age < interval '1 day'),
        'week', count(*) filter (where age >= interval '1 day' and age < interval '7 days'),
        'older', count(*) filter (where age >= interval '7 days')) as ambiguous,
      -- Operations that no worker takes are released after at most two minutes, so these are few.
      (select count(*)::int from operations where state = 'queued') as queued,
      (select extract(epoch from domain_now() - min(created_at))::float8 from operations where state = 'queued')
        as queued_seconds
    from (
      select (select domain_now()) - created_at as age from operations where state = 'ambiguous' and closed_as is null
      limit ${countedMax}) a`
}

export function readLedgerFigures(db: Db): Promise<LedgerFigures> {
  return db.one<LedgerFigures>(ledgerFigures())
}

export interface FileFigures {
  readonly files: number
  /** Since the oldest was stored; null when there is none. */
  readonly seconds: number | null
}

/** Files whose bytes are stored: not sent yet, or not deleted yet. */
export function fileFigures(): Sql {
  return sql`
    select count(*)::int as files, extract(epoch from clock_timestamp() - min(stored_at))::float8 as seconds
    from (select stored_at from file_chunks where n = 0 order by stored_at limit ${countedMax}) f`
}

export function readFileFigures(db: Db): Promise<FileFigures> {
  return db.one<FileFigures>(fileFigures())
}
