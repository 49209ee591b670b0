/**
 * One large campaign while its workers die: 5,000 contacts, 20 accounts, 4 workers on a manual clock. This process is spared:
 * it moves the clock, kills a worker every three seconds and ends the leases of the dead, and lets the platform misbehave.
 * When everybody is final, `verify` and the oracles must find nothing, and the platform must have no message twice.
 *
 *   npm run test:campaign-storm -- --seed 7 [--contacts 5000] [--accounts 20] [--works 4] [--minutes 9] [--keep] [--patch JSON]
 *
 * Exit 1: a promise was broken, somebody was not final in time, or no state that was meant to be reached was.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { App } from '../../src/app.ts'
import { loops, messagesDue } from '../../src/capabilities/campaigns/loops.ts'
import { sql } from '../../src/db/sql.ts'
import type { Loop } from '../../src/loop.ts'
import type { Behaviour } from '../../src/platform/sandbox/people.ts'
import { endProcesses } from '../harness/process.ts'
import { type CampaignRare, countCampaignRare, judgeAllCampaigns } from './campaign-verdict.ts'
import { nameContacts } from './campaigners.ts'
import { post } from './clients.ts'
import { judge } from './oracle.ts'
import { openPlant, type Plant, type PlantPerson } from './plant.ts'
import { drawFault } from './platform-faults.ts'
import { makeRandom, type Random } from './random.ts'
import { listMissing } from './rare.ts'
import { say, tellOutcomes, tellTable } from './report.ts'
import { briefAnswer, Strikes } from './strikes.ts'

const killMs = 3_000
/** After each kill the next call of so many accounts goes wrong. */
const faultsAtOnce = 4
/** The clock moves on by at least this much. Accounts write without a gap, so that its stops do not decide how fast they are. */
const stepSeconds = 600
/** What is due is waited for so long. A worker that has just died must not stop the time. */
const dueMsMax = 1_000
const peopleAtOnce = 20

const behaviours: readonly (readonly [Behaviour, number])[] = [
  ['silent', 10],
  ['replies', 6],
  ['reads', 2],
  ['stops', 1],
  ['blocks', 1],
]

/** Nobody is suppressed here: whoever asks to stop counts as having replied. */
const mustReach: readonly (keyof CampaignRare)[] = [
  'ambiguous_by_answer',
  'ambiguous_by_lease',
  'late_upgrade',
  'refused',
  'run_again',
  'completed',
  'replied',
  'failed',
  'followed_up',
]

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    contacts: { type: 'string', default: '5000' },
    accounts: { type: 'string', default: '20' },
    works: { type: 'string', default: '4' },
    minutes: { type: 'string', default: '9' },
    keep: { type: 'boolean', default: false },
    patch: { type: 'string', default: '[]' },
  },
})
const seed = Number(values.seed)

async function main(): Promise<number> {
  const begun = performance.now()
  say(`seed ${seed}: ${values.contacts} contacts, ${values.accounts} accounts, ${values.works} workers`)
  const random = makeRandom(seed)
  const plant = await openPlant({
    clock: 'manual',
    serves: 1,
    works: Number(values.works),
    accounts: Number(values.accounts),
    people: 0,
    env: {
      PARLEY_PACING_SECONDS: '0',
      PARLEY_START_CHAT_PER_MINUTE: '10000',
      PARLEY_START_CHAT_PER_DAY: '10000',
    },
    patches: [briefAnswer, ...JSON.parse(values.patch)],
  })
  const end = () => void plant.close().finally(() => process.exit(130))
  process.once('SIGINT', end).once('SIGTERM', end)
  try {
    say('the plant is up')
    const campaign_id = await createCampaign(plant, random)
    const strikes = new Strikes(plant, random.fork('strikes'))
    const app = await plant.openApp()
    const deadline = begun + Number(values.minutes) * 60_000
    await untilCompleted(plant, { app, strikes, random, campaign_id, deadline })
    await strikes.calm()
    return await conclude(plant, strikes)
  } finally {
    await plant.close(values)
    await endProcesses()
    say(`${Math.round((performance.now() - begun) / 1000)} s`)
  }
}

/** People whom nobody has written to, and one campaign for all of them with a follow-up on the next day. */
async function createCampaign(plant: Plant, random: Random): Promise<string> {
  const left = Array.from({ length: Number(values.contacts) }, () => ({
    behaviour: random.weigh(behaviours),
    delay_seconds: random.between(1, 7_200),
  }))
  const people: PlantPerson[] = []
  const addAll = async () => {
    for (let given = left.pop(); given; given = left.pop()) people.push(await plant.addPerson(given))
  }
  await Promise.all(Array.from({ length: peopleAtOnce }, addAll))
  const key = 'campaign of all'
  const payload = {
    name: key,
    message_text: key,
    contacts: nameContacts(random, people).slice(0, Number(values.contacts)),
    account_pool: plant.accounts,
    daily_quota_per_account: 200,
    steps: [{ branch: 'no_reply', wait_hours: 24, variants: [`${key}, follow-up`] }],
  }
  const { status, body } = await post(plant, { path: '/campaigns', key, payload })
  const { campaign } = (body ?? {}) as { campaign?: { id: string } }
  if (!campaign) throw new Error(`Creating the campaign answered ${status}: ${JSON.stringify(body)}`)
  say('the campaign is created')
  return campaign.id
}

