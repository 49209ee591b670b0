/** Accounts and operations as the ledger finds them, made by SQL. No worker touches them, only the test. */
import { randomBytes } from 'node:crypto'
import { type Sql, sql } from '../../src/db/sql.ts'
import type { Crossing, Instance } from '../../src/ledger/crossing.ts'
import type { HeldLease } from '../../src/ledger/leases.ts'
import type { QueuedOperation } from '../../src/ledger/queue.ts'
import { readInstance } from '../../src/ledger/restore-counter.ts'
import { newId } from '../../src/lib/ids.ts'
import type { CampaignPlace, State } from '../../src/operation.ts'
import { openService, type Service, type Tenant } from './service.ts'

export interface NewRow {
  readonly kind?: string
  readonly state?: State
  readonly chat_id?: string | null
  readonly token?: string | null
  readonly queued_no?: number
  readonly key?: string | null
  readonly owner?: string | null
  /** Seconds from now; null: no lease. */
  readonly lease?: number | null
  readonly expires?: number
  readonly payload?: unknown
  readonly fingerprint?: Buffer
  /** For a campaign's message. */
  readonly place?: CampaignPlace
}

interface Row {
  readonly state: State
  readonly reason: string | null
  readonly detail: string | null
  readonly attempt_no: number
  readonly attempt_token: string | null
  readonly queued_no: number
  readonly reply_body: unknown
}

export class LedgerRows {
  readonly service: Service
  readonly tenant: Tenant
  /** The worker that holds the accounts. */
  readonly worker_id = newId()

  constructor(service: Service, tenant: Tenant) {
    this.service = service
    this.tenant = tenant
  }

  get app() {
    return this.service.app
  }

  get db() {
    return this.service.app.db
  }

  async instance(): Promise<Instance> {
    const { restore_counter, generation, server_run } = await readInstance(this.db)
    return { worker_id: this.worker_id, restore_counter, generation, server_run }
  }

  /** A new account that may act: leased to us, READY and live. */
  async account(): Promise<HeldLease> {
    const { workspace_id } = this.tenant
    const account_id = await this.service.account(workspace_id)
    await this.db.run(sql`
      insert into account_hosts (account_id, workspace_id, lease_owner, lease_epoch, lease_until, observed_at)
      values (${account_id}, ${workspace_id}, ${this.worker_id}, 3, real_now() + interval '1 hour', real_now())
      on conflict (account_id) do update set lease_owner = excluded.lease_owner, lease_epoch = 3,
        lease_until = excluded.lease_until, observed_at = excluded.observed_at`)
    return { worker_id: this.worker_id, account_id, workspace_id, epoch: '3', writes: { seen: '0' } }
  }

  async operation({ account_id, workspace_id }: HeldLease, row: NewRow = {}): Promise<string> {
    const id = newId()
    const { kind = 'send_message', state = 'queued', chat_id = '42', token = null, queued_no = 1 } = row
    const { key = newId(), owner = null, lease = null, expires = 3_600, fingerprint = Buffer.alloc(32) } = row
    const { place } = row
    const payload = JSON.stringify(row.payload ?? { text: `message ${id}`, file: null })
    await this.db.run(sql`
      insert into operations (id, workspace_id, kind, effect, idempotency_key, fingerprint, state, account_id, chat_id,
        payload, random_id, attempt_token, attempt_no, queued_no, owner, lease_until, expires_at, reply_status,
        reply_body, campaign_id, recipient_id, step_no, quota_day, cold)
      values (${id}, ${workspace_id}, ${kind}, 'platform', ${key}, ${fingerprint}, ${state}, ${account_id},
        ${chat_id}::bigint, ${payload}::jsonb, ${randomBytes(8).readBigInt64BE().toString()}::bigint, ${token},
        ${token === null ? 0 : 1}, ${queued_no}, ${owner}, real_now() + make_interval(secs => ${lease}),
        real_now() + make_interval(secs => ${expires}), ${state === 'completed' ? 200 : null},
        ${state === 'completed' ? '{}' : null}::json, ${place?.campaign_id ?? null}, ${place?.recipient_id ?? null},
        ${place?.step_no ?? null}, ${place?.quota_day ?? null}, ${place?.cold ?? false})`)
    return id
  }

  async crossing(held: HeldLease, row: NewRow = {}): Promise<Crossing> {
    const id = await this.operation(held, row)
    return { id, token: newId(), seen_token: row.token ?? null, held, seconds: 60 }
  }

  /** As a worker reads it from the queue. */
  queued(id: string): Promise<QueuedOperation> {
    return this.db.one<QueuedOperation>(sql`
      select id, workspace_id, account_id, kind, idempotency_key, fingerprint, chat_id::text, payload, file_id,
        random_id::text, queued_no, attempt_token, campaign_id, recipient_id, step_no, quota_day::text, cold
      from operations where id = ${id}`)
  }

  row(id: string): Promise<Row> {
    return this.db.one<Row>(sql`
      select state, reason, detail, attempt_no, attempt_token, queued_no, reply_body from operations where id = ${id}`)
  }

  /** Changes the account's row; `set` is the SQL after `set`. */
  async host({ account_id }: HeldLease, set: Sql): Promise<void> {
    await this.db.run(sql`update account_hosts set ${set} where account_id = ${account_id}`)
  }

  async writes({ account_id }: HeldLease): Promise<string> {
    const { writes } = await this.db.one<{ writes: string }>(
      sql`select writes::text from account_hosts where account_id = ${account_id}`,
    )
    return writes
  }

  /** A stored message of the account that carries the operation's random id. */
  async message({ account_id, workspace_id }: HeldLease, operation_id: string, id: string): Promise<void> {
    await this.db.run(sql`
      insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at, random_id)
      select ${account_id}, 42, ${id}::bigint, ${workspace_id}, 'sent before', true, now(), random_id
      from operations where id = ${operation_id}`)
  }

  close(): Promise<void> {
    return this.service.close()
  }
}

export async function openLedgerRows(): Promise<LedgerRows> {
  const service = await openService()
  return new LedgerRows(service, await service.tenant())
}
