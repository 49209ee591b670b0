/**
 * The tests that need a browser, or their own identity provider (`npm run test:browser`). The package in this folder
 * has its own lock file, so that the service's has neither. Each file of `journeys` is a process that exits with 0 or
 * has failed.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'

/** A limit for hangs, not for slow machines. */
const stepMsMax = 600_000
/** Four run at the same time, because each mostly waits for its pages; the longest have a place of their own. */
const journeys = [['pages.ts'], ['dashboard.ts'], ['oidc.ts', 'kept.ts'], ['live.ts', 'campaigns.ts']]

await step('npm ci', ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'])
await step('types', ['npx', 'tsc', '--project', import.meta.dirname])
await unpackBrowser()
await Promise.all(
  journeys.map(async (names) => {
    for (const name of names) await step(name, [process.execPath, join(import.meta.dirname, name)])
  }),
)

/** Once, before several processes would do it at the same time. Only here are its packages installed. */
async function unpackBrowser(): Promise<void> {
  const { openBrowser } = await import('./browser.ts')
  await (await openBrowser())?.close()
}

/** A failure ends the run with 1, after the journeys beside it have ended: each closes what it has started. */
async function step(name: string, [command = '', ...args]: readonly string[]): Promise<void> {
  const begunAt = performance.now()
  const child = spawn(command, args, { cwd: import.meta.dirname, stdio: 'inherit', timeout: stepMsMax })
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  const seconds = ((performance.now() - begunAt) / 1_000).toFixed(1)
  process.stdout.write(code === 0 ? `== ${seconds} s: ${name}\n` : `FAILED: ${name} ended with ${code}\n`)
  if (code !== 0) process.exitCode = 1
}
