/** Runs stories in this process: `node test/simulation/seeds.ts CLUSTER SEED…`, one line of JSON for each. */
import { runStory } from './story.ts'

const [cluster = '', ...seeds] = process.argv.slice(2)
for (const seed of seeds) {
  const begun = performance.now()
  const report = await runStory(JSON.parse(cluster), Number(seed))
  const ms = Math.round(performance.now() - begun)
  const { trace, log, ...rest } = report
  const full = report.broken !== undefined || process.env.SIMULATION_TRACE === '1'
  process.stdout.write(`${JSON.stringify({ ...rest, ms, ...(full && { trace, log }) })}\n`)
}
