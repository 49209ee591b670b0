/**
 * Requests made from the document, and a tenth as many raw ones: no 500, nothing that the document does not name.
 *
 *   npm run test:fuzz -- --requests 20000
 *   npm run test:fuzz -- --requests 20000 --seed 12345   the same requests again, unless they depend on answers
 */
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: { requests: { type: 'string', default: '20000' }, seed: { type: 'string' } },
})
const seed = values.seed ?? String(randomInt(2 ** 32 - 1))
process.stdout.write(`${values.requests} requests; repeat them with --seed ${seed}\n`)
const root = join(import.meta.dirname, '..', '..')
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
const child = spawn(process.execPath, [vitest, 'run', '--project=fuzz'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, FUZZ_REQUESTS: values.requests, FUZZ_SEED: seed },
})
child.on('exit', (code) => process.exit(code ?? 1))
