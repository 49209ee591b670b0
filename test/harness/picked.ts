/** Recipients that were picked and are about to cross, on accounts that only the test uses. */

import { controlCampaign } from '../../src/capabilities/campaigns/control.ts'
import { type MessageBoundary, messageBoundary } from '../../src/capabilities/campaigns/running/crossing.ts'
import { chooseDue, listHeads } from '../../src/capabilities/campaigns/running/pick.ts'
import { sql } from '../../src/db/sql.ts'
import type { HeldLease } from '../../src/ledger/leases.ts'
import { newId } from '../../src/lib/ids.ts'
import { insertCampaign, type NewCampaign } from './campaigns.ts'
import { type LedgerRows, openLedgerRows } from './ledger-rows.ts'

export interface PickedRecipient {
  readonly held: HeldLease
  readonly campaign_id: string
  readonly person_id: number
  /** Returns the status of the crossing. */
  cross(): Promise<string>
}

export interface Standing {
  readonly status: string
  readonly operations: number
  readonly used: number
}

export class PickedRows {
  readonly rows: LedgerRows
  #person = 100

  constructor(rows: LedgerRows) {
    this.rows = rows
  }

  async boundary(): Promise<MessageBoundary> {
    const instance = await this.rows.instance()
    return messageBoundary(this.rows.app, { instance: () => instance, behind: () => {} })
  }

  /** A campaign with one recipient, on a new account unless one is given. */
  async picked(given: NewCampaign = {}, held?: HeldLease): Promise<PickedRecipient> {
    const account = held ?? (await this.rows.account())
    const { account_id } = account
    const person_id = this.#person++
    const campaign_id = await insertCampaign(this.rows.db, this.rows.tenant, {
      chats: [{ account_id, person_id }],
      ...given,
    })
    return { held: account, campaign_id, person_id, cross: await this.pick(account, campaign_id) }
  }

  async pick(held: HeldLease, campaign_id: string): Promise<() => Promise<string>> {
    const heads = await listHeads(this.rows.app, this.rows.db, {
      account_ids: [held.account_id],
      avoid: [],
      due: true,
    })
    const own = heads.filter((head) => head.campaign_id === campaign_id)
    const [due] = chooseDue(this.rows.app, own)
    if (!due) throw new Error('Nothing is due.')
    const messages = await this.boundary()
    return async () =>
      (await messages.cross({ id: newId(), wanted: { row: due.row, found: null, gapMs: 15_000 }, held }))
        .status
  }

  stateOf({ held, campaign_id }: PickedRecipient): Promise<Standing> {
    return this.rows.db.one<Standing>(sql`
      select r.status, (select count(*)::int from operations where campaign_id = ${campaign_id}) as operations,
        coalesce((select sum(used)::int from account_days where account_id = ${held.account_id}), 0) as used
      from campaign_recipients r where r.campaign_id = ${campaign_id}`)
  }

  control(id: string, control: 'pause' | 'cancel') {
    return this.rows.db.transaction((tx) => controlCampaign(tx, {}, { id, control }))
  }

  operation({ campaign_id }: PickedRecipient) {
    return this.rows.db.one<{ id: string; attempt_token: string; attempt_no: number }>(
      sql`select id, attempt_token, attempt_no from operations where campaign_id = ${campaign_id}`,
    )
  }

  close(): Promise<void> {
    return this.rows.close()
  }
}

export async function openPickedRows(): Promise<PickedRows> {
  const rows = await openLedgerRows()
  await rows.service.open('all', 'extended')
  await rows.service.allow(rows.tenant)
  return new PickedRows(rows)
}
