/** The rehearsal at the data centre: all of it passes there, and what Telegram could do otherwise is named. */
import { expect, onTestFinished, test } from 'vitest'
import { openStage } from '../../../test/platform/data-centre-fixture.ts'
import type { NewFault } from '../sandbox/faults.ts'
import { writeMessage } from '../sandbox/person-acts.ts'
import type { Endpoint } from './client.ts'
import { sentenceOf } from './rehearsal-device.ts'
import { Rehearsal, testCodeOf } from './rehearse.ts'

const phones = ['+9996620001', '+9996620002'] as const
const password = 'canary password'

/** Two accounts that know each other's numbers. The first has a two-step password. */
async function open({ dedupe = true, code = '12345' } = {}) {
  const stage = await openStage({ dedupe })
  onTestFinished(() => stage.close())
  const { centre, world } = stage
  const [first, second] = phones
  const one = centre.addAccount({ account_id: 'acc_one', name: 'Canary One', phone: first, password })
  const two = centre.addAccount({ account_id: 'acc_two', name: 'Canary Two', phone: second })
  const test_dc = {
    ...{ id: 2, ipAddress: '127.0.0.1', port: centre.port },
    ...{ ipv6: false, mediaOnly: false, testMode: false },
  }
  const endpoint: Endpoint = { api_id: 1, api_hash: '0'.repeat(32), test_dc }
  const asked: string[] = []
  const lines: string[] = []
  const rehearsal = new Rehearsal({
    endpoint,
    phones,
    ask: async (whose, step) => {
      asked.push(`${whose}: ${step.kind}`)
      return step.kind === 'code' ? code : password
    },
    progress: ({ check, result }) => lines.push(`${result} ${check}`),
  })
  /** The texts that an account still shows in its chat with the other. */
  const texts = () =>
    [one, two].flatMap((account) =>
      [...account.boxes.values()].flatMap(({ posts }) => posts.map(({ text }) => text)),
    )
  const keys = () =>
    [...centre.store.state.auth_keys.values()].filter(({ account_id }) => account_id !== null)
  const fault = (given: NewFault) => world.addFault(given)
  return { stage, centre, world, one, two, endpoint, rehearsal, asked, lines, texts, keys, fault }
}

test('all twenty checks pass, nothing is left behind, and the report has no secret in it', async () => {
  const { world, one, two, rehearsal, asked, lines, texts, keys } = await open()
  // Not of the rehearsal: it stays.
  writeMessage(world, { account_id: 'acc_one', person_id: two.person_id, text: 'canary before' })
  const report = await rehearsal.run()
  expect(report.checks.filter(({ result }) => result !== 'passed')).toEqual([])
  expect(report).toMatchObject({ passed: 20, of: 20, layer: 227, left_behind: [] })
  expect(lines).toEqual(report.checks.map(({ check }) => `passed ${check}`))
  expect(asked).toEqual([
    'the first account: code',
    'the first account: password',
    'the second account: code',
    'the second device of the first account: password',
  ])
  expect(texts().filter((text) => !text.startsWith('Login code'))).toEqual(['canary before'])
  expect(keys()).toEqual([])
  const told = JSON.stringify(report)
  for (const secret of [
    'anary',
    'Parley rehearsal',
    '99966',
    '12345',
    `${one.person_id}`,
    `${two.person_id}`,
  ])
    expect(told).not.toContain(secret)
})

test('all twenty checks pass with a clock that is ten minutes fast', async () => {
  const { centre, rehearsal, keys } = await open()
  centre.clock.set(-600)
  const report = await rehearsal.run()
  expect(report.checks.filter(({ result }) => result !== 'passed')).toEqual([])
  expect(report).toMatchObject({ passed: 20, left_behind: [] })
  expect(keys()).toEqual([])
})

test('a repeated random id that makes a second message fails its check alone', async () => {
  const { rehearsal, texts, keys } = await open({ dedupe: false })
  const report = await rehearsal.run()
  expect(report.checks.filter(({ result }) => result !== 'passed')).toMatchObject([
    { result: 'failed', why: 'The message is there 2 times.' },
  ])
  expect([report.passed, keys(), texts().filter((text) => text.includes('rehearsal'))]).toEqual([19, [], []])
})

test('a login that fails ends the rehearsal: the rest is not run', async () => {
  const { rehearsal, keys } = await open({ code: '54321' })
  const report = await rehearsal.run()
  expect(report.passed).toBe(0)
  expect(report.checks[0]).toMatchObject({ result: 'failed', why: 'The login failed: too_many_attempts.' })
  expect(report.checks.slice(1).every(({ result }) => result === 'not_run')).toBe(true)
  expect(keys()).toEqual([])
})

test('a refused send says its name, and both accounts are logged out', async () => {
  const { rehearsal, keys, fault } = await open()
  fault({ on: 'send', fault: 'refuse', error: '403 CHAT_WRITE_FORBIDDEN', times: 1 })
  const report = await rehearsal.run()
  expect(report).toMatchObject({ passed: 5, left_behind: [] })
  expect(report.checks[5]).toMatchObject({ why: 'Telegram refused it: CHAT_WRITE_FORBIDDEN.' })
  expect(keys()).toEqual([])
})

test('an interrupted rehearsal logs out what it had logged in', async () => {
  const { rehearsal, keys, texts, lines, fault } = await open()
  // The sixth check never ends by itself.
  fault({ on: 'send', fault: 'timeout_before', times: 1 })
  const running = rehearsal.run()
  await expect.poll(() => lines.length, { timeout: 60_000 }).toBe(5)
  await rehearsal.cleanUp()
  expect(keys()).toEqual([])
  await running
  expect(texts().filter((text) => text.includes('rehearsal'))).toEqual([])
})

test('codes are made up for numbers of the test servers alone', async () => {
  const endpoint = { api_id: 1, api_hash: '0'.repeat(32) }
  const at = (testMode: boolean): Endpoint => ({
    ...endpoint,
    test_dc: { id: 2, ipAddress: '127.0.0.1', port: 1, ipv6: false, mediaOnly: false, testMode },
  })
  expect([0, 1, 2].map((tries) => testCodeOf(at(true), '+9996620001', tries))).toEqual([
    '22222',
    '222222',
    undefined,
  ])
  expect(testCodeOf(at(true), '+4915112345678', 0)).toBeUndefined()
  expect(testCodeOf(at(false), '+9996620001', 0)).toBeUndefined()
  expect(testCodeOf({ ...endpoint, test_dc: null }, '+9996620001', 0)).toBeUndefined()
})

test('an error that is not ours reaches the report by its kind alone', () => {
  expect(sentenceOf(new TypeError('canary key'))).toBe('It failed: TypeError.')
  expect(sentenceOf('canary key')).toBe('It failed: for no known reason.')
})
