/**
 * A new user's first minutes: what a start prints at a terminal, what stops it, and that a signal ends it at any
 * moment.
 */
import { chmod, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { version } from '../src/lib/version.ts'
import { runVerb } from './harness/operator.ts'
import {
  endProcesses,
  hangMs,
  type Parley,
  runParley,
  serversOf,
  spawnParley,
  until,
} from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'

let home: string
beforeAll(async () => {
  home = await makeScratch('parley-first-')
  await chmod(home, 0o755)
})
afterAll(async () => {
  await endProcesses()
  await rm(home, { recursive: true, force: true })
})

/** A process whose output looks like a terminal to it. */
const terminal = { NODE_OPTIONS: '--import=data:text/javascript,process.stdout.isTTY=true' }
const keyIn = (text: string) => /svc_live_\w+/.exec(text)?.[0]

function start(data_dir: string, env: Readonly<Record<string, string>> = {}, port = 0): Parley {
  return spawnParley(['start', '--port', String(port), '--admin-port', '0', '--data-dir', data_dir], env)
}

/** A port that no process uses right now. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Whether the service listens. The start tries the port first, which accepts a connection but answers nothing. */
function answers(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  )
}

/** Accounts connect when they can, often after the welcome: their lines are news, not part of it. */
function withoutConnects(printed: string): string {
  return printed.replaceAll(/^.* info an account is connected .*\n/gm, '')
}

describe('parley start at a terminal', () => {
  test('prints the welcome and nothing else; the next start has no key, and no other line', async () => {
    const data_dir = join(home, 'terminal')
    const first = start(data_dir, terminal)
    await until('the welcome is there', hangMs, () => first.stdout().includes('Try it:'))
    const key = keyIn(first.stdout()) ?? 'none'
    const address = /running at (\S+)/.exec(first.stdout())?.[1] ?? 'none'
    const admin = /Admin port +(\S+),/.exec(first.stdout())?.[1] ?? 'none'
    const link = /\S+\/dashboard\/setup#\w+/.exec(first.stdout())?.[0] ?? 'none'
    const head = [
      '',
      `  Parley is running at ${address}`,
      `  Dashboard            ${address}/dashboard`,
      `  API reference        ${address}/docs`,
      `  Admin port           ${admin}, for this machine only`,
      '',
    ]
    const welcome = [
      ...head,
      '  This is a demo workspace: two sandbox accounts and forty people who exist nowhere else.',
      '  Every gate was opened for it. Start with --no-demo for an empty instance with every gate closed.',
      '',
      '  Its API key may read, write, send and run campaigns. It is shown only now:',
      '',
      `    ${key}`,
      '',
      '  To sign in to the dashboard, open this link and choose a password. It works once, within 7 days:',
      '',
      `    ${link}`,
      '',
      '  Try it:',
      '',
      `    curl ${address}/api/v1/me -H "Authorization: Bearer ${key}"`,
      '',
      '',
    ]
    expect(withoutConnects(first.stdout())).toBe(welcome.join('\n'))
    const me = await fetch(`${address}/api/v1/me`, { headers: { authorization: `Bearer ${key}` } })
    expect(me.status).toBe(200)
    expect(link.startsWith(`${address}/dashboard/setup#`)).toBe(true)
    const setup = await fetch(`${address}/dashboard/api/setup`, {
      method: 'POST',
      headers: { origin: address, 'content-type': 'application/json' },
      body: JSON.stringify({ token: link.split('#')[1], password: 'correct horse battery' }),
    })
    expect(await setup.json()).toMatchObject({ user: { email: 'operator@localhost', operator: true } })
    // From now on a person wants to see the requests.
    await until('the request is shown', hangMs, () => first.stdout().includes('GET /api/v1/me 200'))
    first.signal('SIGINT')
    expect(await first.exit()).toMatchObject({ code: 0, stderr: '' })

    const second = start(data_dir, terminal)
    await until('the welcome is there', hangMs, () => second.stdout().includes('shows the commands'))
    const again = [
      ...head,
      `  To replace a lost key, run \`bin/parley.js key create\`; for a lost password, \`bin/parley.js user link\`, each with --data-dir ${data_dir}.`,
      '  docs/quickstart.md, "A lost key", shows the commands.',
      '',
      '',
    ]
    const withoutPorts = (text: string) => text.replaceAll(/:\d+/g, '')
    expect(withoutPorts(withoutConnects(second.stdout()))).toBe(withoutPorts(again.join('\n')))
    expect(second.stdout()).not.toContain('svc_live_')
    second.signal('SIGINT')
    expect(await second.exit()).toMatchObject({ code: 0, stderr: '' })
  })

  test('logs every change elsewhere, with the head of the audit chain', async () => {
    const { stdout } = await runVerb(['audit', 'list', '--json', '--data-dir', join(home, 'terminal')])
    const rows = JSON.parse(stdout) as { action: string; detail: object }[]
    expect(rows.map(({ action }) => action)).toEqual(
      expect.arrayContaining(['workspace.created', 'key.created', 'gate.enabled']),
    )
    expect(rows.at(-1)).toMatchObject({ seq: '1', action: 'workspace.created', detail: { name: 'Demo' } })
  })
})