interface Scene {
  readonly app: App
  readonly strikes: Strikes
  readonly random: Random
  readonly campaign_id: string
  /** Of the monotonic clock. */
  readonly deadline: number
}

/** Kills go on for as long as the time does. */
async function untilCompleted(plant: Plant, scene: Scene): Promise<void> {
  let over = false
  const striking = strike(plant, scene, () => over)
  try {
    await moveTime(plant, scene)
  } finally {
    over = true
    await striking
    await plant.clearFaults()
  }
}

async function strike(plant: Plant, { strikes, random }: Scene, isOver: () => boolean): Promise<void> {
  const chance = random.fork('faults')
  while (!isOver()) {
    strikes.killWorker()
    for (let n = 0; n < faultsAtOnce; n++) {
      await plant.fault(drawFault(chance, chance.pick(plant.accounts), 'send')).catch(() => {})
    }
    await sleep(killMs)
  }
}

/** From one moment at which something is due to the next, or on by a step. */
async function moveTime(plant: Plant, { app, campaign_id, deadline }: Scene): Promise<void> {
  const [loop] = loops()
  const { now: begun } = await plant.db.one<{ now: Date }>(sql`select domain_now() as now`)
  let told = performance.now()
  for (let now = begun; performance.now() < deadline; ) {
    const isDone = await untilDone(app, loop)
    const { status, queued, open, next } = await look(plant, campaign_id)
    if (performance.now() - told > 10_000) {
      told = performance.now()
      say(`${now.toISOString()}: ${status}, ${open} recipients are not final, ${queued} of them queued`)
    }
    if (status === 'completed') return
    // Where somebody is due and held, only the accounts' workers know until when: then all of them have to be there.
    const isWhole = isDone && (await plant.countReady()) === plant.accounts.length
    const due = next && next > now ? next : isWhole ? await loop?.nextDueAt?.(app) : null
    now = new Date(Math.max(now.getTime() + stepSeconds * 1000, due?.getTime() ?? 0))
    await plant.moveClock(now)
    app.wake.signal(messagesDue)
  }
}

/** Whether everything that is due has been done. */
async function untilDone(app: App, loop: Loop | undefined): Promise<boolean> {
  const doneBy = performance.now() + dueMsMax
  for (;;) {
    const left = (await loop?.countDue?.(app)) ?? 0
    if (left === 0 || performance.now() > doneBy) return left === 0
    await sleep(100)
  }
}

interface Look {
  readonly status: string
  readonly queued: number
  readonly open: number
  /** When the first of those who are not final is due. */
  readonly next: Date | null
}

function look(plant: Plant, id: string): Promise<Look> {
  return plant.db.one<Look>(sql`
    select k.status, sum(c.queued)::int as queued, sum(c.queued + c.submitting + c.waiting)::int as open,
      (select min(next_action_at) from campaign_recipients where campaign_id = ${id} and ended_at is null) as next
    from campaigns k join campaign_accounts c on c.campaign_id = k.id where k.id = ${id} group by k.id`)
}

async function conclude(plant: Plant, strikes: Strikes): Promise<number> {
  const late: string[] = []
  await plant.settled().catch((error: Error) => void late.push(error.message))
  const evidence = await plant.evidence([])
  const told = { created: new Map(), stops: [], suppressed: [] }
  const { findings, evidence: campaigns } = await judgeAllCampaigns(plant, evidence.journal, told)
  const open = campaigns.recipients.filter(({ ended_at }) => ended_at === null)
  if (open.length > 0) late.push(`${open.length} recipients are not final.`)
  const violations = [...judge(evidence), ...findings]
  const rare = countCampaignRare(evidence, campaigns)
  tellTable('hits', strikes.hits)
  tellTable('errors in logs', strikes.listErrors())
  tellOutcomes(evidence)
  tellTable('messages by day', Object.fromEntries(countDays(campaigns.days)))
  tellTable('reached', { ...rare })
  const missing = listMissing(rare, mustReach)
  for (const violation of violations.slice(0, 50)) say(`VIOLATION ${JSON.stringify(violation)}`)
  for (const line of late) say(line)
  for (const name of missing) say(`NEVER REACHED ${name}`)
  say(`seed ${seed}: ${violations.length} violations, ${missing.length} states never reached`)
  return violations.length + missing.length + late.length > 0 ? 1 : 0
}

function countDays(days: readonly { readonly day: string; readonly used: number }[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { day, used } of days) sums.set(day, (sums.get(day) ?? 0) + used)
  return sums
}

process.exitCode = await main()
process.exit()
