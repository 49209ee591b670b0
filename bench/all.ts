/** Runs every benchmark in turn, and fails if one misses its goal. */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'

const helpers = [
  'all.ts',
  'fill.ts',
  'harness.ts',
  'dashboard-stage.ts',
  'data.ts',
  'dispatch-stage.ts',
  'load.ts',
  'progress.ts',
  'rows.ts',
  'search-rows.ts',
  'telegram-stage.ts',
  'texts.ts',
]
console.log(`${cpus().length} cores, ${cpus()[0]?.model.trim()}, Node ${process.version}`)
for (const file of readdirSync(import.meta.dirname).filter(
  (name) => name.endsWith('.ts') && !helpers.includes(name),
)) {
  console.log(`\n${file}`)
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, file)], { stdio: 'inherit' })
  if (status !== 0) process.exitCode = 1
}
