/**
 * The ledger in a storm: real processes are killed, paused and started again under load while PostgreSQL crashes, stands
 * still, lets nobody in and ends connections, commits are lost, the platform misbehaves at every third call, callers hang
 * up or ask with several API keys, and people switch accounts and sending off and on. In the end every operation must
 * have ended, and the oracle must find nothing.
 *
 *   npm run test:storm -- --kills 200 --seed 7 --serves 2 --works 2 [--accounts 60] [--clients 60] [--keep] [--patch JSON]
 *
 * The seed decides who is hit and how; when it hits is up to the machine. Exit 1: a promise was broken, or a state
 * that the run was meant to reach was never reached (that only for 80 kills and more). `--keep` leaves the data
 * directories, and writes the evidence beside them. `--patch` gives every process a deliberate bug (`patch.ts`): then
 * the storm is expected to fail.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { endProcesses } from '../harness/process.ts'
import { type Clients, startClients } from './clients.ts'
import { type Disturbance, disturb, disturbances } from './disturbances.ts'
import type { Fate } from './lossy.ts'
import type { Member } from './member.ts'
import { judge } from './oracle.ts'
import type { Patch } from './patch.ts'
import { openPlant, type Plant } from './plant.ts'
import { drawFault } from './platform-faults.ts'
import { makeRandom, type Random } from './random.ts'
import { countRare, listMissing, type Rare } from './rare.ts'
import { countErrors, say, tellOutcomes, tellTable } from './report.ts'

const faultShare = 0.3
const pauseSeconds = { least: 16, most: 20 }
/** Of every twenty hits one is PostgreSQL's, and one a pause longer than a lease. */
const crashShare = 0.05
const pauseShare = 0.03
/** This share of the hits strikes a process that is still starting: it may be reading its predecessor's journal. */
const startingShare = 0.15
/** This share may strike the last process of its role. */
const lastShare = 0.1
/** After this share of the kills the leases of the dead process end at once. After the others they run out in time. */
const hastenShare = 0.8
/** So many kills come with something else that goes wrong (`disturbances.ts`), each kind in its turn. */
const disturbedShare = 0.35
const hangUpShare = 0.05
const startAttemptsMax = 200
/** Below this many kills a rare state may be missed by chance. */
const enoughKills = 80

/**
 * Accounts change hands every few seconds here, and a session that is closed waits eight for its answers. A silent platform
 * is given up before that, or the end of the session would always come first and no timeout would ever be seen.
 */
const briefAnswer: Patch = {
  marker: 'limit: answer of the platform',
  replace: 'const answerMsMax = { text: 4_000, file: 20_000 }',
}

const mustReach: readonly (keyof Rare)[] = [
  'ambiguous_by_timeout',
  'ambiguous_by_answer',
  'ambiguous_by_lease',
  'late_upgrade',
  'never_written',
  'flood_release',
  'refused',
  'run_again',
  'journal_replay',
  'commit_lost_undone',
  'commit_lost_done',
]

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    serves: { type: 'string', default: '2' },
    works: { type: 'string', default: '2' },
    accounts: { type: 'string', default: '60' },
    clients: { type: 'string', default: '60' },
    keep: { type: 'boolean', default: false },
    patch: { type: 'string', default: '[]' },
  },
})
const kills = Number(values.kills)
const seed = Number(values.seed)

/** What the processes complained of, and what happened to them. */
const errors: Record<string, number> = {}
const hits = { serve: 0, work: 0, sandbox: 0, starting: 0, postgres: 0, pause: 0, died: 0 }
const disturbed: Record<Disturbance, number> = {
  freeze_postgres: 0,
  freeze_backend: 0,
  exhaust_connections: 0,
  terminate_backends: 0,
  flip_account: 0,
  flip_dispatch: 0,
}

class Storm {
  readonly #plant: Plant
  readonly #random: Random
  /** What goes on in the background: restarts and pauses. */
  readonly #pending = new Set<Promise<void>>()
  readonly #raising = new Set<Member>()
  #disturbing = false
  #disturbances = 0

