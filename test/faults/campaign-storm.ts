/**
 * One campaign of contacts on a pool of accounts, on a manual clock, while its workers die and its database goes back in time.
 * This process survives: it moves the clock, kills a worker every three seconds and expires the leases of dead workers, makes the
 * platform misbehave, puts people on the suppression list, and `--rollbacks` times replaces the files of PostgreSQL with a
 * snapshot (`rollbacks.ts`). When every recipient is final, `verify` and the oracles must find nothing: the platform accepted no
 * message twice, under whatever name, and none to a person on the list.
 *
 *   npm run test:campaign-storm -- --seed 7 [--contacts 1000] [--accounts 12] [--works 3] [--rollbacks 3] [--minutes 9]
 *     [--keep] [--patch JSON]
 *
 * Exit 1: a promise was broken, a recipient was not final in time, or the run missed a state that it must reach.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { moveClock } from '../../src/db/domain-clock.ts'
import type { Behaviour } from '../../src/platform/sandbox/people.ts'
import { endProcesses } from '../harness/process.ts'
import { checkListed } from './campaign-oracle.ts'
import { moveTime, type Timeline } from './campaign-time.ts'
import { type CampaignRare, countCampaignRare, judgeAllCampaigns } from './campaign-verdict.ts'
import { nameContacts } from './campaigners.ts'
import { post } from './clients.ts'
import { judge } from './oracle.ts'
import { openPlant, type Plant, type PlantPerson } from './plant.ts'
import { drawFault } from './platform-faults.ts'
import { makeRandom, type Random } from './random.ts'
import { listMissing } from './rare.ts'
import { printOutcomes, printTable, say } from './report.ts'
import { planRollbacks, type RollbackPlan, takeSnapshot } from './rollbacks.ts'
import { briefAnswer, Strikes } from './strikes.ts'
import { Suppressors } from './suppressors.ts'

const killMs = 3_000
/** After each kill, the next call of this many accounts fails. */
const faultsAtOnce = 4
const peopleAtOnce = 20
const lookMs = 300
/** The last rollback starts when the platform has this many messages per contact: most of them, not all. */
const lastRollbackShare = 0.6

const behaviours: readonly (readonly [Behaviour, number])[] = [
  ['silent', 10],
  ['replies', 6],
  ['reads', 2],
  ['stops', 1],
  ['blocks', 1],
]

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
  'suppressed',
]

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    contacts: { type: 'string', default: '1000' },
    accounts: { type: 'string', default: '12' },
    works: { type: 'string', default: '3' },
    rollbacks: { type: 'string', default: '3' },
    minutes: { type: 'string', default: '9' },
    keep: { type: 'boolean', default: false },
    patch: { type: 'string', default: '[]' },
  },
})
const seed = Number(values.seed)

async function main(): Promise<number> {
  const begun = performance.now()
  const { contacts, accounts, works, rollbacks } = values
  say(`seed ${seed}: ${contacts} contacts, ${accounts} accounts, ${works} workers, ${rollbacks} rollbacks`)
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
    const { campaign_id, people } = await createCampaign(plant, random)
    const strikes = new Strikes(plant, random.fork('strikes'))
    const app = await plant.openApp()
    const suppressors = new Suppressors(plant, { app, random: random.fork('suppressors'), people })
    const scene: Scene = {
      ...{ app, strikes, suppressors, random, campaign_id },
      deadline: begun + Number(values.minutes) * 60_000,
      now: new Date(0),
      rollbacks: { left: planRollbacks(random.fork('rollbacks'), Number(values.rollbacks)), forgotten: [] },
    }
    await untilCompleted(plant, scene)
    await strikes.calm()
    return await conclude(plant, scene)
  } finally {
    await plant.close(values)
    await endProcesses()
    say(`${Math.round((performance.now() - begun) / 1000)} s`)
  }
}

/** Adds people whom no account has written to, and one campaign for all of them with a follow-up on the next day. */
async function createCampaign(
  plant: Plant,
  random: Random,
): Promise<{ campaign_id: string; people: readonly PlantPerson[] }> {
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
  return { campaign_id: campaign.id, people }
}

interface Scene extends Timeline {
  readonly strikes: Strikes
  readonly suppressors: Suppressors
  readonly random: Random
  readonly rollbacks: {
    readonly left: RollbackPlan[]
    /** For each finished rollback: how many messages the platform had accepted since the snapshot. */
    readonly forgotten: number[]
    under_way?: boolean
  }
}

/** Keeps killing workers until the campaign is completed or the time is up. */
async function untilCompleted(plant: Plant, scene: Scene): Promise<void> {
  let over = false
  const isOver = () => over
  const working = Promise.all([strike(plant, scene, isOver), tend(scene, isOver)])
  try {
    await moveTime(plant, scene)
  } finally {
    over = true
    await working
    await plant.clearFaults()
  }
}

