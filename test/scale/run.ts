/**
 * Several machines' worth of processes on one: a PostgreSQL, three `serve`, three `work`, a balancer that follows `/readyz`, and
 * load that does not wait. Every process is restarted, one worker stopped and one killed, a key revoked and a gate closed, and the
 * database replaced by a standby that is behind. No request may fail in a rolling restart, and nothing is ever sent twice.
 *
 *   npm run test:scale [-- --minutes 1.5 --seed 7 --rate 20] [--without redis] [--bug NAME]
 *   npm run test:scale -- --from COMMIT [--contacts 1000000 --each 2]
 *
 * `--minutes` is how long the load goes on at least. The processes count limits in Redis and reach PostgreSQL through PgBouncer
 * where those are installed, unless `--without` names one. `--bug` gives every process one of the deliberate bugs below, which this
 * must notice: then exit 0 means that it did. Exit 1: a promise was broken.
 *
 * `--from` starts all six processes with the code of an older commit and upgrades them in the order of docs/upgrading.md, under
 * the same load but for the live stream, and with accounts of the sandbox only. The sandbox is that of this code.
 * With `--contacts` the older release has as many, and the load goes on until the new one has read the people of all of them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { version } from '../../src/lib/version.ts'
import { judge } from '../faults/oracle.ts'
import type { Patch } from '../faults/patch.ts'
import { openPlant, type Plant } from '../faults/plant.ts'
import { makeRandom } from '../faults/random.ts'
import { say } from '../faults/report.ts'
import { signIn } from '../harness/person.ts'
import { endProcesses } from '../harness/process.ts'
import {
  addContacts,
  Broken,
  changeAccess,
  countDeadlocks,
  countLimit,
  type Figures,
  failOver,
  fillPeople,
  killWorker,
  newKey,
  rollingRestart,
  spread,
  stopWorker,
  upgrade,
} from './acts.ts'
import { Balancer } from './balancer.ts'
import { Driver, type Failure } from './driver.ts'
import { checkOut } from './release.ts'
import { openServers } from './servers.ts'

const keyCount = 40
/** Processes of each kind, unless `--each` says how many: a small machine has enough to do with two and many contacts. */
const eachDefault = '3'
/** What each key may ask in a minute. */
const limit = 120
/** Shortened, as is the takeover time of Telegram's accounts. */
const takeoverSeconds = 12
const behindMs = 5_000
/** How long the older release works alone. */
const beforeMs = 10_000

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
      {
        marker: 'limit: counted in redis for all processes',
        replace: "const key = 'parley:{'.concat(String(process.pid), caller, '}')",
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
    without: { type: 'string', multiple: true, default: [] },
    from: { type: 'string' },
    contacts: { type: 'string', default: '0' },
    each: { type: 'string', default: eachDefault },
  },
})

async function main(): Promise<number> {
  const begunAt = performance.now()
  const { bug, seed, rate, from } = values
  const each = Number(values.each)
  const deliberate = bug === undefined ? {} : bugs[bug]
  if (!deliberate) throw new Error(`There is no bug ${bug}; there are ${Object.keys(bugs).join(', ')}.`)
  if (bug !== undefined && from !== undefined) throw new Error('--from runs without a deliberate bug.')
  const release = from === undefined ? undefined : await checkOut(from)
  // Releases before 0.3.0 pass start-up options, which PgBouncer refuses.
  const servers = await openServers([...values.without, ...(release ? ['pgbouncer'] : [])])
  const code = release ? `, from ${release.version} (${from}) to ${version}` : ''
  say(
    `seed ${seed}: ${each} serve, ${each} work, ${rate} requests a second${bug ? `, with the bug ${bug}` : ''}${code}`,
  )
  say(`with ${servers.used.join(', ') || 'neither Redis nor PgBouncer'}`)
  if (servers.skipped.length > 0) say(`SKIPPED, not installed or not wanted: ${servers.skipped.join(', ')}`)
  let plant: Plant | undefined
  const close = async () => {
    await plant?.close()
    await endProcesses()
    await servers.close()
    await release?.remove()
  }
  const end = () => void close().finally(() => process.exit(130))
  process.once('SIGINT', end).once('SIGTERM', end)
  try {
    plant = await openPlant({
      ...{ serves: each, works: each, accounts: 28, people: 3, through: servers.through },
      ...(release
        ? { checkout: release.directory }
        : { telegramAccounts: 4, workPatches: [takeover, ...(deliberate.workPatches ?? [])] }),
      env: {
        ...servers.env,
        // A release is tried with the few keys that its own code has made.
        ...(!release && { PARLEY_RATE_LIMIT: String(limit) }),
        PARLEY_DRAIN_SECONDS: '2',
        PARLEY_PACING_SECONDS: '1',
      },
      patches: deliberate.patches ?? [],
    })
    say('the plant is up')
    const broken = await (release ? runUpgrade(plant, begunAt) : run(plant, begunAt))
    say(
      `seed ${seed}: ${broken.length} promises broken, ${Math.round((performance.now() - begunAt) / 1_000)} s`,
    )
    return broken.length > 0 === (bug !== undefined) ? 0 : 1
  } finally {
    await close()
  }
}

/** Load from many callers, and the acts that are done meanwhile. */
class Stage {
  readonly broken: string[] = []
  readonly driver: Driver
  readonly #plant: Plant
  readonly #balancer: Balancer

  private constructor(plant: Plant, balancer: Balancer, driver: Driver) {
    this.#plant = plant
    this.#balancer = balancer
    this.driver = driver
  }

