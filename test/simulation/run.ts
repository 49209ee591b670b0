/**
 * Campaigns under seeds: the service on manual clocks, several workers as objects, and the seed chooses their every step
 * (`story.ts`).
 *
 *   npm run test:simulation -- --seeds 200         that many stories, half of them in each of two processes
 *   npm run test:simulation -- --seed 17           that one, with every step
 *
 * The same seed gives the same run, step by step. Exit 1: a promise was broken, or the run missed a state that it must reach.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { patchEnv } from '../faults/patch.ts'
import { editTemplate, openCluster } from '../harness/cluster.ts'
import { patientStore } from '../limits/patched.ts'
import { patchFunctions, type SqlPatch } from '../mutants/sql-functions.ts'
import { enough, mustReach } from './rare.ts'
import type { StoryReport } from './story.ts'

const processes = 2

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20' },
    seed: { type: 'string' },
    /** Deliberate bugs, in the formats of `test/faults/patch.ts` and `test/mutants/sql-functions.ts`. The first that shows ends the run. */
    patch: { type: 'string', default: '[]' },
    functions: { type: 'string', default: '[]' },
  },
})
const seeds =
  values.seed === undefined
    ? Array.from({ length: Number(values.seeds) }, (_, n) => n + 1)
    : [Number(values.seed)]
const reached: Record<string, number> = {}
const sums = { stories: 0, steps: 0, sent: 0, broken: 0 }
const children = new Set<ChildProcess>()
const isPatched = values.patch !== '[]' || values.functions !== '[]'

function take(report: StoryReport): void {
  sums.stories++
  sums.steps += report.steps
  sums.sent += report.sent
  for (const [what, times] of Object.entries(report.reached)) reached[what] = (reached[what] ?? 0) + times
  if (values.seed !== undefined) process.stdout.write(`${report.trace.join('\n')}\n`)
  if (report.broken === undefined) return
  sums.broken++
  process.stdout.write(
    `seed ${report.seed} ${report.broken}; npm run test:simulation -- --seed ${report.seed}\n`,
  )
  if (isPatched) for (const child of children) child.kill()
}

/** Runs every `processes`-th seed, in a process of its own. */
function runShare(cluster: object, own: readonly number[]): Promise<number | null> {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, 'seeds.ts'), JSON.stringify(cluster), ...own.map(String)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        // A busy machine is slow to connect.
        ...patchEnv([...patientStore, ...JSON.parse(values.patch)]),
        ...(values.seed !== undefined && { SIMULATION_TRACE: '1' }),
      },
    },
  )
  children.add(child)
  createInterface({ input: child.stdout }).on('line', (line) => take(JSON.parse(line)))
  return new Promise((resolve) => child.on('close', resolve))
}

async function main(): Promise<number> {
  const begun = performance.now()
  const { cluster: shipped, close } = await openCluster()
  const end = () => {
    for (const child of children) child.kill()
    void close().finally(() => process.exit(130))
  }
  process.once('SIGINT', end).once('SIGTERM', end)
  try {
    const functions: SqlPatch[] = JSON.parse(values.functions)
    const cluster = await editTemplate(shipped, 'simulated', (client) => patchFunctions(client, functions))
    const shares = Array.from({ length: Math.min(processes, seeds.length) }, (_, n) =>
      seeds.filter((_, at) => at % processes === n),
    )
    const codes = await Promise.all(shares.map((own) => runShare(cluster, own)))
    const seconds = Math.round((performance.now() - begun) / 1000)
    process.stdout.write(`${JSON.stringify({ ...sums, seconds, reached })}\n`)
    const missed = seeds.length < enough ? [] : mustReach.filter((what) => !reached[what])
    if (missed.length > 0) process.stdout.write(`never reached: ${missed.join(', ')}\n`)
    const ended = sums.stories === seeds.length && codes.every((code) => code === 0)
    return ended && sums.broken === 0 && missed.length === 0 ? 0 : 1
  } finally {
    await close()
  }
}

process.exitCode = await main()