async function strike(plant: Plant, scene: Scene, isOver: () => boolean): Promise<void> {
  const { strikes, suppressors, random } = scene
  const chance = random.fork('faults')
  while (!isOver()) {
    strikes.killWorker()
    for (let n = 0; n < faultsAtOnce; n++) {
      const account_id = chance.pick(plant.accounts)
      await plant.fault(drawFault(chance, { account_id, kind: 'send' })).catch(() => {})
    }
    await suppressors.add().catch(() => {})
    await goBackWhenDue(plant, scene, isOver)
    await sleep(killMs)
  }
}

/** Does what an operator would do. The database may be down. */
async function tend({ suppressors }: Scene, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await suppressors.look().catch(() => {})
    await sleep(lookMs)
  }
}

/** Spreads the rollbacks over the campaign's messages, so that each one loses some. */
async function goBackWhenDue(plant: Plant, scene: Scene, isOver: () => boolean): Promise<void> {
  const { strikes, suppressors, rollbacks } = scene
  const count = Number(values.rollbacks)
  const nth = count - rollbacks.left.length + 1
  const due = (nth / count) * lastRollbackShare * Number(values.contacts)
  const plan = (await suppressors.readSeq()) >= due && !isOver() ? rollbacks.left.shift() : undefined
  if (!plan) return
  rollbacks.under_way = true
  const snapshot = await takeSnapshot(plant, strikes, plan)
  const taken_seq = await suppressors.readSeq()
  let stopped_seq = taken_seq
  await Promise.all([sleep(plan.age_ms), suppressors.add().catch(() => {})])
  await suppressors.whileAway(() =>
    snapshot.goBack({
      still: async () => {
        stopped_seq = await suppressors.readSeq()
      },
      back: async () => {
        await moveClock(plant.db, scene.now)
        await suppressors.recall(stopped_seq)
      },
    }),
  )
  await snapshot.raise()
  rollbacks.under_way = false
  rollbacks.forgotten.push(stopped_seq - taken_seq)
  const what = `${Math.round(plan.age_ms)} ms, ${plan.journals ? 'with' : 'without'} the journals`
  say(`rollback ${nth}: ${what}, ${stopped_seq - taken_seq} messages since the snapshot`)
}

async function conclude(plant: Plant, { strikes, suppressors, rollbacks }: Scene): Promise<number> {
  const late: string[] = []
  await plant.settled().catch((error: Error) => void late.push(error.message))
  const evidence = { ...(await plant.evidence([])), restored: rollbacks.forgotten.length > 0 }
  const records = { created: new Map(), stops: [], suppressed: [] }
  const { findings, evidence: campaigns } = await judgeAllCampaigns(plant, evidence.journal, records)
  const open = campaigns.recipients.filter(({ ended_at }) => ended_at === null)
  if (open.length > 0) late.push(`${open.length} recipients are not final.`)
  const listed = [...checkListed(suppressors.periods, evidence.journal)]
  const violations = [...judge(evidence), ...findings, ...listed]
  const rare = countCampaignRare(evidence, campaigns)
  printTable('hits', strikes.hits)
  printTable('errors in logs', strikes.listErrors())
  printOutcomes(evidence)
  printTable('messages by day', Object.fromEntries(countDays(campaigns.days)))
  printTable('reached', { ...rare })
  const went = tellRollbacks(rollbacks.forgotten, suppressors)
  const missing = [
    ...listMissing(rare, mustReach),
    ...listMissing(went, ['entries_of_operators', 'entries_of_opt_outs']),
    ...rollbacks.left.map(() => 'a rollback'),
  ]
  for (const violation of violations.slice(0, 50)) say(`VIOLATION ${JSON.stringify(violation)}`)
  for (const line of late) say(line)
  for (const name of missing) say(`NEVER REACHED ${name}`)
  const twice = violations.filter(({ promise }) => promise === 'P1').length
  say(`seed ${seed}: ${twice} messages twice, ${listed.length} to people on the list`)
  say(`seed ${seed}: ${violations.length} violations, ${missing.length} states never reached`)
  return violations.length + missing.length + late.length > 0 ? 1 : 0
}

function tellRollbacks(forgotten: readonly number[], { periods, switchedOn }: Suppressors) {
  const countOf = (source: string) => periods.filter(({ entry }) => entry.source === source).length
  const went = {
    rollbacks: forgotten.length,
    messages_since_pictures: forgotten.reduce((sum, one) => sum + one, 0),
    switched_on_again: switchedOn,
    entries_of_operators: countOf('operator'),
    entries_of_opt_outs: countOf('opt_out'),
    entries_forgotten: periods.filter(({ to_seq }) => to_seq !== null).length,
  }
  printTable('rollbacks and the list', went)
  return went
}

function countDays(days: readonly { readonly day: string; readonly used: number }[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { day, used } of days) sums.set(day, (sums.get(day) ?? 0) + used)
  return sums
}

process.exitCode = await main()
process.exit()
