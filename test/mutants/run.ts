/**
 * Checks that every guard has a test. Each mutant (`mutants.ts`) is one edit of the shipped source, and the test that is named for
 * it must fail with it and pass without.
 *
 *   npm run test:mutants                          all of them
 *   npm run test:mutants -- --part 2/60           a sixtieth of them, as CI does with the day of the year
 *   npm run test:mutants -- --only 'guard: live'  those of one marker, or of one function in the database (`--only is_listed`);
 *                                                 may be given several times
 *   npm run test:mutants -- --path web/           those whose markers are below this path
 *
 * Exit 1: one was missed, or a named test does not pass as shipped.
 */
import { type ChildProcess, execFile } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { listMarkers, readSources, repository } from '../faults/markers.ts'
import { type Cluster, dropFrom, editTemplate, openCluster } from '../harness/cluster.ts'
import { makeScratch } from '../harness/scratch.ts'
import { type Mutant, mutants } from './mutants.ts'
import { patchFunctions } from './sql-functions.ts'

const runMsMax = 180_000
const runsMax = Math.max(2, availableParallelism())

const { values } = parseArgs({
  options: {
    part: { type: 'string' },
    only: { type: 'string', multiple: true },
    path: { type: 'string' },
  },
})

function chosen(): readonly Mutant[] {
  const { part, only, path } = values
  if (only !== undefined)
    return mutants.filter((mutant) => placesOf(mutant).some((place) => only.includes(place)))
  if (path !== undefined) {
    const markers = [...readSources()].flatMap(([file, text]) => listMarkers(file, text))
    const below = new Set(markers.filter(({ file }) => file.startsWith(path)).map(({ name }) => name))
    return mutants.filter(({ patches }) => patches.some(({ marker }) => below.has(marker)))
  }
  if (part === undefined) return mutants
  const [at = 0, parts = 0] = part.split('/').map(Number)
  if (!(parts >= 1) || !(at >= 0)) throw new Error(`--part ${part} is not like 2/10.`)
  return mutants.filter((_, n) => n % parts === at % parts)
}

function placesOf({ patches, functions = [] }: Mutant): string[] {
  return [...patches.map(({ marker }) => marker), ...functions.map((patch) => patch.function)]
}

interface Run {
  readonly files: readonly string[]
  readonly tests: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** The status of each test, by its full name; empty if the tests could not even be loaded. */
type Results = ReadonlyMap<string, string>

let runs = 0
const children = new Set<ChildProcess>()

async function runTests(directory: string, { files, tests, env }: Run): Promise<Results> {
  const report = join(directory, `${runs++}.json`)
  const pattern = `(${tests.map(patternOf).join('|')})$`
  const vitest = join(repository, 'node_modules', 'vitest', 'vitest.mjs')
  const args = ['run', ...files, '-t', pattern, '--reporter=json', `--outputFile=${report}`, '--maxWorkers=1']
  const options = { cwd: repository, env: { ...process.env, ...env }, timeout: runMsMax, maxBuffer: 1 << 26 }
  await new Promise<void>((resolve) => {
    const child = execFile(process.execPath, [vitest, ...args], options, () => {
      children.delete(child)
      resolve()
    })
    children.add(child)
  })
  const text = await readFile(report, 'utf8').catch(() => '{"testResults":[]}')
  const { testResults } = JSON.parse(text) as Report
  return new Map(
    testResults
      .flatMap(({ assertionResults }) => assertionResults)
      .filter(({ status }) => status === 'passed' || status === 'failed')
      // Two tests may have one name: it passes if both do.
      .toSorted((one, other) => Number(one.status === 'failed') - Number(other.status === 'failed'))
      .map(({ fullName, status }) => [fullName, status]),
  )
}

/** Between its titles a test's name has a sign that reports omit. */
function patternOf(test: string): string {
  return test.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll(' ', ' (?:> )?')
}

interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

interface Line {
  readonly mutant: string
  readonly test: string
  readonly result: string
  readonly seconds: string
}

let templates = 0

/** Works with the mutant's cluster: the one of all runs, or with a template of its own. */
async function inCluster<T>(
  cluster: Cluster,
  { functions = [] }: Mutant,
  work: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  if (functions.length === 0) return work(cluster)
  const name = `mutant_${templates++}`
  try {
    return await work(await editTemplate(cluster, name, (client) => patchFunctions(client, functions)))
  } finally {
    await dropFrom(cluster, name)
  }
}

async function judge(directory: string, mutant: Mutant, cluster: Cluster): Promise<Line> {
  const { file, test, still, what, patches } = mutant
  const begun = performance.now()
  const results = await inCluster(cluster, mutant, (its) =>
    runTests(directory, {
      files: [file],
      tests: [test, ...(still ? [still] : [])],
      env: { ...envOf(its), TEST_MUTANT: JSON.stringify(patches) },
    }),
  )
  const seconds = ((performance.now() - begun) / 1000).toFixed(1)
  return { mutant: what, test, result: verdictOn(results, test, still), seconds }
}

function verdictOn(results: Results, test: string, still: string | undefined): string {
  if (!results.has(test)) return 'NOT RUN'
  if (results.get(test) === 'passed') return 'MISSED'
  return still === undefined || results.get(still) === 'passed' ? 'caught' : 'BROKE MORE'
}

const envOf = (cluster: Cluster) => ({ TEST_CLUSTER: JSON.stringify(cluster) })

/** The named tests as shipped: those that do not pass prove nothing. */
async function listFailing(directory: string, wanted: readonly Mutant[], env: Run['env']): Promise<string[]> {
  const files = Map.groupBy(wanted, ({ file }) => file)
  const failing: string[] = []
  await inTurn([...files], async ([file, own]) => {
    const tests = [...new Set(own.flatMap(({ test, still }) => [test, ...(still ? [still] : [])]))]
    const results = await runTests(directory, { files: [file], tests, env })
    const left = tests.filter((test) => results.get(test) !== 'passed')
    failing.push(...left.map((test) => `${file}: ${test}: ${results.get(test) ?? 'not run'}`))
  })
  return failing
}

/** Works on `runsMax` items at a time. */
async function inTurn<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items]
  const next = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: runsMax }, next))
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function main(): Promise<number> {
  const begun = performance.now()
  const wanted = chosen()
  const directory = await makeScratch('parley-mutants-')
  const { cluster, close } = await openCluster()
  const end = async () => {
    await close()
    await rm(directory, { recursive: true, force: true })
  }
  const interrupted = () => {
    for (const child of children) child.kill()
    void end().finally(() => process.exit(130))
  }
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted)
  try {
    const failing = await listFailing(directory, wanted, envOf(cluster))
    for (const line of failing) say(`DOES NOT PASS AS SHIPPED ${line}`)
    let caught = 0
    await inTurn(wanted, async (mutant) => {
      const { result, seconds, test } = await judge(directory, mutant, cluster)
      if (result === 'caught') caught++
      say(`${result.padEnd(10)} ${seconds.padStart(5)} s  ${mutant.what.padEnd(48)} ${test}`)
    })
    const seconds = Math.round((performance.now() - begun) / 1000)
    say(`${caught} of ${wanted.length} mutants caught (${mutants.length} in all), ${seconds} s`)
    return caught === wanted.length && failing.length === 0 && wanted.length > 0 ? 0 : 1
  } finally {
    await end()
  }
}

process.exitCode = await main()
