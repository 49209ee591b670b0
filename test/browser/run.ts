/**
 * The tests that need a browser, or their own identity provider (`npm run test:browser`). The package in this folder
 * has its own lock file, so that the service's has neither. Each file of `journeys` is a process that exits with 0 or
 * has failed.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'

/** A limit for hangs, not for slow machines. */
const stepMsMax = 600_000
/** Those of one group run at the same time: `live.ts` mostly waits. */
const journeys = [['oidc.ts', 'live.ts'], ['dashboard.ts']]

await step('npm ci', ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'])
await step('types', ['npx', 'tsc', '--project', import.meta.dirname])
for (const group of journeys) {
  await Promise.all(group.map((name) => step(name, [process.execPath, join(import.meta.dirname, name)])))
}

async function step(name: string, [command = '', ...args]: readonly string[]): Promise<void> {
  const begunAt = performance.now()
  const child = spawn(command, args, { cwd: import.meta.dirname, stdio: 'inherit', timeout: stepMsMax })
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  if (code !== 0) {
    process.stdout.write(`FAILED: ${name} ended with ${code}\n`)
    process.exit(1)
  }
  process.stdout.write(`== ${((performance.now() - begunAt) / 1_000).toFixed(1)} s: ${name}\n`)
}
