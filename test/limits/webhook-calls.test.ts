/**
 * Hostile URLs and receivers, on real sockets. The limit of a call is made small (`patched.ts`), and all calls run at
 * once. The table of outcomes is printed.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { createServer as createSecure } from 'node:https'
import { type AddressInfo, connect, createServer as createRaw, type Server, type Socket } from 'node:net'
import { queryObjects } from 'node:v8'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CallOutcome, HttpCaller } from '../../src/capabilities/webhooks/call.ts'
import { resolveWith } from '../../src/lib/public-hosts.ts'
import { Certificates, hasOpenssl } from '../harness/certificates.ts'
import { openNameServer } from '../harness/name-server.ts'
import { timed } from '../harness/timed.ts'

const servers: { close(): void }[] = []
const callers: HttpCaller[] = []
afterAll(async () => {
  for (const server of servers) server.close()
  await Promise.all(callers.map((caller) => caller.close()))
  certificates.remove()
})

/** Every connection that reached a server on loopback which no call may reach. */
let connections = 0
let forbidden: number
beforeAll(async () => {
  forbidden = await listen(
    createRaw((socket) => {
      connections += 1
      socket.destroy()
    }),
  )
})

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => {}))
    socket.on('close', () => sockets.delete(socket))
  })
  servers.push({
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  })
  return (server.address() as AddressInfo).port
}

function caller(
  allow: readonly string[],
  names: Readonly<Record<string, readonly string[]>> = {},
  ca?: string,
): HttpCaller {
  const resolve = async (name: string) => names[name] ?? []
  const made = new HttpCaller({ allow: new Set(allow), resolve, ...(ca !== undefined && { ca }) })
  callers.push(made)
  return made
}

const post = (by: HttpCaller, url: string) => by.post({ url, headers: { 'x-a': 'b' }, body: '{}' })

/** The result in one word: the problem, or the status. */
const wordOf = (outcome: CallOutcome | undefined) => String(outcome?.error ?? outcome?.status)

const table: string[][] = []
function note(what: string, outcome: CallOutcome | undefined): string {
  table.push([what, wordOf(outcome), `${outcome?.ms} ms`])
  return wordOf(outcome)
}
afterAll(() => {
  const widths = [0, 1, 2].map((at) => Math.max(...table.map((row) => row[at]?.length ?? 0)))
  const lines = table.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  '))
  process.stdout.write(`${lines.join('\n')}\n${table.length} hostile URLs and receivers\n`)
})