  constructor(plant: Plant, random: Random) {
    this.#plant = plant
    this.#random = random
  }

  async rage(clients: Clients): Promise<void> {
    for (const member of this.#plant.members) this.#watch(member)
    const begun = performance.now()
    let told = begun
    for (let n = 1; n <= kills; n++) {
      if (!this.#disturbing && this.#random.chance(disturbedShare)) this.#do(this.#disturb())
      await this.#strike()
      if (performance.now() - told > 10_000 || n === kills) {
        told = performance.now()
        const seconds = Math.round((told - begun) / 1000)
        say(`${n}/${kills} hits, ${seconds} s, ${clients.keys} keys, ${clients.history.length} answers`)
      }
    }
  }

  async #strike(): Promise<void> {
    const random = this.#random
    const what = random.weigh([
      ['crash', crashShare],
      ['pause', pauseShare],
      ['kill', 1 - crashShare - pauseShare],
    ])
    if (what === 'crash') {
      hits.postgres++
      await this.#plant.postgres.crash(random.pick(['SIGKILL', 'SIGQUIT']))
      await this.#plant.postgres.untilUp('plant')
      return
    }
    const early = what === 'kill' && random.chance(startingShare) ? this.#findStarting() : undefined
    const member = early ?? (await this.#findTarget())
    if (early) await sleep(random.between(0, 1_000))
    if (what === 'pause') {
      hits.pause++
      this.#do(this.#pause(member))
    } else {
      hits[early ? 'starting' : member.verb]++
      this.#do(this.#kill(member))
    }
    await sleep(random.between(0, 500))
  }

  /** One at a time, so that each shows what it does. */
  async #disturb(): Promise<void> {
    const what = disturbances[this.#disturbances++ % disturbances.length] ?? 'flip_account'
    this.#disturbing = true
    try {
      await disturb(this.#plant, this.#random.fork(this.#disturbances), what)
      disturbed[what]++
    } finally {
      this.#disturbing = false
    }
  }

  /** Somebody who runs; mostly not the last one of its role, so that the load goes on. */
  async #findTarget(): Promise<Member> {
    const roles = [this.#plant.serves, this.#plant.works]
    const least = this.#random.chance(lastShare) ? 1 : 2
    if (this.#random.chance(0.5)) roles.reverse()
    for (let waited = 0; waited < 600; waited++) {
      for (const members of roles) {
        const up = members.filter((member) => member.url && !member.paused)
        if (up.length >= Math.min(least, members.length)) return this.#random.pick(up)
      }
      await sleep(50)
    }
    throw new Error('No process has come up for half a minute.')
  }

  #findStarting(): Member | undefined {
    const starting = [...this.#raising].filter(({ alive }) => alive)
    return starting.length > 0 ? this.#random.pick(starting) : undefined
  }

  async #kill(member: Member): Promise<void> {
    const hasten = this.#random.chance(hastenShare)
    const attempts = this.#random.chance(0.2)
    if (member.alive) await member.kill()
    // Without it most accounts would lie idle until a lease has run out, and nothing would be under way to be hit.
    if (hasten) await this.#plant.expireLeases({ attempts }).catch(() => {})
    await this.raise(member)
  }

  async #pause(member: Member): Promise<void> {
    member.pause()
    await sleep(this.#random.between(pauseSeconds.least, pauseSeconds.most) * 1000)
    if (member.alive) member.resume()
  }

  /** As a supervisor does: until it runs. It may find no database, or be killed again. */
  async raise(member: Member): Promise<void> {
    if (this.#raising.has(member) || member.url) return
    this.#raising.add(member)
    try {
      for (let attempt = 1; !member.url; attempt++) {
        if (attempt > startAttemptsMax) throw new Error(`${member.name} does not start: ${member.output()}`)
        await (member.alive ? member.ready() : member.start()).catch(() => sleep(100))
      }
      this.#watch(member)
    } finally {
      this.#raising.delete(member)
    }
  }

  /** A process that ends by itself is a finding; it is started again all the same. */
  #watch(member: Member): void {
    const { name } = member
    void member.ended().then(({ code, stdout, stderr }) => {
      countErrors(errors, stdout + stderr)
      if (code === null) return
      hits.died++
      say(`${name} ended by itself with ${code}: ${(stdout + stderr).slice(-2_000)}`)
      this.#do(this.raise(member))
    })
  }

  #do(work: Promise<void>): void {
    const done = work.finally(() => this.#pending.delete(done))
    this.#pending.add(done)
    done.catch(() => {})
  }

  /** Nobody is hit any more, and everybody runs. */
  async calm(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending)
    await this.#plant.postgres.untilUp('plant')
    await Promise.all(this.#plant.members.map((member) => this.raise(member)))
  }
}

/** A connection breaks at one boundary in fifteen, and at one other COMMIT in two thousand. */
function loseCommits(random: Random, raging: () => boolean): (commit: { boundary: boolean }) => Fate {
  return ({ boundary }) => {
    if (!raging() || !random.chance(boundary ? 1 / 15 : 1 / 2000)) return 'pass'
    return random.pick(['before', 'after'])
  }
}

async function main(): Promise<number> {
  say(`seed ${seed}: ${kills} hits on ${values.serves} serve and ${values.works} work processes`)
  const random = makeRandom(seed)
  let raging = false
  const plant = await openPlant({
    serves: Number(values.serves),
    works: Number(values.works),
    accounts: Number(values.accounts),
    people: 3,
    patches: [briefAnswer, ...JSON.parse(values.patch)],
    lossy: loseCommits(random.fork('commits'), () => raging),
  })
  const end = () => void plant.close().finally(() => process.exit(130))
  process.once('SIGINT', end).once('SIGTERM', end)
  try {
    say('the plant is up')
    const clients = startClients(plant, {
      random,
      count: Number(values.clients),
      hangUpShare,
      apiKeys: true,
      before: async ({ account_id, kind }, chance) => {
        if (raging && chance.chance(faultShare)) await plant.fault(drawFault(chance, account_id, kind))
      },
    })
    const storm = new Storm(plant, random.fork('storm'))
    // Faults for accounts that nobody drives would pile up.
    const sweeping = setInterval(() => void plant.clearFaults().catch(() => {}), 5_000)
    raging = true
    await storm.rage(clients)
    raging = false
    clearInterval(sweeping)
    await plant.clearFaults()
    await storm.calm()
    await clients.stop()
    return await conclude(plant, clients)
  } finally {
    await plant.close(values)
    await endProcesses()
  }
}

async function conclude(plant: Plant, clients: Clients): Promise<number> {
  const late = await plant.settled().then(
    () => undefined,
    (error: Error) => error.message,
  )
  await plant.untilReady().catch((error: Error) => say(error.message))
  await clients.repeat()
  await plant.settled().catch(() => {})
  const evidence = await plant.evidence(clients.history)
  const violations = judge(evidence)
  const rare = countRare(evidence, plant.lossy?.boundaries)
  tellTable('hits', { ...hits, other_commits_lost: sum(plant.lossy?.others) })
  for (const member of plant.members) countErrors(errors, member.output())
  tellTable('disturbances', disturbed)
  tellTable('errors in logs', errors)
  tellOutcomes(evidence)
  tellTable('reached', { ...rare })
  const missing = kills >= enoughKills ? [...listMissing(rare, mustReach), ...listUndisturbed()] : []
  for (const violation of violations.slice(0, 50)) say(`VIOLATION ${JSON.stringify(violation)}`)
  if (late) say(late)
  for (const name of missing) say(`NEVER REACHED ${name}`)
  say(`seed ${seed}: ${violations.length} violations, ${missing.length} states never reached`)
  if (values.keep) await writeFile(join(plant.directory, 'evidence.json'), JSON.stringify(evidence))
  return violations.length > 0 || missing.length > 0 || late ? 1 : 0
}

function listUndisturbed(): Disturbance[] {
  return disturbances.filter((what) => disturbed[what] === 0)
}

function sum(cuts: { before: number; after: number } | undefined): number {
  return cuts ? cuts.before + cuts.after : 0
}

process.exitCode = await main()
process.exit()
