/**
 * Campaigns under seeds: the service on manual clocks, several workers as objects, and the seed chooses their every step
 * (`story.ts`).
 *
 *   npm run test:simulation -- --seeds 200         that many stories, half of them in each of two processes
 *   npm run test:simulation -- --seed 17           that one, with every step
 *   npm run test:simulation -- --guards            leaves each guard of people out (`guards.ts`), until a story of 200 fails
 *   npm run test:simulation -- --guards by_hand    those whose name contains the word; `--seeds` limits the stories
 *
 * The same seed gives the same run, step by step. Exit 1: a promise was broken, or the run missed a state that it must reach; with
 * `--guards`, a guard whose absence no story noticed.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { type Patch, patchEnv } from '../faults/patch.ts'
import { type Cluster, editTemplate, openCluster } from '../harness/cluster.ts'
import { patientStore } from '../limits/patched.ts'
import { patchFunctions, type SqlPatch } from '../mutants/sql-functions.ts'
import { guardsNamed } from './guards.ts'
import { enough, mustReach } from './rare.ts'
import type { StoryReport } from './story.ts'

const processes = 2

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string' },
    seed: { type: 'string' },
    /** Deliberate bugs, in the formats of `test/faults/patch.ts` and `test/mutants/sql-functions.ts`. The first that shows ends the run. */
    patch: { type: 'string', default: '[]' },
    functions: { type: 'string', default: '[]' },
    guards: { type: 'boolean', default: false },
  },
})
/** Deliberate bugs. The first that shows ends the run. */
interface Bugs {
  readonly patches: readonly Patch[]
  readonly functions: readonly SqlPatch[]
}

const children = new Set<ChildProcess>()

/** Some stories in processes of their own. */
class Run {
  readonly reached: Record<string, number> = {}
  readonly sums = { stories: 0, steps: 0, sent: 0, broken: 0 }
  /** The first that broke a promise. */
  failed: string | undefined
  readonly #bugs: Bugs
  readonly #children = new Set<ChildProcess>()

  constructor(bugs: Bugs) {
    this.#bugs = bugs
  }

  #take(report: StoryReport): void {
    const { sums, reached } = this
    sums.stories++
    sums.steps += report.steps
    sums.sent += report.sent
    for (const [what, times] of Object.entries(report.reached)) reached[what] = (reached[what] ?? 0) + times
    if (values.seed !== undefined) process.stdout.write(`${report.trace.join('\n')}\n`)
    if (report.broken === undefined) return
    sums.broken++
    this.failed ??= `seed ${report.seed} ${report.broken}`
    if (!values.guards) {
      const again = `npm run test:simulation -- --seed ${report.seed}`
      process.stdout.write(`seed ${report.seed} ${report.broken}; ${again}\n`)
    }
    const { patches, functions } = this.#bugs
    if (patches.length + functions.length > 0) for (const child of this.#children) child.kill()
  }

  /** Runs every `processes`-th seed, in a process of its own. */
  #runShare(cluster: Cluster, own: readonly number[]): Promise<number | null> {
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, 'seeds.ts'), JSON.stringify(cluster), ...own.map(String)],
      {
        stdio: ['ignore', 'pipe', values.guards ? 'ignore' : 'inherit'],
        env: {
          ...process.env,
          // A busy machine is slow to connect.
          ...patchEnv([...patientStore, ...this.#bugs.patches]),
          ...(values.seed !== undefined && { SIMULATION_TRACE: '1' }),
        },
      },
    )
    children.add(child)
    this.#children.add(child)
    createInterface({ input: child.stdout }).on('line', (line) => this.#take(JSON.parse(line)))
    return new Promise((resolve) => child.on('close', resolve))
  }

  /** Whether every story ended. */
  async run(shipped: Cluster, seeds: readonly number[]): Promise<boolean> {
    const name = `simulated_${++templates}`
    const cluster = await editTemplate(shipped, name, (client) =>
      patchFunctions(client, this.#bugs.functions),
    )
    const shares = Array.from({ length: Math.min(processes, seeds.length) }, (_, n) =>
      seeds.filter((_, at) => at % processes === n),
    )
    const codes = await Promise.all(shares.map((own) => this.#runShare(cluster, own)))
    return this.sums.stories === seeds.length && codes.every((code) => code === 0)
  }
}

let templates = 0
const listSeeds = (count: number) => Array.from({ length: count }, (_, n) => n + 1)

async function runSeeds(cluster: Cluster): Promise<boolean> {
  const begun = performance.now()
  const seeds = values.seed === undefined ? listSeeds(Number(values.seeds ?? 20)) : [Number(values.seed)]
  const run = new Run({ patches: JSON.parse(values.patch), functions: JSON.parse(values.functions) })
  const ended = await run.run(cluster, seeds)
  const { sums, reached } = run
  const seconds = Math.round((performance.now() - begun) / 1000)
  process.stdout.write(`${JSON.stringify({ ...sums, seconds, reached })}\n`)
  const missed = seeds.length < enough ? [] : mustReach.filter((what) => !reached[what])
  if (missed.length > 0) process.stdout.write(`never reached: ${missed.join(', ')}\n`)
  return ended && sums.broken === 0 && missed.length === 0
}

async function leaveOut(cluster: Cluster): Promise<boolean> {
  let noticed = true
  for (const { what, patches, functions = [] } of guardsNamed(positionals[0] ?? '')) {
    const begun = performance.now()
    const run = new Run({ patches, functions })
    await run.run(cluster, listSeeds(Number(values.seeds ?? enough)))
    noticed &&= run.failed !== undefined
    const seconds = Math.round((performance.now() - begun) / 1000)
    const found = run.failed ?? `NOT NOTICED in ${run.sums.stories} stories`
    process.stdout.write(`${what} | ${found} | ${seconds} s\n`)
  }
  return noticed
}

async function main(): Promise<number> {
  const { cluster, close } = await openCluster()
  const end = () => {
    for (const child of children) child.kill()
    void close().finally(() => process.exit(130))
  }
  process.once('SIGINT', end).once('SIGTERM', end)
  try {
    return (await (values.guards ? leaveOut(cluster) : runSeeds(cluster))) ? 0 : 1
  } finally {
    await close()
  }
}

process.exitCode = await main()
