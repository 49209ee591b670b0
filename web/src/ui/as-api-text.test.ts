/** “As API”: what the dialog shows runs as it is, with a key from the environment, and holds whatever an id or a text has. */
import { spawn } from 'node:child_process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { type ApiRequest, curlOf, typescriptOf } from './as-api-text.ts'

let service: Service
let tenant: Tenant

beforeAll(async () => {
  service = await openService()
  tenant = await service.tenant()
})
afterAll(() => service.close())

const hostile = `it's "quoted" $HOME \`id\` \\ \n two`
const reading: ApiRequest = { does: 'Read who the key is', method: 'GET', path: '/me' }
const writing: ApiRequest = {
  does: 'Search',
  method: 'POST',
  path: '/search',
  body: { query: hostile },
  once: true,
}

async function run(command: string, args: readonly string[]): Promise<string> {
  const child = spawn(command, args, {
    env: { PATH: process.env.PATH, PARLEY_API_KEY: tenant.key },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let said = ''
  child.stdout.on('data', (chunk) => {
    said += chunk
  })
  await new Promise((resolve) => child.once('close', resolve))
  return said
}

const shell = (text: string) => run('sh', ['-c', text])
const node = (text: string) => run(process.execPath, ['--input-type=module-typescript', '-e', text])

test('curl and TypeScript run as shown, with the key of the environment', async () => {
  const { url } = service
  expect(JSON.parse(await shell(curlOf(url, reading)))).toMatchObject({ workspace_id: tenant.workspace_id })
  expect(JSON.parse(await shell(curlOf(url, writing)))).toMatchObject({ matches: [] })
  expect(await node(typescriptOf(url, reading))).toMatch(/^200 /)
  expect(await node(typescriptOf(url, writing))).toMatch(/^200 /)
})

test('a text in a body arrives as it is, and a shell runs none of it', async () => {
  const shown = curlOf('http://localhost', { ...writing, path: `/chats/${hostile}` })
  const words = await run('sh', [
    '-c',
    `curl() { printf '%s\\0' "$@"; }\nopenssl() { echo one-key; }\n${shown}`,
  ])
  expect(words.split('\0')).toEqual([
    '-X',
    'POST',
    `http://localhost/api/v1/chats/${hostile}`,
    '-H',
    `Authorization: Bearer ${tenant.key}`,
    '-H',
    'Idempotency-Key: one-key',
    '-H',
    'Content-Type: application/json',
    '-d',
    JSON.stringify(writing.body),
    '',
  ])
})
