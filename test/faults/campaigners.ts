/**
 * Realistic callers that run campaigns: they create them with either document under an idempotency key, which they repeat until
 * they get an answer, pause, resume and cancel them, and put people on the suppression list. Their recipients answer, ask to
 * stop, block the account or say nothing.
 *
 *   await shortenWaits(plant.db)                               // an hour between two messages is seconds here
 *   const campaigners = startCampaigners(plant, { app, random, count: 3 })
 *   await campaigners.stop()
 *   await campaigners.finish()                                 // every recipient is final, or held for a stated reason
 *   await judgeAllCampaigns(plant, campaigners)                // campaign-verdict.ts
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '../../src/app.ts'
import { addSuppression } from '../../src/capabilities/suppressions/suppressions.ts'
import { type Database, sql } from '../../src/db/sql.ts'
import type { Behaviour } from '../../src/platform/sandbox/people.ts'
import { presentCampaigns } from '../harness/campaign-evidence.ts'
import { hangMs, until } from '../harness/process.ts'
import { type Answer, post, verdictOn } from './clients.ts'
import type { Plant, PlantPerson } from './plant.ts'
import type { Random } from './random.ts'

/** The accounts that campaigns write from: few, so that each sends several messages during the storm. */
const accountsMax = 12
const attemptsMax = 80
const crowdShare = 0.2
const severalNamesShare = 0.3
/** For campaigns that stand still: on a busy machine the rest may take much longer. */
const stillMsMax = 120_000
const finishMsMax = 1_800_000
/** An hour between two messages takes this many seconds. */
const secondsOfAnHour = 3.6
const behaviours: readonly (readonly [Behaviour, number])[] = [
  ['silent', 5],
  ['replies', 3],
  ['reads', 1],
  ['stops', 1],
  ['blocks', 1],
]

/** Contacts as callers have them: most people once, by any of their names, and some under several names in a row. */
export function nameContacts(random: Random, people: readonly PlantPerson[]): { identifier: string }[] {
  return people.flatMap(({ person_id, username, phone }) => {
    const names = [username, phone, String(person_id)]
    const several = random.chance(severalNamesShare)
    const chosen = random.pick(names)
    const given = several ? names.filter((name) => name !== chosen || random.chance(0.5)) : [chosen]
    return given.map((identifier) => ({ identifier }))
  })
}

/** The shortest allowed wait is too long for a storm, so every wait is stored shorter than asked for. */
export async function shortenWaits(db: Database): Promise<void> {
  await db.pool.query(`
    alter table campaign_steps drop constraint campaign_steps_wait_hours_check;
    create function faults.shorten() returns trigger language plpgsql as $$
    begin
      new.wait_hours := new.wait_hours * ${secondsOfAnHour} / 3600;
      return new;
    end $$;
    create trigger faults_shorten before insert on campaign_steps for each row execute function faults.shorten()`)
}

/** The answers that callers got, and when. */
export interface CampaignRecords {
  /** The campaigns by the keys that created them; their names are the keys. */
  readonly created: ReadonlyMap<string, string>
  /** From the answer to a pause until the first request to resume. */
  readonly stops: readonly { readonly campaign_id: string; readonly from: Date; readonly to: Date | null }[]
  /** People who were on the list by then. */
  readonly suppressed: readonly { readonly person_id: number; readonly at: Date }[]
}

export interface Campaigners extends CampaignRecords {
  /** Every caller finishes its current request and sends no more. */
  stop(): Promise<void>
  /** Resumes what is paused, except some. Rejects with a list if a recipient is neither final nor held. */
  finish(): Promise<void>
}

interface CampaignersOptions {
  readonly app: App
  readonly random: Random
  readonly count: number
  /** Called before a campaign is created: the time to set up faults for its accounts. */
  readonly before?: (account_ids: readonly string[], random: Random) => Promise<void>
}

interface Campaign {
  readonly id: string
  readonly key: string
  readonly people: readonly PlantPerson[]
  readonly sequence: boolean
}