const addresses = [
  ...['127.0.0.1', '127.1.2.3', '0.0.0.0', '10.0.0.1', '100.64.0.1', '100.100.100.200', '169.254.169.254'],
  ...['172.16.0.1', '172.31.255.255', '192.0.0.1', '192.0.2.1', '192.88.99.1', '192.168.0.1', '198.18.0.1'],
  ...['198.51.100.1', '203.0.113.1', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
  ...[
    '168.63.129.16',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:169.254.169.254',
    '::127.0.0.1',
    '64:ff9b::7f00:1',
  ],
  ...[
    '64:ff9b:1::1',
    '100::1',
    '2001::1',
    '2001:db8::1',
    '2001:10::1',
    '2002:7f00:1::',
    'fc00::1',
    'fd00:ec2::254',
  ],
  ...['fe80::1', 'fec0::1', 'ff02::1', '5f00::1', '3fff::1', '::ffff:0:127.0.0.1'],
]

test('does not call a literal address that is not public, in any notation', async () => {
  const strict = caller([])
  const spelled = ['127.1', '0x7f.1', '2130706433', '0177.0.0.1', '①②⑦.0.0.1', '0', '0xa9fea9fe']
  const literal = addresses.map((each) => (each.includes(':') ? `[${each}]` : each))
  for (const host of [...literal, ...spelled]) {
    const outcome = await post(strict, `https://${host}:${forbidden}/`)
    expect(note(host, outcome), host).toBe('blocked_address')
  }
  expect(connections).toBe(0)
})

test('does not call a name if one of its addresses is not public', async () => {
  for (const address of addresses) {
    for (const answers of [[address], ['8.8.8.8', address], [address, '2606:4700::1111']]) {
      const strict = caller([], { 'evil.example': answers })
      const outcome = await post(strict, `https://evil.example:${forbidden}/`)
      expect(note(`name with ${answers.join(' and ')}`, outcome), address).toBe('blocked_address')
    }
  }
  expect(connections).toBe(0)
})

test('refuses at every call a URL that would be refused at creation', async () => {
  const strict = caller([], { 'a.example': ['127.0.0.1'] })
  for (const url of [
    `http://a.example:${forbidden}/`,
    `https://user:pass@a.example:${forbidden}/`,
    'https://a.example:22/',
    'https://a.example:25/',
    'https://a.example:5432/',
    `https://localhost:${forbidden}/`,
    `https://localhost.:${forbidden}/`,
    `https://b.localhost:${forbidden}/`,
    `https://a.internal:${forbidden}/`,
    `file:///etc/passwd`,
    'not a url',
  ]) {
    expect(note(url, await post(strict, url)), url).toBe('blocked_address')
  }
  expect(note('a name that does not exist', await post(strict, 'https://nobody.example/'))).toBe('dns')
  expect(connections).toBe(0)
})

test('never connects to a name that turns from public to private: 2,000 rounds', async () => {
  const mapped = '::ffff:127.0.0.1'
  const rounds = 2_000
  const seen = new Map<string, number>()
  const server = await openNameServer((name, question) => {
    const round = seen.get(name) ?? 0
    const mixed = [
      { A: ['127.0.0.1'], AAAA: [] },
      { A: ['8.8.8.8', '127.0.0.1'], AAAA: [] },
      { A: ['8.8.8.8'], AAAA: ['::1'] },
      { A: ['8.8.8.8'], AAAA: [mapped, '2606:4700::1111'] },
      { A: [], AAAA: ['::1'] },
      { A: ['0.0.0.0'], AAAA: [] },
    ]
    return mixed[round % mixed.length]?.[question] ?? []
  })
  const strict = new HttpCaller({ allow: new Set(), resolve: (name) => resolveWith(server.resolver, name) })
  callers.push(strict)
  const words = new Map<string, number>()
  const one = async (round: number) => {
    const name = `r${round}.rebind.example`
    seen.set(name, round)
    const word = wordOf(await post(strict, `https://${name}:${forbidden}/`))
    words.set(word, (words.get(word) ?? 0) + 1)
  }
  for (let round = 0; round < rounds; round += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, n) => one(round + n)))
  }
  server.close()
  table.push(['rebinding', [...words].flat().join(' '), ''])
  expect([...words]).toEqual([['blocked_address', rounds]])
  expect(connections).toBe(0)
  // Each family once: the checked address is the one that would be connected to.
  expect(server.asked()).toBeLessThan(rounds * 2.2)
})

/** A receiver that a test answers by hand. */
async function http(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer({ maxHeaderSize: 1 << 20 }, (request, response) => {
    request.resume().on('end', () => answer(response.on('error', () => {})))
  })
  return `http://127.0.0.1:${await listen(server)}/`
}

async function raw(answer: (socket: Socket) => void): Promise<string> {
  const server = createRaw((socket) => answer(socket.on('error', () => {})))
  return `http://127.0.0.1:${await listen(server)}/`
}

function endless(response: ServerResponse): void {
  const chunk = Buffer.alloc(64 * 1024, 'x')
  const more = () => {
    while (!response.destroyed && response.write(chunk));
  }
  response.on('drain', more)
  more()
}

/** A port on which no server listens, and none can: it is our own end of a connection. */
async function closedPort(): Promise<number> {
  const socket = connect(await listen(createRaw()), '127.0.0.1').on('error', () => {})
  await once(socket, 'connect')
  return socket.localPort ?? 0
}

