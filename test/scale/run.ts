/**
 * Several machines' worth of processes on one: a PostgreSQL, three `serve`, three `work`, a balancer that follows `/readyz`, and
 * load that does not wait. Every process is restarted, one worker stopped and one killed, a key revoked and a gate closed, and the
 * database replaced by a standby that is behind. No request may fail in a rolling restart, and nothing is ever sent twice.
 *
 *   npm run test:scale [-- --minutes 1.5 --seed 7 --rate 20] [--bug NAME]
 *
 * `--minutes` is how long the load goes on at least. `--bug` gives every process one of the deliberate bugs below, which this must
 * notice: then exit 0 means that it did. Exit 1: a promise was broken.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { judge } from '../faults/oracle.ts'
import type { Patch } from '../faults/patch.ts'
import { openPlant, type Plant } from '../faults/plant.ts'
import { makeRandom } from '../faults/random.ts'
import { say } from '../faults/report.ts'
import { signIn } from '../harness/person.ts'
import { endProcesses } from '../harness/process.ts'
import {
  Broken,
  changeAccess,
  countLimit,
  type Figures,
  failOver,
  killWorker,
  newKey,
  rollingRestart,
  spread,
  stopWorker,
} from './acts.ts'
import { Balancer } from './balancer.ts'
import { Driver } from './driver.ts'

const keyCount = 40
/** What each key may ask in a minute. */
const limit = 120
/** Shortened, as is the takeover time of Telegram's accounts. */
const takeoverSeconds = 12
const behindMs = 5_000

interface Bug {
  readonly patches?: readonly Patch[]
  readonly workPatches?: readonly Patch[]
}

const bugs: Readonly<Record<string, Bug>> = {
  'limit per process': {
    patches: [
      {
        marker: 'limit: counted for all processes',
        replace: 'take: (caller, rule) => takeIn(db, { caller: String(process.pid).concat(caller), rule }),',
      },
    ],
  },
  'hand-over refuses': {
    workPatches: [
      { marker: 'guard: a claim hands over', replace: '' },
      { marker: 'guard: a release hands over', replace: 'handed_over_at = handed_over_at' },
    ],
  },
  'no restore guard': {
    workPatches: [
      { marker: 'guard: owing before the database is asked', replace: 'return' },
      { marker: 'guard: marks are compared', replace: '' },
    ],
  },
}
const takeover = { marker: 'limit: takeover', replace: `takeoverSeconds: ${takeoverSeconds},` }

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1.5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    rate: { type: 'string', default: '20' },
    bug: { type: 'string' },
  },
})

async function main(): Promise<number> {
  const begunAt = performance.now()
  const { bug, seed, rate } = values
  const deliberate = bug === undefined ? {} : bugs[bug]
  if (!deliberate) throw new Error(`There is no bug ${bug}; there are ${Object.keys(bugs).join(', ')}.`)
  say(`seed ${seed}: 3 serve, 3 work, ${rate} requests a second${bug ? `, with the bug ${bug}` : ''}`)
  const plant = await openPlant({
    ...{ serves: 3, works: 3, accounts: 28, telegramAccounts: 4, people: 3 },
    env: {
      PARLEY_RATE_LIMIT: String(limit),
      PARLEY_DRAIN_SECONDS: '2',
      PARLEY_PACING_SECONDS: '1',
    },
    patches: deliberate.patches ?? [],
    workPatches: [takeover, ...(deliberate.workPatches ?? [])],
  })
  const end = () => void plant.close().finally(() => process.exit(130))
  process.once('SIGINT', end).once('SIGTERM', end)
  say('the plant is up')
  try {
    const broken = await run(plant, begunAt)
    say(
      `seed ${seed}: ${broken.length} promises broken, ${Math.round((performance.now() - begunAt) / 1_000)} s`,
    )
    return broken.length > 0 === (bug !== undefined) ? 0 : 1
  } finally {
    await plant.close()
    await endProcesses()
  }
}

async function run(plant: Plant, begunAt: number): Promise<string[]> {
  const random = makeRandom(Number(values.seed))
  const balancer = await Balancer.open(() => plant.urls)
  const { url } = balancer
  const keys = await Promise.all(Array.from({ length: keyCount }, (_, n) => newKey(plant, `scale ${n}`)))
  const cookie = await signIn({ app: await plant.openApp() }, plant.tenant.user_id)
  const driver = new Driver(plant, {
    ...{ url, cookie, random, rate: Number(values.rate) },
    keys: keys.map(({ key }) => key),
  })
  const broken: string[] = []
  const act = async (name: string, work: () => Promise<Figures>) => {
    await driver.phase(name)
    const figures = await work().catch((error: unknown) => {
      if (!(error instanceof Broken)) throw error
      broken.push(`${name}: ${error.message}`)
      say(`BROKEN ${name}: ${error.message}`)
      return {}
    })
    say(`${name}: ${JSON.stringify(figures)}`)
  }
  driver.start()
  await act('rolling restart', () => rollingRestart(plant))
  await act('a worker stopped', () => stopWorker(plant))
  await act('accounts spread', () => spread(plant))
  await act('access changed', () => changeAccess(plant))
  await act('one limit', () => countLimit(plant, url, limit))
  await driver.phase('nothing')
  await sleep(Math.max(0, begunAt + Number(values.minutes) * 60_000 - performance.now()))
  await act('a worker killed', () => killWorker(plant, takeoverSeconds * 1_000))
  await act('failover', () => failOver(plant, behindMs))
  await driver.stop()
  const found = await conclude(plant, driver)
  await balancer.close()
  return [...broken, ...found]
}

/** In these no request may fail, whatever happens to the processes. */
const undisturbed = [
  'rolling restart',
  'a worker stopped',
  'accounts spread',
  'access changed',
  'one limit',
  'nothing',
]

async function conclude(plant: Plant, driver: Driver): Promise<string[]> {
  const broken: string[] = []
  const note = (line: string) => {
    broken.push(line)
    say(`BROKEN ${line}`)
  }
  for (const [name, { requests, failures }] of driver.tallies) {
    const kinds = Map.groupBy(failures, ({ what, status, code }) => `${what.split('?')[0]} ${status} ${code}`)
    const list = [...kinds].map(([kind, all]) => `${all.length} × ${kind}`).join(', ')
    say(`${name}: ${requests} requests, ${failures.length} failed${list && ` (${list})`}`)
    if (undisturbed.includes(name) && failures.length > 0) note(`${name}: ${list}`)
  }
  say(`live stream: ${JSON.stringify(driver.stream)}; ${driver.skipped} requests not made`)
  await plant.settled()
  const accepted = new Set(driver.history.filter(({ status }) => status === 200).map(({ key }) => key))
  const answers = await driver.repeat()
  await plant.settled()
  const allowed = ['200 null', '409 outcome_ambiguous']
  // One that was refused before is asked for the first time: its account may still be connecting.
  const repeated = answers.filter(({ key }) => accepted.has(key))
  const other = repeated.filter(({ status, code }) => !allowed.includes(`${status} ${code}`))
  for (const { key, status, code } of other.slice(0, 20)) note(`${key} repeated: ${status} ${code}`)
  const evidence = { ...(await plant.evidence(driver.history)), restored: true, startsUnseen: true }
  const violations = judge(evidence)
  say(
    `${evidence.journal.length} messages accepted, ${repeated.length} sends repeated, ${violations.length} violations`,
  )
  for (const violation of violations.slice(0, 20)) note(JSON.stringify(violation))
  return broken
}

process.exitCode = await main()
process.exit()