export function startCampaigners(plant: Plant, options: CampaignersOptions): Campaigners {
  const crew = new Crew(plant, options)
  const living = Promise.all(Array.from({ length: options.count }, (_, number) => crew.live(number)))
  return {
    created: crew.created,
    stops: crew.stops,
    suppressed: crew.suppressed,
    async stop() {
      crew.over = true
      await living
    },
    finish: () => crew.finish(),
  }
}

class Crew {
  readonly created = new Map<string, string>()
  readonly stops: { campaign_id: string; from: Date; to: Date | null }[] = []
  readonly suppressed: { person_id: number; at: Date }[] = []
  over = false
  readonly #plant: Plant
  readonly #options: CampaignersOptions

  constructor(plant: Plant, options: CampaignersOptions) {
    this.#plant = plant
    this.#options = options
  }

  /** Runs one campaign after the other. Skips what the storm prevents. */
  async live(number: number): Promise<void> {
    const random = this.#options.random.fork(`campaigner ${number}`)
    for (let n = 0; !this.over; n++) {
      const campaign = await this.#create(random, `campaign ${number}-${n}`).catch(() => undefined)
      if (campaign) await this.#meddle(random, campaign).catch(() => {})
      else await sleep(200)
    }
  }

  async #create(random: Random, key: string): Promise<Campaign | undefined> {
    const plant = this.#plant
    const all = plant.accounts.slice(0, accountsMax)
    const accounts = Array.from({ length: 1 + random.whole(3) }, () => random.pick(all))
    const people = await Promise.all(
      Array.from({ length: 3 + random.whole(6) }, () => this.#addPerson(random)),
    )
    const steps = Array.from({ length: random.whole(3) }, (_, at) => ({
      branch: 'no_reply',
      wait_hours: random.between(0.1, 0.8),
      variants: [`${key}, follow-up ${at + 1}`],
    }))
    const to = random.chance(0.5)
      ? { recipients: await this.#meet(random, accounts, people) }
      : { contacts: nameContacts(random, people), account_pool: accounts }
    const quota = random.chance(0.15) ? 1 + random.whole(60) : 200
    const payload = { name: key, message_text: key, steps, daily_quota_per_account: quota, ...to }
    await this.#options.before?.(accounts, random).catch(() => {})
    const answer = await this.#persist(random, { path: '/campaigns', key, payload })
    const { campaign } = (answer?.body ?? {}) as { campaign?: { id: string } }
    if (!campaign) return undefined
    this.created.set(key, campaign.id)
    return { id: campaign.id, key, people, sequence: steps.length > 0 }
  }

  #addPerson(random: Random): Promise<PlantPerson> {
    const [behaviour, delay_seconds] = [random.weigh(behaviours), random.between(0.1, 3)]
    return this.#plant.addPerson({ behaviour, delay_seconds })
  }

