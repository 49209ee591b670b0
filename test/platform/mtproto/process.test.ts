import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MemoryStorage } from '@mtcute/core'
import { afterAll, expect, test } from 'vitest'
import { endProcesses, spawnParley } from '../../harness/process.ts'
import { within } from '../conformance-recorder.ts'
import { apiKey, Client, lookUp, textOf, trust } from '../data-centre-fixture.ts'
import { dataCentreMain, spawnDataCentre } from '../data-centre-process.ts'
import { askAddress } from '../sandbox-fixture.ts'

const data_dir = mkdtempSync(join(tmpdir(), 'parley-data-centre-'))
afterAll(async () => {
  await endProcesses()
  rmSync(data_dir, { recursive: true })
})

async function start(...options: string[]) {
  const sandbox = spawnDataCentre({ data_dir, args: options })
  const ask = askAddress(await sandbox.ready())
  const line = /^PARLEY_TELEGRAM_DC=(127\.0\.0\.1):(\d+),(.+)$/m.exec(sandbox.stdout())
  const [, , port, key_file] = line ?? []
  trust(readFileSync(key_file ?? '', 'utf8'))
  return { sandbox, ask, port: Number(port) }
}

test('the data centre prints its addresses; a killed one restarts with its sessions', async () => {
  const first = await start('--dedupe', 'on', '--keep-updates', '2')
  const phone = '+9996620001'
  const account_id = 'acc_one'
  await first.ask('addAccount', { account_id, name: 'Sales desk', phone })
  await first.ask('addPerson', { name: 'Mara Lind', username: 'mara_lind' })
  const storage = new MemoryStorage()
  const client = new Client(first.port, storage)
  await client.call({ _: 'auth.exportLoginToken', ...apiKey, exceptIds: [] })
  expect(await first.ask('acceptLogin', { phone })).toEqual({ account_id })
  await client.call({ _: 'auth.exportLoginToken', ...apiKey, exceptIds: [] })
  const mara = await lookUp(client, 'mara_lind')
  await client.call(textOf(mara, 'Hello', 7))
  first.sandbox.signal('SIGKILL')
  await client.ended
  await client.close()
  await first.sandbox.ended()

  const { ask, port, sandbox } = await start('--dedupe', 'on', '--keep-updates', '2')
  const next = new Client(port, storage)
  expect(await next.state()).toMatchObject({ pts: 3 })
  await next.call(textOf(mara, 'Hello again', 7))
  await next.call(textOf(mara, 'More', 8))
  expect(await ask('readJournal', { after: 0 })).toMatchObject({
    entries: [{ text: 'Hello' }, { text: 'More' }],
  })
  const all = { _: 'updates.getDifference', pts: 1, date: 0, qts: 0 } as const
  expect(await next.call(all)).toMatchObject({ _: 'updates.differenceTooLong' })
  await next.close()
  sandbox.signal('SIGTERM')
  expect(await sandbox.exit()).toMatchObject({ code: 0 })
})

/** The first bytes that a new connection gets before it has written anything; none: it was closed. */
function greeting(port: number): Promise<Buffer> {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  return within(
    30_000,
    new Promise<Buffer>((resolve) => {
      socket.once('data', resolve).once('close', () => resolve(Buffer.alloc(0)))
    }),
  ).finally(() => socket.destroy())
}

test('the control address makes the network hostile: for new connections, for one account now, and no longer', async () => {
  const { ask, port, sandbox } = await start()
  const [account_id, phone] = ['acc_struck', '+9996620009']
  await ask('addAccount', { account_id, name: 'Sales desk', phone })
  const client = new Client(port, new MemoryStorage())
  await client.call({ _: 'auth.exportLoginToken', ...apiKey, exceptIds: [] })
  await ask('acceptLogin', { phone })
  await client.call({ _: 'auth.exportLoginToken', ...apiKey, exceptIds: [] })

  expect(await ask('addHostility', { case: 'error_429', on: 'accept' })).toEqual({ struck: 0 })
  expect(await greeting(port)).toEqual(Buffer.from(Int32Array.of(4, -429).buffer))
  await ask('addHostility', { case: 'cut', on: 'accept', after: 1, times: 2 })
  expect(await ask('clearHostilities', {})).toEqual({ cleared: 1 })
  expect(await client.state()).toMatchObject({ pts: expect.any(Number) })

  await expect(ask('addHostility', { case: 'cut', on: 'now' })).rejects.toThrow('name the account')
  expect(await ask('addHostility', { case: 'cut', on: 'now', account_id: 'acc_other' })).toEqual({
    struck: 0,
  })
  expect(await ask('addHostility', { case: 'cut', on: 'now', account_id })).toEqual({ struck: 1 })
  await within(30_000, client.ended)
  await client.close()
  sandbox.signal('SIGTERM')
  expect(await sandbox.exit()).toMatchObject({ code: 0 })
})

function run(...args: string[]) {
  return spawnParley(['data-centre', ...args], {}, dataCentreMain).exit()
}

test('refuses an unknown word for --dedupe', async () => {
  const { code, stderr } = await run('--dedupe', 'maybe', '--data-dir', data_dir)
  expect(code).not.toBe(0)
  expect(stderr).toContain('on, off')
})

test('the data centre names the port that is in use, for its control address and for MTProto', async () => {
  const { sandbox, port } = await start()
  const control = new URL(await sandbox.ready()).port
  const other = mkdtempSync(join(tmpdir(), 'parley-data-centre-'))
  for (const [option, used] of [
    ['--port', control],
    ['--mtproto-port', String(port)],
  ] as const) {
    const ports = { '--port': '0', '--mtproto-port': '0', [option]: used }
    const { code, stderr } = await run('--data-dir', other, ...Object.entries(ports).flat())
    expect(code).toBe(1)
    expect(stderr).toBe(
      `Port ${used} is in use, perhaps by another Parley. Choose another port with ${option}, or stop the process that uses it.\n`,
    )
  }
  rmSync(other, { recursive: true })
})
