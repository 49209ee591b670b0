/**
 * Parley behind the reverse proxies of deploy/, each run with its own file where it is installed: a file of 25 MiB, an import,
 * the live stream, and the answer when no process is ready. `TEST_STREAM_SECONDS=120` keeps the stream open for longer.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { openSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:http2'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Certificates, hasOpenssl } from './harness/certificates.ts'
import { textOf } from './harness/deploy.ts'
import { signIn } from './harness/person.ts'
import { freePort, hangMs, until } from './harness/process.ts'
import type { Tenant } from './harness/service.ts'
import { openWorkplace, type Workplace } from './harness/worker.ts'

const mib = 1024 ** 2
const streamSeconds = Number(process.env.TEST_STREAM_SECONDS ?? 3)
const PATH = `${process.env.PATH}:/usr/local/sbin:/usr/sbin:/sbin`
const isInstalled = (program: string) =>
  hasOpenssl && spawnSync('sh', ['-c', `command -v ${program}`], { env: { PATH } }).status === 0

/** How each is started with its file, and what of the file belongs to one machine. */
const proxies = {
  nginx: {
    file: 'nginx.conf',
    args: (copy: string, folder: string) => [
      ...['-p', folder, '-c', copy, '-g'],
      `daemon off; pid ${join(folder, 'pid')};`,
    ],
    ports: (text: string, { http, https }: Ports) =>
      text
        .replaceAll(/listen \[::\]:\d+.*;/g, '')
        .replace('listen 80;', `listen 127.0.0.1:${http};`)
        .replace('listen 443', `listen 127.0.0.1:${https}`),
  },
  haproxy: {
    file: 'haproxy.cfg',
    args: (copy: string) => ['-db', '-f', copy],
    ports: (text: string, { http, https }: Ports) =>
      text
        .replace('bind :::80 v4v6', `bind 127.0.0.1:${http}`)
        .replace('bind :::443 v4v6', `bind 127.0.0.1:${https}`)
        .replace(/^ {2}(user|group) .*\n/gm, ''),
  },
  caddy: {
    file: 'Caddyfile',
    args: (copy: string) => ['run', '--adapter', 'caddyfile', '--config', copy],
    ports: (text: string, { http, https }: Ports) =>
      text
        .replace(
          'admin off',
          `admin off\n\thttp_port ${http}\n\thttps_port ${https}\n\tauto_https disable_redirects`,
        )
        .replace('\tlog\n', '\tlog\n\ttls CERT KEY\n'),
  },
} as const

interface Ports {
  readonly http: string
  readonly https: string
}