  static async open(plant: Plant, keys: readonly string[], streams: boolean): Promise<Stage> {
    const balancer = await Balancer.open(() => plant.urls)
    const { url } = balancer
    const cookie = await signIn({ app: { db: plant.db } }, plant.tenant.user_id)
    const random = makeRandom(Number(values.seed))
    const driver = new Driver(plant, { url, cookie, random, rate: Number(values.rate), keys, streams })
    driver.start()
    return new Stage(plant, balancer, driver)
  }

  get url(): string {
    return this.#balancer.url
  }

  async act(name: string, work: () => Promise<Figures>): Promise<void> {
    await this.driver.phase(name)
    const figures = await work().catch((error: unknown) => {
      if (!(error instanceof Broken)) throw error
      this.broken.push(`${name}: ${error.message}`)
      say(`BROKEN ${name}: ${error.message}`)
      return {}
    })
    say(`${name}: ${JSON.stringify(figures)}`)
  }

  /** Nothing is done until the load has gone on for the time that was asked for. */
  async wait(begunAt: number): Promise<void> {
    await this.driver.phase('nothing')
    await sleep(Math.max(0, begunAt + Number(values.minutes) * 60_000 - performance.now()))
  }

  /**
   * Ends the load, and returns every promise that was broken. Release 0.2.0 refuses a send while its account changes hands: of
   * the processes in `older` that is counted apart, and the send must succeed when it is repeated.
   */
  async end(older: ReadonlySet<string> = new Set()): Promise<string[]> {
    await this.driver.stop()
    const { answered } = this.#balancer
    const isOlder = ({ key = '', status, code }: Failure) =>
      status === 503 && code === 'session_unavailable' && older.has(answered.get(key) ?? '')
    const found = await conclude(this.#plant, this.driver, isOlder)
    await this.#balancer.close()
    return [...this.broken, ...found]
  }
}

async function run(plant: Plant, begunAt: number): Promise<string[]> {
  const keys = await Promise.all(Array.from({ length: keyCount }, (_, n) => newKey(plant, `scale ${n}`)))
  const stage = await Stage.open(
    plant,
    keys.map(({ key }) => key),
    true,
  )
  await stage.act('rolling restart', () => rollingRestart(plant))
  await stage.act('a worker stopped', () => stopWorker(plant))
  await stage.act('accounts spread', () => spread(plant))
  await stage.act('access changed', () => changeAccess(plant))
  await stage.act('one limit', () => countLimit(plant, stage.url, limit))
  await stage.wait(begunAt)
  await stage.act('a worker killed', () => killWorker(plant, takeoverSeconds * 1_000))
  await stage.act('failover', () => failOver(plant, behindMs))
  return stage.end()
}

async function runUpgrade(plant: Plant, begunAt: number): Promise<string[]> {
  const contacts = Number(values.contacts)
  if (contacts > 0) say(`contacts of before: ${JSON.stringify(await addContacts(plant, contacts))}`)
  const stage = await Stage.open(plant, plant.tenant.keys, false)
  const older = new Set(plant.urls)
  await stage.driver.phase('before the upgrade')
  await sleep(beforeMs)
  await stage.act('upgrade', () => upgrade(plant))
  if (contacts > 0) await stage.act('people filled', () => fillPeople(plant))
  await stage.wait(begunAt)
  return stage.end(older)
}

/** In these no request may fail, whatever happens to the processes. */
const undisturbed = [
  'before the upgrade',
  'upgrade',
  'people filled',
  'rolling restart',
  'a worker stopped',
  'accounts spread',
  'access changed',
  'one limit',
  'nothing',
]

async function conclude(
  plant: Plant,
  driver: Driver,
  isOlder: (failure: Failure) => boolean,
): Promise<string[]> {
  const broken: string[] = []
  const note = (line: string) => {
    broken.push(line)
    say(`BROKEN ${line}`)
  }
  for (const [name, { requests, failures, longestSendMs }] of driver.tallies) {
    const [theirs, ours] = [failures.filter(isOlder), failures.filter((each) => !isOlder(each))]
    say(
      `${name}: ${requests} requests, ${ours.length} failed${ours.length > 0 ? ` (${summarise(ours)})` : ''}, ` +
        `the longest send took ${Math.round(longestSendMs)} ms`,
    )
    if (theirs.length > 0) say(`${name}: the older release refused besides: ${summarise(theirs)}`)
    if (undisturbed.includes(name) && ours.length > 0) note(`${name}: ${summarise(ours)}`)
  }
  const deadlocks = await countDeadlocks(plant)
  say(`${deadlocks} deadlocks`)
  if (values.from !== undefined && deadlocks > 0) note(`${deadlocks} deadlocks in an upgrade`)
  // What only the older release refused is as good as accepted: nothing was sent, and a caller repeats it.
  const refused = [...driver.tallies.values()].flatMap(({ failures }) => failures.filter(isOlder))
  say(`live stream: ${JSON.stringify(driver.stream)}; ${driver.skipped} requests not made`)
  await plant.settled()
  const accepted = new Set([
    ...driver.history.filter(({ status }) => status === 200).map(({ key }) => key),
    ...refused.map(({ key }) => key),
  ])
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

function summarise(failures: readonly Failure[]): string {
  const kinds = Map.groupBy(failures, ({ what, status, code }) => `${what.split('?')[0]} ${status} ${code}`)
  return [...kinds].map(([kind, all]) => `${all.length} × ${kind}`).join(', ')
}

process.exitCode = await main()
process.exit()