test(
  'a receiver that hangs, drips, floods, lies or redirects costs its own time and no more',
  timed,
  async () => {
    const open = caller(['127.0.0.1'])
    const closed = await closedPort()
    let followed = 0
    const target = await http((response) => {
      followed += 1
      response.end()
    })
    const bomb = gzipSync(Buffer.alloc(32 * 1024 * 1024))
    const cases: readonly (readonly [string, string, string, Promise<string>])[] = [
      ['says nothing', 'timeout', '', raw(() => {})],
      ['TLS that says nothing', 'timeout', 'https', raw(() => {})],
      [
        'hangs after headers',
        'timeout',
        '',
        http((r) => void r.writeHead(200, { 'content-length': 9 }).write('x')),
      ],
      ['drips a header byte every 0.3 s', 'timeout', '', raw((s) => drip(s, 'HTTP/1.1 200 OK\r\nx: '))],
      [
        'drips a body byte every 0.3 s',
        'timeout',
        '',
        raw((s) => drip(s, 'HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n')),
      ],
      ['interim answers forever', 'timeout', '', raw((s) => drip(s, '', 'HTTP/1.1 102 Processing\r\n\r\n'))],
      ['endless body after 200', '200', '', http(endless)],
      ['endless body after 500', '500', '', http((r) => endless(r.writeHead(500)))],
      [
        '10 GB announced',
        '200',
        '',
        http((r) => endless(r.writeHead(200, { 'content-length': 10 * 2 ** 30 }))),
      ],
      ['gzip bomb', '400', '', http((r) => void r.writeHead(400, { 'content-encoding': 'gzip' }).end(bomb))],
      [
        '100 KB of headers',
        'too_large',
        '',
        http((r) => void r.writeHead(200, { big: 'x'.repeat(100_000) }).end()),
      ],
      [
        'many headers',
        'too_large',
        '',
        http(
          (r) =>
            void r
              .writeHead(200, Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`h${n}`, 'x'])))
              .end(),
        ),
      ],
      ['resets', 'reset', '', raw((s) => void s.resetAndDestroy())],
      ['closes without an answer', 'reset', '', raw((s) => void s.once('data', () => s.end()))],
      [
        'closes within the body',
        'reset',
        '',
        raw((s) => void s.once('data', () => s.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx'))),
      ],
      [
        'speaks another language',
        'invalid_response',
        '',
        raw((s) => void s.once('data', () => s.end('220 smtp.example ESMTP\r\n'))),
      ],
      [
        'bad chunks',
        'invalid_response',
        '',
        raw(
          (s) =>
            void s.once('data', () => s.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n')),
        ),
      ],
      ['no server listens', 'refused', '', Promise.resolve(`http://127.0.0.1:${closed}/`)],
      ['plain HTTP behind https', 'tls', 'https', http((r) => void r.end())],
      ...[301, 302, 303, 307, 308].map(
        (status) =>
          [
            `${status} to metadata`,
            String(status),
            '',
            http((r) => void r.writeHead(status, { location: 'http://169.254.169.254/' }).end()),
          ] as const,
      ),
      ['307 to a receiver', '307', '', http((r) => void r.writeHead(307, { location: target }).end())],
      ['410', '410', '', http((r) => void r.writeHead(410).end())],
      ['429 with one day', '429', '', http((r) => void r.writeHead(429, { 'retry-after': '86400' }).end())],
      [
        '503 with a date',
        '503',
        '',
        http(
          (r) => void r.writeHead(503, { 'retry-after': new Date(Date.now() + 60_000).toUTCString() }).end(),
        ),
      ],
      ['500', '500', '', http((r) => void r.writeHead(500).end('no\u0000\u001b[31m\n'))],
      ['204', '204', '', http((r) => void r.writeHead(204).end())],
    ]
    const outcomes = await Promise.all(
      cases.map(async ([what, expected, scheme, made]) => {
        const url = (await made).replace('http:', scheme ? `${scheme}:` : 'http:')
        return { what, expected, outcome: await post(open, url) }
      }),
    )
    for (const { what, expected, outcome } of outcomes) {
      expect(note(what, outcome), what).toBe(expected)
      if (expected === 'timeout') expect(outcome?.ms).toBeGreaterThanOrEqual(3_900)
      expect(outcome?.ms).toBeLessThan(4_500)
      expect(outcome?.response?.length ?? 0).toBeLessThanOrEqual(2_048)
      expect(outcome?.response ?? '').not.toMatch(/\p{Cc}/u)
    }
    const of = (what: string) => outcomes.find((each) => each.what === what)?.outcome
    expect(of('429 with one day')?.retry_after).toBe(86_400)
    expect(of('503 with a date')?.retry_after).toBeGreaterThan(50)
    expect(of('endless body after 500')?.response).toHaveLength(2_048)
    expect(of('500')?.response).toBe('no��[31m�')
    expect(followed).toBe(0)
  },
)