describe.each(Object.keys(proxies) as (keyof typeof proxies)[])('through %s', (program) => {
  const installed = isInstalled(program)
  let place: Workplace
  let tenant: Tenant
  let account_id: string
  let person: number
  let cookie: string
  let folder: string
  let certificates: Certificates
  let proxy: ChildProcess
  let https: string

  beforeAll(async () => {
    if (!installed) return
    const [port, missing, http] = [await freePort(), await freePort(), await freePort()]
    https = await freePort()
    const env = { PARLEY_TRUSTED_PROXIES: '127.0.0.1', PARLEY_BASE_URL: `https://localhost:${https}` }
    place = await openWorkplace({ env, port: Number(port) })
    await place.work()
    tenant = await place.service.tenant()
    account_id = await place.connected(tenant)
    person = place.person()
    place.write(account_id, person, 'Send it, please.')
    await place.untilStored(account_id, 1)
    cookie = `__Host-${await signIn(place.service, tenant.user_id)}`
    folder = await mkdtemp(join(tmpdir(), 'parley-proxy-'))
    certificates = new Certificates()
    proxy = await start({ http, https }, [port, missing])
    await until('it passes requests on', hangMs, async () => {
      return (await ask('GET', '/api/v1/me').catch(() => undefined))?.status === 200
    })
  })
  afterAll(async () => {
    if (!installed) return
    // SIGKILL would leave the workers of nginx behind.
    const ended = once(proxy, 'exit')
    proxy.kill('SIGTERM')
    await ended
    certificates.remove()
    await rm(folder, { recursive: true })
  })

  /** The first process is ours, and the second is away. */
  async function start(ports: Ports, upstreams: readonly string[]): Promise<ChildProcess> {
    const { file, args, ports: listening } = proxies[program]
    const { key, cert } = certificates.make('localhost', { days: 2 })
    const names = {
      key: join(folder, 'key.pem'),
      cert: join(folder, 'cert.pem'),
      both: join(folder, 'both.pem'),
    }
    await writeFile(names.key, key)
    await writeFile(names.cert, cert)
    await writeFile(names.both, Buffer.concat([cert, key]))
    const copy = join(folder, file)
    const [first = '', second = ''] = upstreams
    const text = listening(textOf(file), ports)
      .replace('/etc/ssl/parley/fullchain.pem', names.cert)
      .replace('/etc/ssl/parley/privkey.pem', names.key)
      .replace('/etc/haproxy/certs/parley.pem', names.both)
      .replace('/var/log/nginx', folder)
      .replace('tls CERT KEY', `tls ${names.cert} ${names.key}`)
      .replaceAll('127.0.0.1:8080', `127.0.0.1:${first}`)
      .replaceAll('127.0.0.1:8081', `127.0.0.1:${second}`)
    await writeFile(copy, text)
    // Workers of nginx run as another user.
    await chmod(folder, 0o755)
    const output = openSync(join(folder, 'output'), 'a')
    const env = { PATH, HOME: folder, DOMAIN: `localhost:${ports.https}` }
    return spawn(program, args(copy, folder), { env, stdio: ['ignore', output, output] })
  }

  interface Asked {
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: Buffer
  }

  function begin(method: string, path: string, { headers = {}, body }: Asked = {}): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const options = {
        method,
        headers: { authorization: `Bearer ${tenant.key}`, ...headers },
        rejectUnauthorized: false,
        agent: false,
      } as const
      const asked = request(`https://localhost:${https}${path}`, { ...options, family: 4 }, resolve)
      asked.on('error', reject)
      asked.end(body)
    })
  }

  async function ask(method: string, path: string, asked: Asked = {}) {
    const response = await begin(method, path, asked)
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    // Its values one by one: a browser ignores all but the first.
    const secured = response.headersDistinct['strict-transport-security']
    expect([path, secured]).toEqual([path, ['max-age=31536000']])
    return { status: response.statusCode, body: text.startsWith('{') ? JSON.parse(text) : text }
  }

  /**
   * While a busy process misses its probes, a proxy answers for it and ends the connection, often while the body is being
   * written: nothing has reached Parley then.
   */
  function askReady(method: string, path: string, asked: Asked = {}) {
    return until('a process is ready', hangMs, async () => {
      const answer = await ask(method, path, asked).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EPIPE' && error.code !== 'ECONNRESET') throw error
      })
      return answer !== undefined && answer.status !== 503 && answer
    })
  }

  const asUser = (): Record<string, string> => ({ cookie, origin: `https://localhost:${https}` })

  test.runIf(!installed)('is not installed, so it was not tried', () => {})

  test.runIf(installed)('a file of 25 MiB arrives with its SHA-256', async () => {
    const bytes = randomBytes(25 * mib)
    const form = new FormData()
    form.set('account_id', account_id)
    form.set('chat_id', `platform:chat:${person}`)
    form.set('attachments', new Blob([bytes], { type: 'application/pdf' }), 'offer.pdf')
    const encoded = new Response(form)
    const headers = {
      'idempotency-key': randomUUID(),
      'content-type': encoded.headers.get('content-type') ?? '',
    }
    const body = Buffer.from(await encoded.arrayBuffer())
    expect(await askReady('POST', '/api/v1/messages', { headers, body })).toMatchObject({ status: 200 })
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    expect(place.sandbox.world.journal(0).map(({ file_sha256 }) => file_sha256)).toContain(sha256)
  })

  test.runIf(installed)('an import of 10 MiB is stored, and a larger body elsewhere is refused', async () => {
    const lines = Array.from({ length: 20_000 }, (_, n) => `u_${n}`.padEnd(550))
    const body = Buffer.from(`username\n${lines.join('\n')}\n`)
    expect(body.length).toBeGreaterThan(10 * mib)
    const path = `/dashboard/api/w/${tenant.workspace_id}/suppressions/import?file_name=list.csv`
    const headers = { ...asUser(), 'content-type': 'text/csv' }
    const imported = await askReady('POST', path, { headers, body })
    expect(imported).toMatchObject({ status: 200, body: { added: 20_000 } })
    const refused = await askReady('POST', '/api/v1/search', {
      headers: { 'content-type': 'application/json' },
      body: Buffer.alloc(10 * mib, 'a'),
    })
    expect(refused).toMatchObject({ status: 413, body: { code: 'payload_too_large' } })
  })

  interface Whole {
    readonly status: unknown
    readonly text: string
    /** Zero if the stream was not reset before the answer was whole. */
    readonly reset: number | undefined
  }

  async function askOverHttp2(body: Buffer, more: Readonly<Record<string, string>>): Promise<Whole> {
    const trusting = { rejectUnauthorized: false, ALPNProtocols: ['h2'], servername: 'localhost' }
    // Node's own limit for what a client has not sent yet is 10 MB.
    const session = connect(`https://localhost:${https}`, {
      maxSessionMemory: 100,
      createConnection: () => connectTls({ ...trusting, host: '127.0.0.1', port: Number(https) }),
    })
    try {
      const head = { ':method': 'POST', ':path': '/api/v1/search', 'content-type': 'application/json' }
      const stream = session.request({ ...head, authorization: `Bearer ${tenant.key}`, ...more })
      let status: unknown
      let text = ''
      stream.on('response', (headers) => {
        status = headers[':status']
      })
      stream.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
      })
      stream.on('error', () => {}).end(body)
      // Caddy leaves the request open: of a body above its window the rest is never sent, and the stream never closes.
      await Promise.race([once(stream, 'end'), once(stream, 'close')])
      return { status, text, reset: stream.rstCode }
    } finally {
      session.destroy()
    }
  }

  // nginx.conf offers no HTTP/2.
  test.runIf(installed && program !== 'nginx')(
    'over HTTP/2 a body above a limit gets its whole 413',
    async () => {
      for (const size of [2 * mib, 10 * mib, 30 * mib]) {
        for (const more of [{}, { 'content-length': String(size) }]) {
          const body = Buffer.alloc(size, 'a')
          const answer = await until('a process is ready', hangMs, async () => {
            const asked = await askOverHttp2(body, more)
            return asked.status !== 503 && asked
          })
          expect([size, more, answer]).toMatchObject([size, more, { status: 413, reset: 0 }])
          expect(JSON.parse(answer.text)).toMatchObject({ code: 'payload_too_large' })
        }
      }
    },
  )

  test.runIf(installed)('the live stream stays open, and what it sends arrives at once', async () => {
    const stream = await until('a process is ready', hangMs, async () => {
      const begun = await begin('GET', '/dashboard/api/stream', { headers: asUser() })
      return begun.statusCode === 200 && begun
    })
    let received = ''
    let ended = false
    stream.setEncoding('utf8').on('data', (text: string) => {
      received += text
    })
    stream.on('close', () => {
      ended = true
    })
    await until('it begins', hangMs, () => received.length > 0)
    const openedAt = performance.now()
    await until('comments keep it open', 150_000, () => performance.now() - openedAt > streamSeconds * 1_000)
    expect(ended).toBe(false)
    const before = received.length
    place.write(account_id, person, 'Did you get it?')
    await until('the mark arrives', hangMs, () => received.slice(before).includes('event: marks'))
    stream.destroy()
  })

  test.runIf(installed)('no query is logged', async () => {
    await askReady('GET', '/api/v1/me?key=seen-by-nobody')
    const files = ['output', 'parley.log'].map((name) => join(folder, name))
    const logged = () =>
      files
        .map((file) => (program !== 'nginx' && file.endsWith('.log') ? '' : readFileSync(file, 'utf8')))
        .join('')
    await until('it is logged', hangMs, () => logged().includes('/api/v1/me'))
    expect(logged()).not.toContain('seen-by-nobody')
  })

  test.runIf(installed)('503 in the contract’s form when no process is ready', async () => {
    await place.close()
    await until('none is ready', hangMs, async () => {
      const { status, body } = await ask('GET', '/api/v1/me')
      return status === 503 && body.code === 'store_unavailable'
    })
  })
})
