/** Campaigns on a manual clock in this process: a worker with running loops, people, and rows as creation writes them. */
import { controlCampaign } from '../../src/capabilities/campaigns/control.ts'
import { type Database, sql } from '../../src/db/sql.ts'
import { newId } from '../../src/lib/ids.ts'
import { loops } from '../../src/lists/loops.ts'
import type { NewPerson } from '../../src/platform/sandbox/people.ts'
import { advanceClock } from '../../src/worker/clock.ts'
import { type Running, runLoops } from '../../src/worker/run-loops.ts'
import { assembleWorker, type Worker } from '../../src/worker/worker.ts'
import { type CampaignViolation, judgeCampaigns } from '../faults/campaign-oracle.ts'
import { readCampaignEvidence } from './campaign-evidence.ts'
import { hangMs, until } from './process.ts'
import type { Tenant } from './service.ts'
import { openWorkplace, type Workplace } from './worker.ts'

const morning = new Date('2026-11-02T09:00:00Z')

export interface NewStep {
  readonly branch?: 'no_reply' | 'seen' | 'unseen'
  readonly wait_hours: number
  readonly variants?: readonly string[]
}

export interface NewCampaign {
  readonly kind?: 'scoped' | 'contacts' | 'broadcast'
  readonly message_text?: string
  readonly steps?: readonly NewStep[]
  readonly branching?: boolean
  readonly quota?: number
  readonly max_followups?: number
  readonly stop_on_own_message?: boolean
  readonly scheduled_at?: Date
  /** The recipients by account and person. */
  readonly chats?: readonly { readonly account_id: string; readonly person_id: number }[]
  /** The accounts of a contacts campaign. */
  readonly pool?: readonly string[]
  readonly contacts?: readonly {
    readonly contact: string
    readonly name?: string
    /** The account that was to write to it. */
    readonly account_id?: string
  }[]
  /** Where its ids come from. */
  readonly newId?: () => string
}

interface Recipient {
  readonly id: string
  readonly status: string
  readonly step: number
  readonly reason: string | null
  readonly account_id: string | null
  readonly chat_id: string | null
  readonly next_action_at: Date | null
  readonly version: number
}

/** A workspace with every permission, and what happens in it. */
export class CampaignPlace {
  readonly work: Workplace
  tenant: Tenant
  /** When the present workspace was created; `sent` counts from then. */
  #since = morning
  readonly #accounts = new Set<string>()
  #worker: Worker | undefined
  #running: Running | undefined

  constructor(work: Workplace, tenant: Tenant) {
    this.work = work
    this.tenant = tenant
  }

  get app() {
    return this.work.service.app
  }

  get db() {
    return this.work.db
  }

  /** Switches to a new workspace: `sent` and `judge` ignore the earlier one. */
  async fresh(): Promise<void> {
    const { now } = await this.db.one<{ now: Date }>(sql`select domain_now() as now`)
    this.#since = now
    this.#accounts.clear()
    this.tenant = await this.work.service.tenant()
    await this.work.service.allow(this.tenant)
  }

  async account(): Promise<string> {
    const id = await this.work.connected(this.tenant)
    this.#accounts.add(id)
    return id
  }

  control(id: string, control: 'pause' | 'resume' | 'cancel') {
    return this.db.transaction((tx) => controlCampaign(tx, {}, { id, control }))
  }

  async begin(): Promise<void> {
    const platforms = new Map([['sandbox' as const, this.work.sandbox.platform]])
    this.#worker = await assembleWorker(this.app, { platforms, directory: this.work.directory, loops })
    this.#running = runLoops(this.app, this.#worker.loops)
  }

  /** Moves the clock, doing everything that falls due on the way. */
  async advance(seconds: number): Promise<void> {
    const worker = this.#worker
    if (!worker) throw new Error('There is no worker.')
    await advanceClock(this.app, { platforms: [this.work.sandbox], loops: worker.loops }, seconds)
  }

  /** People who have written to the account, so that it has a chat with each. */
  async people(account_id: string, count: number, given: Partial<NewPerson> = {}): Promise<number[]> {
    const people = Array.from({ length: count }, (_, n) => {
      const { person_id } = this.work.sandbox.world.addPerson({ name: `Person ${n}`, ...given })
      this.work.write(account_id, person_id, 'Hello, who is this?')
      return person_id
    })
    await this.work.untilStored(account_id, count)
    return people
  }

  campaign(given: NewCampaign): Promise<string> {
    return insertCampaign(this.db, this.tenant, given)
  }

  /** The oracle's violations. */
  async judge(): Promise<CampaignViolation[]> {
    const { journal } = this.work.sandbox.world.state
    return judgeCampaigns(await readCampaignEvidence(this.db, { journal }))
  }

  recipients(campaign_id: string): Promise<Recipient[]> {
    return this.db.rows<Recipient>(sql`
      select id, status, step, reason, account_id, chat_id::text, next_action_at, version from campaign_recipients
      where campaign_id = ${campaign_id} order by position`)
  }

