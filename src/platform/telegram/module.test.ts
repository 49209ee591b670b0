import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { endProcesses, spawnParley } from '../../../test/harness/process.ts'
import { parseDc, telegramModule } from './module.ts'

const api = { PARLEY_TELEGRAM_API_ID: '1', PARLEY_TELEGRAM_API_HASH: '0'.repeat(32) }

function open(env: Record<string, string>, manual_from?: Date) {
  return telegramModule.open({ role: 'work', data_dir: '/nowhere', env, manual_from, failed: () => {} })
}

test('a process without its variables does not run it', async () => {
  expect(await open({})).toBeUndefined()
  expect(await open(api)).toMatchObject({ real: true, platform: { name: 'telegram', takeoverSeconds: 75 } })
})

test.each([
  { PARLEY_TELEGRAM_API_ID: '1' },
  { PARLEY_TELEGRAM_API_HASH: api.PARLEY_TELEGRAM_API_HASH },
  { PARLEY_TELEGRAM_DC: '127.0.0.1:4430,key.pem' },
])('one variable alone stops the start: %j', async (env) => {
  await expect(open(env)).rejects.toThrow('are needed together')
})

test('a manual clock next to it stops the start', async () => {
  await expect(open(api, new Date())).rejects.toThrow('PARLEY_CLOCK=manual')
})

test('a missing key file stops the start with a sentence', async () => {
  const dc = { PARLEY_TELEGRAM_DC: '127.0.0.1:4430,/nowhere/key.pem' }
  await expect(open({ ...api, ...dc })).rejects.toThrow(/PARLEY_TELEGRAM_DC.*ENOENT/)
})

/** Fails every import of mtcute. */
const withoutMtcute = `
  import { registerHooks } from 'node:module'
  registerHooks({
    resolve(name, context, next) {
      if (/^@(mtcute|fuman)/.test(name)) throw new Error('imported: ' + name)
      return next(name, context)
    },
  })`
const flags = ['--import', `data:text/javascript,${encodeURIComponent(withoutMtcute)}`]

test('verbs load no mtcute, which would make each of them slow', async () => {
  const run = (args: string[], main?: string) => spawnParley(args, api, main, flags).exit()
  expect(await run(['--version'])).toMatchObject({ code: 0, stderr: '' })
  for (const args of [
    ['account', 'list'],
    ['gate', 'list'],
  ]) {
    const { stderr } = await run([...args, '--data-dir', '/nowhere'])
    expect(stderr).toMatch(/^There is no /)
  }
  const { stderr } = await run([], join(import.meta.dirname, 'open.ts'))
  expect(stderr).toContain('imported: @mtcute')
})
afterAll(endProcesses)

test.each(['127.0.0.1:4430,key.pem', '127.9.9.9:1,/a/b.pem'])(
  'accepts %s as a data centre on this machine',
  (text) => {
    expect(parseDc(text)).toBeDefined()
  },
)

test.each([
  '149.154.167.50:443,key.pem',
  '0.0.0.0:443,key.pem',
  'localhost:443,key.pem',
  '127.0.0.1:0,key.pem',
  '127.0.0.1:65536,key.pem',
  '127.0.0.1:443',
])('refuses %s', (text) => {
  expect(parseDc(text)).toBeUndefined()
})
