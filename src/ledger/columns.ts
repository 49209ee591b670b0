import { sql } from '../db/sql.ts'

/** What the worker needs of a row `o` of `operations` to execute it. */
export const executable = sql`o.id, o.workspace_id, o.account_id, o.kind, o.idempotency_key, o.fingerprint, o.chat_id::text,
  o.payload, o.file_id, o.random_id::text, o.campaign_id, o.recipient_id, o.step_no, o.quota_day::text,
  o.cold`