  async statuses(campaign_id: string): Promise<string[]> {
    return (await this.recipients(campaign_id)).map(({ status }) => status)
  }

  async status(campaign_id: string): Promise<string> {
    const row = await this.db.one<{ status: string }>(
      sql`select status from campaigns where id = ${campaign_id}`,
    )
    return row.status
  }

  /** What the platform accepted, in order: the person, the text, and the seconds since the workspace was created. */
  sent(): { person: number; text: string; at: number }[] {
    return this.work.sandbox.world.state.journal
      .filter((entry) => entry.kind === 'send' && this.#accounts.has(entry.account_id))
      .map(({ chat_id, text, at }) => ({
        person: Number(chat_id.replace('platform:chat:', '')),
        text: text ?? '',
        at: (Date.parse(at) - this.#since.getTime()) / 1000,
      }))
  }

  until(what: string, is: () => Promise<boolean>): Promise<boolean> {
    return until(what, hangMs, async () => (await is()) || undefined)
  }

  /** Ends its worker. The people and the disk stay. */
  async end(): Promise<void> {
    await this.#running?.stop()
    await this.#worker?.end()
  }

  async close(): Promise<void> {
    await this.end()
    await this.work.close()
  }
}

export async function openCampaigns(env: Readonly<Record<string, string>> = {}): Promise<CampaignPlace> {
  const work = await openWorkplace({ env: { PARLEY_CLOCK: 'manual', ...env }, manual_from: morning })
  await work.db.run(sql`update manual_clock set at = ${morning.toISOString()}::timestamptz`)
  const tenant = await work.service.tenant()
  await work.service.open('all', 'extended')
  await work.service.allow(tenant)
  const place = new CampaignPlace(work, tenant)
  await place.begin()
  return place
}

/** A campaign as creation writes it. */
export async function insertCampaign(
  db: Database,
  { workspace_id, user_id }: Pick<Tenant, 'workspace_id' | 'user_id'>,
  given: NewCampaign,
): Promise<string> {
  const { kind = 'scoped', steps = [], chats = [], contacts = [], pool = [], scheduled_at = null } = given
  const makeId = given.newId ?? newId
  const id = makeId()
  const { now } = await db.one<{ now: Date }>(sql`select domain_now() as now`)
  const due = scheduled_at && scheduled_at > now ? scheduled_at : now
  const rows = [
    ...chats.map(({ account_id, person_id }) => ({
      ...{
        account_id,
        chat_id: person_id,
        contact: `${account_id}:${person_id}`,
        name: `Person ${person_id}`,
      },
    })),
    ...contacts.map(({ contact, name = null, account_id = null }) => ({
      ...{ account_id, chat_id: null, contact, name },
    })),
  ]
  await db.transaction(async (tx) => {
    await tx.run(sql`
      insert into campaigns (id, workspace_id, user_id, kind, status, message_text, branching_enabled,
        daily_quota_per_account, max_followups, scheduled_at, sequence, audience_total,
        stop_on_own_message)
      values (${id}, ${workspace_id}, ${user_id}, ${kind}, ${due > now ? 'scheduled' : 'queued'},
        ${given.message_text ?? 'First message'}, ${given.branching ?? false},
        ${kind === 'broadcast' ? null : (given.quota ?? 30)}, ${given.max_followups ?? 5},
        ${scheduled_at?.toISOString() ?? null}::timestamptz, ${steps.length > 0},
        ${kind === 'broadcast' ? rows.length : null}, ${given.stop_on_own_message ?? false})`)
    for (const [
      position,
      { branch = 'no_reply', wait_hours, variants = [`Step ${position + 1}`] },
    ] of steps.entries()) {
      await tx.run(sql`
        insert into campaign_steps (campaign_id, workspace_id, position, branch, wait_hours, variants)
        values (${id}, ${workspace_id}, ${position}, ${branch}, ${wait_hours}, ${variants}::text[])`)
    }
    for (const account_id of pool) {
      await tx.run(sql`
        insert into campaign_accounts (campaign_id, account_id, workspace_id, pool)
        values (${id}, ${account_id}, ${workspace_id}, true)`)
    }
    await tx.run(sql`
      insert into campaign_recipients (id, campaign_id, workspace_id, account_id, chat_id, contact, name, position,
        next_action_at)
      select id, ${id}, ${workspace_id}, account_id, chat_id, contact, name, n, ${due.toISOString()}::timestamptz
      from unnest(${rows.map(() => makeId())}::uuid[], ${rows.map(({ account_id }) => account_id)}::text[],
        ${rows.map(({ chat_id }) => chat_id)}::bigint[], ${rows.map(({ contact }) => contact)}::text[],
        ${rows.map(({ name }) => name)}::text[]) with ordinality as g (id, account_id, chat_id, contact, name, n)`)
  })
  return id
}
