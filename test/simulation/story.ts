/**
 * A story of campaigns that a seed decides: who there is, what they are sent, and what people, platforms and operators do
 * meanwhile, on a manual clock. After every act the oracle looks at everything; in the end everybody is final.
 */
import { addSuppression } from '../../src/capabilities/suppressions/suppressions.ts'
import { sql } from '../../src/db/sql.ts'
import { behaviours } from '../../src/platform/sandbox/people.ts'
import { judgeCampaigns } from '../faults/campaign-oracle.ts'
import { makeRandom, type Random } from '../faults/random.ts'
import { readCampaignEvidence } from '../harness/campaign-evidence.ts'
import type { CampaignPlace, NewCampaign, NewStep } from '../harness/campaigns.ts'

const hour = 3_600
const day = 24 * hour
/** Ten people, four messages and a quota of one are forty days; paused and flooded ones come on top. */
const daysMax = 150

export interface Told {
  /** What was done, in order: the same for the same seed. */
  readonly acts: readonly string[]
  readonly violations: readonly string[]
  readonly sent: number
  /** How often each status and each state was reached. */
  readonly reached: Readonly<Record<string, number>>
}

export async function tellStory(place: CampaignPlace, seed: number): Promise<Told> {
  const story = new Story(place, makeRandom(seed))
  await story.begin()
  await story.act()
  await story.end()
  return story.told()
}

class Story {
  readonly #place: CampaignPlace
  readonly #random: Random
  readonly #acts: string[] = []
  readonly #violations: string[] = []
  readonly #campaigns: string[] = []
  readonly #stops: { campaign_id: string; from: Date; to: Date | null }[] = []
  #accounts: string[] = []
  #people: number[] = []

  constructor(place: CampaignPlace, random: Random) {
    this.#place = place
    this.#random = random
  }