/** The largest piece that a socket of these calls has read. */
async function largestPiece(calls: () => Promise<void>): Promise<number> {
  let largest = 0
  const watch = (message: unknown) => {
    const { socket } = message as { socket: Socket }
    const push = socket.push.bind(socket)
    socket.push = (chunk: Buffer | null) => {
      largest = Math.max(largest, chunk?.length ?? 0)
      return push(chunk)
    }
  }
  subscribe('undici:client:connected', watch)
  await calls()
  unsubscribe('undici:client:connected', watch)
  return largest
}

test('reads an endless answer in small pieces, so that hundreds of them fit into memory', async () => {
  const open = caller(['127.0.0.1'])
  const url = await http((r) => endless(r.writeHead(200, { 'content-length': 10 * 2 ** 30 })))
  const largest = await largestPiece(async () => {
    for (let n = 0; n < 5; n++) expect(wordOf(await post(open, url))).toBe('200')
  })
  expect(largest).toBeGreaterThan(0)
  expect(largest).toBeLessThanOrEqual(8 * 1024)
})

test('a call leaves nothing behind, however long the signal lives that may cut it off', async () => {
  const open = caller(['127.0.0.1'])
  const url = await http((response) => void response.end())
  const { signal } = new AbortController()
  const calls = async (count: number) => {
    for (let n = 0; n < count; n++) await open.post({ url, headers: {}, body: '{}' }, signal)
    return queryObjects(AbortSignal, { format: 'count' })
  }
  const before = await calls(10)
  expect(await calls(100)).toBeLessThan(before + 50)
})

test('a call that is cut off ends immediately, also while it connects, with an unknown result', async () => {
  const open = caller(['127.0.0.1'])
  const silent = await raw(() => {})
  for (const url of [silent, silent.replace('http:', 'https:')]) {
    const cut = new AbortController()
    const begun = performance.now()
    const outcome = open.post({ url, headers: {}, body: '{}' }, cut.signal)
    setTimeout(() => cut.abort(), 50)
    expect(await outcome).toBeUndefined()
    expect(performance.now() - begun).toBeLessThan(3_000)
  }
})

function drip(socket: Socket, first: string, each = 'x'): void {
  socket.write(first)
  const timer = setInterval(() => void socket.write(each), 300)
  socket.on('close', () => clearInterval(timer))
}

const certificates = new Certificates()

test.runIf(hasOpenssl)('verifies certificates, whatever the environment says', async () => {
  const authority = certificates.make('authority', { days: 30 })
  const good = certificates.make('good.example', { by: 'authority', days: 30 })
  const old = certificates.make('old.example', { by: 'authority', days: -1 })
  const self = certificates.make('self.example', { days: 30 })
  const names = { 'good.example': ['127.0.0.1'], 'old.example': ['127.0.0.1'] }
  const known = { ...names, 'self.example': ['127.0.0.1'], 'wrong.example': ['127.0.0.1'] }
  const open = caller(['127.0.0.1'], known, authority.cert.toString())
  const serve = async (name: string, pair: typeof good) => {
    const port = await listen(createSecure(pair, (_, response) => void response.end()))
    return post(open, `https://${name}:${port}/`)
  }
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  try {
    expect(note('good certificate', await serve('good.example', good))).toBe('200')
    const largest = await largestPiece(async () => {
      const flood = await listen(createSecure(good, (_, response) => endless(response)))
      expect(note('endless body over TLS', await post(open, `https://good.example:${flood}/`))).toBe('200')
    })
    expect(largest).toBeLessThanOrEqual(8 * 1024)
    expect(note('expired certificate', await serve('old.example', old))).toBe('tls')
    expect(note('self-signed certificate', await serve('self.example', self))).toBe('tls')
    expect(note('certificate of another name', await serve('wrong.example', good))).toBe('tls')
  } finally {
    Reflect.deleteProperty(process.env, 'NODE_TLS_REJECT_UNAUTHORIZED')
  }
})

test('does not use a proxy from the environment', async () => {
  const before = connections
  const proxy = `http://127.0.0.1:${forbidden}`
  Object.assign(process.env, {
    HTTP_PROXY: proxy,
    http_proxy: proxy,
    HTTPS_PROXY: proxy,
    NODE_USE_ENV_PROXY: '1',
  })
  try {
    const url = await http((response) => void response.end())
    expect(note('a proxy in the environment', await post(caller(['127.0.0.1']), url))).toBe('200')
  } finally {
    for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'NODE_USE_ENV_PROXY']) {
      Reflect.deleteProperty(process.env, name)
    }
  }
  expect(connections).toBe(before)
})
