/** `parley telegram rehearse` as a process, at a data centre as another. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { patient } from './harness/operator.ts'
import { endProcesses, spawnParley } from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'
import { spawnDataCentre, telegramEnv } from './platform/data-centre-process.ts'
import { type Ask, askAddress } from './platform/sandbox-fixture.ts'

let directory: string
let ask: Ask
let env: Record<string, string>
beforeAll(async () => {
  directory = await makeScratch('parley-rehearse-')
  const centre = spawnDataCentre({ data_dir: join(directory, 'centre'), args: ['--dedupe', 'on'] })
  ask = askAddress(await centre.ready())
  env = telegramEnv(centre.stdout())
})
afterAll(async () => {
  await endProcesses()
  await rm(directory, { recursive: true, force: true })
})

/** The second belongs to another data centre. */
const phones = ['+9996620001', '+9996640002'] as const

function rehearse(typed: readonly string[], more: readonly string[] = [], variables = env) {
  const args = ['telegram', 'rehearse', '--first', phones[0], '--second', phones[1], ...more]
  return spawnParley(args, variables, undefined, [], typed.map((line) => `${line}\n`).join('')).exit()
}

test('prints a line for each check, and a report that names commit, layer and library', patient, async () => {
  await ask('addAccount', {
    account_id: 'acc_one',
    name: 'Canary One',
    phone: phones[0],
    password: 'canary word',
  })
  await ask('addAccount', { account_id: 'acc_two', name: 'Canary Two', phone: phones[1] })
  const { code, stdout, stderr } = await rehearse(
    ['12345', 'canary word', '12345', 'canary word'],
    ['--json'],
  )
  expect([code, stderr.match(/ok {7}/g)?.length, stderr]).toEqual([
    0,
    20,
    expect.not.stringContaining('anary'),
  ])
  expect(JSON.parse(stdout)).toMatchObject({
    ...{ passed: 20, of: 20, left_behind: [], servers: 'loopback', layer: 227 },
    commit: expect.stringMatching(/^[0-9a-f]{40}$/),
    library: expect.stringMatching(/^@mtcute\/core \d+\.\d+\.\d+$/),
  })
  for (const secret of ['anary', '99966', '12345', 'rehearsal ']) expect(stdout).not.toContain(secret)
})

test('exits with 1 and a sentence when a login fails', patient, async () => {
  const { code, stdout, stderr } = await rehearse(['54321', '54321', '54321'])
  expect(code).toBe(1)
  expect(stdout).toMatch(/^FAILED +the first account logs in: The login failed: too_many_attempts\.$/m)
  expect(stdout).toContain('0 of 20 checks passed')
  expect(stderr).toContain('20 of 20 checks did not pass.')
})

test('refuses one number twice, and a process without the variables', patient, async () => {
  const args = ['telegram', 'rehearse', '--first', phones[0], '--second', phones[0]]
  const twice = await spawnParley(args, env).exit()
  expect([twice.code, twice.stderr]).toEqual([1, expect.stringContaining('the same number')])
  const without = await rehearse([], [], {})
  expect([without.code, without.stderr]).toEqual([1, expect.stringContaining('PARLEY_TELEGRAM_API_ID')])
})