test('in a pipe the key and the link come after the log lines of the start', async () => {
  const service = start(join(home, 'piped'))
  await service.ready()
  await until('the welcome is there', hangMs, () => service.stdout().includes('Try it:'))
  const [before = '', after = ''] = service.stdout().split('  Parley is running at')
  expect(before).toContain('"msg":"ready"')
  expect(after).toMatch(/svc_live_\w+[\s\S]*setup#\w+/)
  expect(after).not.toContain('"msg":"audit"')
  service.signal('SIGINT')
  expect(await service.exit()).toMatchObject({ code: 0 })
})

test('an empty instance says what to do next, and its commands work as printed', async () => {
  const data_dir = join(home, 'empty')
  const args = ['start', '--no-demo', '--port', '0', '--admin-port', '0', '--data-dir', data_dir]
  const service = spawnParley(args, terminal)
  await until('the welcome is there', hangMs, () => service.stdout().includes('lists all verbs'))
  const lines = service.stdout().match(/(?<=^ {4}bin\/parley\.js ).*$/gm) ?? []
  expect(lines).toHaveLength(5)
  const ids = new Map<string, string>()
  for (const line of lines) {
    const words = [...line.matchAll(/"([^"]+)"|(\S+)/g)].map(([, quoted, plain = '']) => quoted ?? plain)
    const known = words.map((word) => ids.get(word) ?? word)
    expect(words.slice(-2), line).toEqual(['--data-dir', data_dir])
    const { code, stdout, stderr } = await runVerb([...known, '--json'])
    expect([code, stderr], line).toEqual([0, ''])
    const { id, key } = JSON.parse(stdout) as { id?: string; key?: string }
    if (id) ids.set(`${words[0]?.toUpperCase()}_ID`, id)
    if (key) ids.set('API_KEY', key)
  }
  const [, url = ''] = /^ {4}curl (\S+) -H "Authorization: Bearer API_KEY"$/m.exec(service.stdout()) ?? []
  // The service notices within a second the gates that the first line opened.
  const me = await until('the key works', hangMs, async () => {
    const response = await fetch(url, { headers: { authorization: `Bearer ${ids.get('API_KEY')}` } })
    return response.ok && response.json()
  })
  expect(me).toMatchObject({ workspace: { name: 'Acme' } })
  // A table that is wider than the terminal, or than 100 columns in a pipe, becomes a block of lines for each row.
  const wide = (columns: number) => ({
    NODE_OPTIONS: `--import=data:text/javascript,process.stdout.columns=${columns}`,
  })
  const list = ['key', 'list', '--data-dir', data_dir]
  expect((await runParley(list, wide(400))).stdout).toMatch(/^id +workspace_id /)
  // The request above is recorded a moment later.
  await until('the use of the key is recorded', hangMs, async () =>
    /^last_used_at {2}\d/m.test((await runParley(list)).stdout),
  )
  const rows = (await runParley(list, wide(80))).stdout
  expect((await runParley(list)).stdout).toBe(rows)
  const piped = (await runVerb(['audit', 'list', '--data-dir', data_dir])).stdout
  expect(piped).toMatch(/^action {8}key\.created$/m)
  expect(Math.max(...piped.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(100)
  expect(rows).toMatch(/^name {10}my app$/m)
  expect(rows).toMatch(/^created_at {4}\d{4}-\d\d-\d\d \d\d:\d\dZ$/m)
  expect(rows).toMatch(/^mcp_only {6}no$/m)
  service.signal('SIGINT')
  await service.exit()
  const again = spawnParley(args, terminal)
  await until('it runs', hangMs, () => again.stdout().includes('this machine only'))
  expect(again.stdout()).not.toContain('This instance is empty')
  again.signal('SIGINT')
  await again.exit()
})

describe('a signal', () => {
  const sentence = /^(Stopped by SIG(TERM|INT) before it was ready\.\n)?$/

  async function expectClean(service: Parley, data_dir: string): Promise<void> {
    const { code, stderr } = await service.exit()
    expect(stderr).toMatch(sentence)
    expect(code).toBe(stderr === '' ? 0 : 1)
    expect(await serversOf(data_dir)).toEqual([])
  }

  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s between listening and ready ends it cleanly, and loses no key',
    async (signal) => {
      const data_dir = join(home, `between-${signal}`)
      const port = await freePort()
      const first = start(data_dir, {}, port)
      await until('it listens', hangMs, () => answers(port))
      first.signal(signal)
      await expectClean(first, data_dir)
      const printed = keyIn(first.stdout())
      const second = start(data_dir)
      const base = await second.ready()
      const key = printed ?? (await until('the key is printed', hangMs, () => keyIn(second.stdout())))
      const me = await fetch(`${base}/api/v1/me`, { headers: { authorization: `Bearer ${key}` } })
      expect([me.status, (await me.json()) as object]).toMatchObject([200, { workspace: { name: 'Demo' } }])
      second.signal(signal)
      await expectClean(second, data_dir)
    },
  )

  test('at any other moment of a start also ends it cleanly', async () => {
    const data_dir = join(home, 'between-SIGTERM')
    const began = performance.now()
    const whole = start(data_dir)
    await whole.ready()
    const startMs = performance.now() - began
    whole.signal('SIGTERM')
    await expectClean(whole, data_dir)
    const moments = 4
    for (let at = 1; at <= moments; at++) {
      const service = start(data_dir)
      // Before that Node itself is not ready for a signal, and there is nothing of ours to leave behind.
      await until('the server is there', hangMs, async () => (await serversOf(data_dir)).length > 0)
      await sleep((startMs / 2 / moments) * at)
      service.signal('SIGTERM')
      await expectClean(service, data_dir)
    }
  })
})

test('deleting the data directory under a service ends it with a sentence, and its PostgreSQL', async () => {
  const data_dir = join(home, 'deleted')
  const service = start(data_dir)
  await service.ready()
  expect(await serversOf(data_dir)).toHaveLength(1)
  // The server may create a file while the others are removed.
  await rm(data_dir, { recursive: true, force: true, maxRetries: 10 })
  const { code, stderr } = await service.exit()
  const sentence = 'was deleted or moved while the service was running. Stop the service first.'
  expect([code, stderr]).toEqual([1, `${join(data_dir, 'postgres')} ${sentence}\n`])
  expect(await serversOf(data_dir)).toEqual([])
})

describe('what a start refuses with a sentence', () => {
  async function refused(data_dir: string, ...more: string[]): Promise<string> {
    const { code, stdout, stderr } = await runParley(['start', '--data-dir', data_dir, ...more])
    // The log begins with the version; then the refusal is the only line.
    expect([code, stdout.trim().split('\n').length]).toEqual([1, 1])
    return stderr
  }

  test('a taken port, before anything is created in the data directory', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => taken.once('listening', resolve))
    const { port } = taken.address() as { port: number }
    const data_dir = join(home, 'never')
    expect(await refused(data_dir, '--port', String(port))).toBe(
      `Port ${port} is in use, perhaps by another Parley. Choose another port with --port, or stop the process that uses it.\n`,
    )
    expect(await refused(data_dir, '--port', '0', '--admin-port', String(port))).toBe(
      `Port ${port} is in use, perhaps by another Parley. Choose another port with --admin-port, or stop the process that uses it.\n`,
    )
    const free = String(await freePort())
    expect(await refused(data_dir, '--port', free, '--admin-port', free)).toBe(
      `Port ${free} is in use, perhaps by another Parley. Choose another port with --admin-port, or stop the process that uses it.\n`,
    )
    taken.close()
    expect(await readdir(home)).not.toContain('never')
  })

  test('a file in place of the data directory, or above it', async () => {
    const file = join(home, 'file')
    await writeFile(file, 'not a directory')
    expect(await refused(file, '--port', '0')).toBe(
      `The data directory ${file} is a file. Move it away, or choose another with --data-dir.\n`,
    )
    expect(await refused(join(file, 'below'), '--port', '0')).toBe(
      `The data directory ${join(file, 'below')} is below a file. Move it away, or choose another with --data-dir.\n`,
    )
  })

  // Not even root may create a folder there.
  test.runIf(process.platform === 'linux')('a directory that cannot be written', async () => {
    expect(await refused('/sys/parley', '--port', '0')).toMatch(
      /^This user cannot write to the data directory \/sys\/parley \((EACCES|EPERM|EROFS)\)\. Make it writable, or choose another with --data-dir\.\n$/,
    )
  })

  test('a secret that other users may read', async () => {
    const data_dir = join(home, 'terminal')
    for (const name of ['secret', 'postgres.password']) {
      await chmod(join(data_dir, name), 0o644)
      expect(await refused(data_dir, '--port', '0')).toBe(
        `Other users of this machine can read or change ${join(data_dir, name)}. ` +
          `Run \`chmod o= ${join(data_dir, name)}\`; if others have read it, it is no longer secret.\n`,
      )
      await chmod(join(data_dir, name), 0o640)
    }
    expect(await serversOf(data_dir)).toEqual([])
    expect(await runVerb(['gate', 'list', '--data-dir', data_dir])).toMatchObject({ code: 0 })
  })
})