  /** The people write first, so that there is a chat. */
  async #meet(
    random: Random,
    accounts: readonly string[],
    people: readonly PlantPerson[],
  ): Promise<{ account_id: string; chat_id: string }[]> {
    const met = people.map(({ person_id }) => ({ account_id: random.pick(accounts), person_id }))
    for (const one of met) await this.#plant.control('POST', '/messages', { ...one, text: 'Hello' })
    const ids = met.map(({ person_id }) => person_id)
    await until('every chat is known', hangMs, async () => {
      const { count } = await this.#plant.db.one<{ count: number }>(
        sql`select count(*)::int as count from chats where chat_id = any(${ids}::bigint[])`,
      )
      return count === ids.length
    })
    return met.map(({ account_id, person_id }) => ({ account_id, chat_id: `platform:chat:${person_id}` }))
  }

  /** Like a careful caller: repeats the key until there is a definite answer, sometimes on several processes at once. */
  async #persist(
    random: Random,
    request: { path: string; key: string; payload?: object },
    asked: (at: Date) => void = () => {},
  ): Promise<Answer | undefined> {
    const plant = this.#plant
    for (let attempt = 1; attempt <= attemptsMax; attempt++) {
      asked(new Date())
      const crowd = random.chance(crowdShare) ? 2 : 1
      const answers = await Promise.all(
        Array.from({ length: crowd }, () => {
          const { urls, tenant } = plant
          const url = urls.length > 0 ? random.pick(urls) : undefined
          return post(plant, request, { url, api_key: random.pick(tenant.keys) })
        }),
      )
      const done = answers.find((answer) => verdictOn(answer) === 'done')
      if (done) return done
      if (this.over || answers.every((answer) => verdictOn(answer) === 'stop')) return undefined
      await sleep(random.between(50, 500))
    }
    return undefined
  }

  #control(random: Random, { id, key }: Campaign, control: string, asked?: (at: Date) => void) {
    const path = `/campaigns/${id}/${control}`
    return this.#persist(random, { path, key: `${control} ${key}` }, asked)
  }

  async #meddle(random: Random, campaign: Campaign): Promise<void> {
    await sleep(random.between(0, 2_500))
    const act = random.weigh([
      ['nothing', 2],
      [campaign.sequence ? 'pause' : 'suppress', 4],
      ['suppress', 2],
      ['cancel', 2],
    ])
    if (act === 'cancel') await this.#control(random, campaign, 'cancel')
    if (act === 'suppress') await this.#suppress(random, random.pick(campaign.people))
    if (act === 'pause') await this.#pause(random, campaign)
  }

  async #suppress(random: Random, { person_id, username }: PlantPerson): Promise<void> {
    const { workspace_id } = this.#plant.tenant
    const known = random.chance(0.5) ? { platform_id: String(person_id) } : { username }
    await addSuppression(this.#options.app, 'system', { workspace_id, ...known })
    this.suppressed.push({ person_id, at: new Date() })
  }

  async #pause(random: Random, campaign: Campaign): Promise<void> {
    const paused = await this.#control(random, campaign, 'pause')
    if (!paused) return
    const stop = { campaign_id: campaign.id, from: new Date(), to: null as Date | null }
    this.stops.push(stop)
    await sleep(random.between(200, 2_500))
    await this.#control(random, campaign, 'resume', (at) => {
      stop.to ??= at
    })
  }

  async finish(): Promise<void> {
    const random = this.#options.random.fork('finish')
    const paused = await this.#plant.db.rows<{ id: string }>(
      sql`select id from campaigns where status = 'paused' order by id`,
    )
    for (const { id } of paused) {
      if (random.chance(0.1)) continue
      for (const stop of this.stops) if (stop.campaign_id === id) stop.to ??= new Date()
      await this.#persist(random, { path: `/campaigns/${id}/resume`, key: `finish ${id}` })
    }
    let [left, sent, movedAt] = ['', 0, performance.now()]
    await until('every recipient is final or held, or nothing moves', finishMsMax, async () => {
      const open = (await this.#listOpen()).join(', ')
      const { count } = await this.#plant.db.one<{ count: number }>(
        sql`select count(*)::int as count from operations`,
      )
      if (open !== left || count !== sent) movedAt = performance.now()
      left = open
      sent = count
      return left === '' || performance.now() - movedAt > stillMsMax
    })
    if (left !== '') throw new Error(`Recipients that are neither final nor held: ${left}.`)
  }

  /** Only recipients of a paused campaign, or of an account whose daily quota is used up, may wait forever. */
  async #listOpen(): Promise<string[]> {
    const campaigns = await this.#plant.db.rows<{ id: string }>(sql`
      select id from campaigns k where status <> 'paused' and exists (
        select from campaign_recipients r where r.campaign_id = k.id and r.status in ('queued', 'submitting', 'waiting'))`)
    const ids = campaigns.map(({ id }) => id)
    const { shown } = await presentCampaigns(this.#options.app, this.#plant.tenant.workspace_id, ids)
    return shown
      .filter(({ status }) => ['queued', 'submitting', 'waiting'].includes(status))
      .filter(({ blocked_by }) => blocked_by !== 'quota')
      .map(({ id, status, blocked_by }) => `${id} ${status}, ${blocked_by ?? 'due'}`)
  }
}
