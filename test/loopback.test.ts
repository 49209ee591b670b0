/** No test reaches Telegram, or any other machine: the attempt itself fails the test (`harness/loopback-setup.ts`). */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, type LookupFunction, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { telegramPlatform } from '../src/platform/telegram/adapter.ts'
import { dialled, dialledExitCode } from './harness/loopback-only.ts'
import { spawnParley } from './harness/process.ts'
import { heldAccount, MemoryAccountStore } from './platform/account-store.ts'
import { Recorder } from './platform/conformance-recorder.ts'

/** Outside this machine, in a network reserved for documentation. */
const outside = '192.0.2.1'

const lookup: LookupFunction = (_name, { all }, found) =>
  all ? found(null, [{ address: outside, family: 4 }]) : found(null, outside, 4)

test.each<[string, () => Socket]>([
  ['an address', () => connect(443, outside)],
  ['an address in options', () => connect({ port: 443, host: outside })],
  ['a name', () => connect({ port: 443, host: 'x.test', lookup, autoSelectFamily: false })],
  ['a name of either family', () => connect({ port: 443, host: 'x.test', lookup })],
])('a socket to %s outside is cut off, and noted so that its test fails', async (_, dial) => {
  const [error] = await once(dial(), 'error').catch((thrown) => [thrown])
  expect(error).toMatchObject({ message: expect.stringContaining('Tests reach loopback only') })
  expect(dialled.splice(0)).toEqual([outside])
})

test('an adapter that dials a real data centre is noted', async () => {
  const blob = { version: 1, dc_id: 2, key: randomBytes(256).toString('base64'), places: {} }
  const store = new MemoryAccountStore(Buffer.from(JSON.stringify(blob)))
  const platform = telegramPlatform({ api_id: 1, api_hash: 'x', test_dc: null })
  const outcome = await platform.connect(
    heldAccount({ account_id: 'acc_1', name: 'x', store }),
    new Recorder(),
  )
  expect(outcome).toMatchObject({ kind: 'not_written' })
  expect(dialled.splice(0)).toHaveLength(1)
})

test('a process that dials an address outside ends, and its test fails', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'parley-loopback-'))
  const script = join(directory, 'dials.mjs')
  await writeFile(
    script,
    `import { connect } from 'node:net'; connect(443, '${outside}').on('error', () => {})`,
  )
  const { code, stderr } = await spawnParley([], {}, script).exit()
  await rm(directory, { recursive: true })
  expect(code).toBe(dialledExitCode)
  expect(stderr).toContain(`dialled ${outside}`)
  expect(dialled.splice(0)).toEqual([expect.stringContaining('a process')])
})