describe('small verbs', () => {
  const parley = (...args: string[]) => runVerb([...args, '--data-dir', join(home, 'terminal')])

  test('--version prints the version of package.json', async () => {
    expect(await runParley(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' })
    expect(version).toMatch(/^\d+\.\d+\.\d+/)
  })

  test('key create says that the key is shown once, and its JSON has the facts alone', async () => {
    const [workspace] = JSON.parse((await parley('workspace', 'list', '--json')).stdout)
    const [user] = JSON.parse((await parley('user', 'list', '--json')).stdout)
    const make = [
      'key',
      'create',
      '--workspace',
      workspace.id,
      '--user',
      user.id,
      '--name',
      'x',
      '--scopes',
      'read',
    ]
    const { code, stdout } = await parley(...make)
    expect([code, stdout.trimEnd().split('\n').slice(-2)]).toEqual([
      0,
      ['', 'The key is shown only now: Parley stores only its hash. Keep it like a password.'],
    ])
    expect(keyIn(stdout)).toBeDefined()
    expect(JSON.parse((await parley(...make, '--json')).stdout)).toMatchObject({
      name: 'x',
      scopes: ['read'],
    })
  })

  test('audit list prints the newest first, as many as requested, of one workspace or of all', async () => {
    const list = async (...args: string[]) =>
      JSON.parse((await parley('audit', 'list', '--json', ...args)).stdout) as Record<string, unknown>[]
    const newest = await list('--limit', '2')
    expect(newest.map(({ action }) => action)).toEqual(['key.created', 'key.created'])
    expect(Number(newest[0]?.seq)).toBe(Number(newest[1]?.seq) + 1)
    expect(newest[0]).not.toHaveProperty('hash')
    const workspace = String(newest[0]?.workspace_id)
    const own = await list('--workspace', workspace)
    expect(new Set(own.map(({ workspace_id }) => workspace_id))).toEqual(new Set([workspace]))
    expect(await parley('audit', 'list', '--workspace', 'nobody')).toMatchObject({ code: 1, stdout: '' })
    expect(await parley('audit', 'list', '--limit', '0')).toMatchObject({ code: 2, stdout: '' })
    expect((await parley('audit', 'list')).stdout).toMatch(/^seq +\d+\nat +\d{4}-/)
  })
})