  async begin(): Promise<void> {
    const random = this.#random
    await this.#place.fresh()
    for (let n = 0; n <= random.whole(2); n++) this.#accounts.push(await this.#place.account())
    const { world } = this.#place.work.sandbox
    this.#people = Array.from({ length: 3 + random.whole(6) }, () => {
      const behaviour = random.weigh(behaviours.map((one) => [one, one === 'silent' ? 4 : 1] as const))
      const delay_seconds = Math.round(random.between(1, 3 * day))
      const username = `person_${process.hrtime.bigint().toString(36)}`
      return world.addPerson({ name: 'Ada', username, behaviour, delay_seconds }).person_id
    })
    for (let n = 0; n <= random.whole(3); n++) await this.#create()
  }

  async #create(): Promise<void> {
    const random = this.#random
    const kind = random.weigh([['scoped', 5] as const, ['contacts', 3] as const, ['broadcast', 1] as const])
    const branching = kind !== 'broadcast' && random.chance(0.3)
    const branch = () => (branching ? random.pick(['seen', 'unseen'] as const) : ('no_reply' as const))
    const steps = Array.from(
      { length: kind === 'broadcast' ? 0 : random.whole(4) },
      (): NewStep => ({
        branch: branch(),
        wait_hours: random.pick([0.5, 6, 24, 72]),
        variants: ['One', 'Two'],
      }),
    )
    const people = this.#people.filter(() => random.chance(0.6))
    const { now } = await this.#place.db.one<{ now: Date }>(sql`select domain_now() as now`)
    const given: NewCampaign = {
      ...{ kind, branching, steps, quota: 1 + random.whole(4), max_followups: random.whole(4) },
      ...(kind === 'contacts'
        ? {
            pool: this.#accounts,
            contacts: people.map((person_id) => ({ contact: this.#contactOf(person_id) })),
          }
        : { chats: people.map((person_id) => ({ account_id: random.pick(this.#accounts), person_id })) }),
      ...(random.chance(0.3) && { scheduled_at: new Date(now.getTime() + random.whole(2 * day) * 1000) }),
    }
    this.#note(`create ${kind} with ${people.length} people, ${steps.length} steps`)
    if (people.length > 0) this.#campaigns.push(await this.#place.campaign(given))
  }

  #contactOf(person_id: number): string {
    return `platform_id:${person_id}`
  }

  async act(): Promise<void> {
    const random = this.#random
    for (let n = 0; n < 6 + random.whole(10); n++) {
      await this.#one(
        random.weigh([
          ['advance', 8],
          ['pause', 2],
          ['resume', 2],
          ['cancel', 1],
          ['fault', 4],
          ['write', 3],
          ['suppress', 1],
          ['gate', 1],
          ['window', 1],
          ['create', 1],
        ] as const),
      )
      await this.#judge()
    }
  }

  async #one(act: string): Promise<void> {
    const random = this.#random
    const id = this.#campaigns.length > 0 ? random.pick(this.#campaigns) : undefined
    const account_id = random.pick(this.#accounts)
    const person_id = random.pick(this.#people)
    const seconds = random.pick([20, hour, 8 * hour, day, 3 * day])
    switch (act) {
      case 'advance':
        this.#note(`advance ${seconds}`)
        return this.#place.advance(seconds)
      case 'pause':
      case 'resume':
      case 'cancel':
        return this.#control(id, act)
      case 'fault': {
        const fault = random.pick(['refuse', 'flood_wait', 'unavailable', 'drop_after'] as const)
        this.#note(`fault ${fault}`)
        return this.#place.work.fault({
          on: 'send',
          fault,
          seconds: 600,
          times: 1 + random.whole(2),
          account_id,
        })
      }
      case 'write':
        this.#note('write')
        return void this.#place.work.write(account_id, person_id, random.chance(0.2) ? 'stop' : 'Hello')
      case 'suppress': {
        this.#note('suppress')
        const { workspace_id } = this.#place.tenant
        return void (await addSuppression(this.#place.app, 'system', {
          workspace_id,
          platform_id: String(person_id),
        }))
      }
      case 'gate':
        this.#note('gate')
        await this.#place.work.service.shut('campaigns')
        await this.#place.advance(seconds)
        return this.#place.work.service.open('campaigns')
      case 'window':
        return this.#window(random.chance(0.5) ? 'mon-fri 09:00-12:00' : null)
      default:
        return this.#create()
    }
  }

  async #control(id: string | undefined, control: 'pause' | 'resume' | 'cancel'): Promise<void> {
    if (id === undefined) return
    const { now } = await this.#place.db.one<{ now: Date }>(sql`select domain_now() as now`)
    const done = await this.#place.control(id, control).then(
      ({ changed }) => changed,
      () => false,
    )
    this.#note(`${control} ${done}`)
    if (!done) return
    if (control === 'pause') this.#stops.push({ campaign_id: id, from: now, to: null })
    const open = this.#stops.find((stop) => stop.campaign_id === id && stop.to === null)
    if (control !== 'pause' && open) open.to = now
  }

  async #window(window: string | null): Promise<void> {
    this.#note(`window ${window}`)
    const { workspace_id } = this.#place.tenant
    await this.#place.db.run(sql`update workspaces set sending_window = ${window} where id = ${workspace_id}`)
  }

  /** Nothing holds any more: everybody comes to an end. */
  async end(): Promise<void> {
    this.#place.work.sandbox.world.clearFaults()
    await this.#window(null)
    for (const id of this.#campaigns) await this.#control(id, 'resume')
    for (let days = 0; days < daysMax; days += 15) {
      await this.#place.advance(15 * day)
      if (await this.#isOver()) break
    }
    await this.#judge()
    if (!(await this.#isOver()))
      this.#violations.push(`not final after ${daysMax} days: ${await this.#listOpen()}`)
  }

  async #isOver(): Promise<boolean> {
    return (await this.#listOpen()) === ''
  }

  async #listOpen(): Promise<string> {
    const rows = await this.#place.db.rows<{ what: string }>(sql`
      select k.kind || ' ' || k.status || ' ' || r.status as what from campaigns k
      join campaign_recipients r on r.campaign_id = k.id
      where k.id = any(${this.#campaigns}::uuid[]) and (r.status in ('queued', 'submitting', 'waiting')
        or k.status not in ('completed', 'cancelled'))`)
    return rows.map(({ what }) => what).join(', ')
  }

  async #judge(): Promise<void> {
    const { journal } = this.#place.work.sandbox.world.state
    const found = judgeCampaigns(await readCampaignEvidence(this.#place.db, { journal, stops: this.#stops }))
    for (const violation of found)
      this.#violations.push(`after ${this.#acts.at(-1)}: ${JSON.stringify(violation)}`)
  }

  #note(act: string): void {
    this.#acts.push(act)
  }

  async told(): Promise<Told> {
    const rows = await this.#place.db.rows<{ what: string; count: number }>(sql`
      select 'recipient ' || status as what, count(*)::int as count from campaign_recipients
      where campaign_id = any(${this.#campaigns}::uuid[]) group by status
      union all
      select 'operation ' || state, count(*)::int from operations
      where campaign_id = any(${this.#campaigns}::uuid[]) group by state
      union all
      select 'reconciled', count(*)::int from operations
      where campaign_id = any(${this.#campaigns}::uuid[]) and reconciled
      union all
      select 'taken up again', count(*)::int from operations
      where campaign_id = any(${this.#campaigns}::uuid[]) and attempt_no > 1`)
    return {
      acts: this.#acts,
      violations: [...new Set(this.#violations)],
      sent: this.#place.sent().length,
      reached: Object.fromEntries(rows.map(({ what, count }) => [what, count])),
    }
  }
}
