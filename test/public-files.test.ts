/** Files that need no key are made once: the same bytes for every caller, compressed, and identified by a tag. */
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { connect } from 'node:net'
import { runInNewContext } from 'node:vm'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../src/db/sql.ts'
import { ok, type Route, route } from '../src/route.ts'
import { hangMs, until } from './harness/process.ts'
import { openService, type Service } from './harness/service.ts'

let asked = 0
/** Counts the requests that reached it. */
const counting: readonly Route[] = [
  route({
    name: 'probe_count',
    method: 'GET',
    path: '/probe/count',
    summary: 'Counts',
    scopes: ['read'],
    effect: 'read',
    response: z.object({ asked: z.number() }),
    example: { response: { asked: 1 } },
    handle: async () => ok({ asked: ++asked }),
  }),
]

let service: Service
beforeAll(async () => {
  service = await openService({ routes: counting })
})
afterAll(() => service.close())

async function ask(path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') {
  const response = await fetch(service.url + path, {
    method,
    headers: { 'accept-encoding': 'identity', ...headers },
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

describe.each(['/api/v1/openapi.json', '/docs/', '/docs/page.css', '/docs/js/page.js', '/docs/js/scalar.js'])(
  'GET %s',
  (path) => {
    test('200 with a tag, and 304 for a client that has it', async () => {
      const plain = await ask(path)
      const tag = plain.headers.get('etag') ?? ''
      expect([plain.status, plain.headers.get('vary')]).toEqual([200, 'Accept-Encoding'])
      expect(tag).toMatch(/^"[\w-]{22}"$/)
      for (const given of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
        const known = await ask(path, { 'if-none-match': given })
        expect([known.status, known.text, known.headers.get('etag')]).toEqual([304, '', tag])
      }
      expect((await ask(path, { 'if-none-match': '"other"' })).status).toBe(200)
    })

    test('200 compressed for a client that accepts it, with its own tag', async () => {
      const plain = await ask(path)
      const zipped = await ask(path, { 'accept-encoding': 'br;q=1, GZIP;q=0.8' })
      expect(zipped.headers.get('content-encoding')).toBe('gzip')
      expect(zipped.text).toBe(plain.text)
      expect(zipped.headers.get('etag')).not.toBe(plain.headers.get('etag'))
      expect(Number(zipped.headers.get('content-length'))).toBeLessThan(plain.text.length / 1.2)
      for (const refusal of ['gzip;q=0', 'gzip;q=0.000', 'br', 'identity']) {
        expect((await ask(path, { 'accept-encoding': refusal })).headers.get('content-encoding')).toBeNull()
      }
    })

    test('200 for HEAD', async () => {
      const head = await ask(path, {}, 'HEAD')
      expect([head.status, head.text]).toEqual([200, ''])
      expect(head.headers.get('etag')).toBe((await ask(path)).headers.get('etag'))
    })
  },
)

describe('the reference page', () => {
  test('200 with its own name, icon and language, and no inline script or style', async () => {
    const { text, headers } = await ask('/docs/')
    expect(text).toContain('<html lang="en">')
    expect(text).toContain('<title>Parley API</title>')
    expect(text).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\son\w+=|\sstyle=/)
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy).toMatch(/(^|; )default-src 'none'(;|$)/)
    expect(policy).toMatch(/(^|; )script-src 'self'(;|$)/)
    expect(policy).not.toMatch(/unsafe-eval|\*|https?:/)
    const linked = [...text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path ?? '')
    expect(linked).toEqual(
      expect.arrayContaining(['/docs/mark.svg', '/docs/js/page.js', '/docs/js/scalar.js']),
    )
    for (const path of new Set(linked)) expect([path, (await ask(path)).status]).toEqual([path, 200])
  })

  test('keeps a key for the tab, and sends no request to another server', async () => {
    const { text } = await ask('/docs/js/page.js')
    expect(await runPage(service.url, text)).toEqual({
      storage: 'of the tab',
      mounted: '#reference',
      chapters: [expect.objectContaining({ slug: 'api', persistAuth: true, telemetry: false })],
    })
  })

  test("its quickstart names the page's own address", async () => {
    const { text } = await ask('/docs/js/page.js')
    const { chapters } = await runPage(service.url, text)
    const shown = String(chapters[0]?.content)
    expect(shown).toContain(`export PARLEY=${service.url}`)
    expect(shown).not.toContain('http://127.0.0.1:8080')
    const { text: served } = await ask('/api/v1/openapi.json')
    expect(shown).toBe(served.replaceAll('http://127.0.0.1:8080', service.url))
  })

  test('shows the document as served if it cannot be parsed immediately', async () => {
    const { text } = await ask('/docs/js/page.js')
    const { chapters } = await runPage('http://127.0.0.1:1', text)
    expect(chapters).toMatchObject([{ url: '/api/v1/openapi.json' }])
  })

  test('a chapter that the page cannot try has no button for it, and says where its calls go', async () => {
    const document = { openapi: '3.1.0' }
    const other = await openService({ sources: [{ title: 'Sandbox', slug: 'sandbox', document }] })
    try {
      const script = await (await fetch(`${other.url}/docs/js/page.js`)).text()
      const { chapters } = await runPage(other.url, script)
      expect(chapters).toMatchObject([
        { slug: 'api', default: true },
        { slug: 'sandbox', hideTestRequestButton: true },
      ])
      expect(chapters[0]).not.toHaveProperty('hideTestRequestButton')
      expect(JSON.parse(String(chapters[1]?.content))).toEqual(document)
    } finally {
      await other.close()
    }
  })

  test('begins with five steps, each with a command', async () => {
    const { info } = JSON.parse((await ask('/api/v1/openapi.json')).text)
    const [, quickstart = ''] = /^## Quickstart\n(.*?)\n## /s.exec(info.description) ?? []
    expect(quickstart.match(/^\d\. \*\*/gm)).toEqual(['1. **', '2. **', '3. **', '4. **', '5. **'])
    expect(quickstart.match(/^ {3}```sh$/gm)).toHaveLength(5)
  })
})

/** Runs the page's own script as a browser at this address would, on a window that records what is done to it. */
async function runPage(origin: string, script: string) {
  const window = { localStorage: 'forever', sessionStorage: 'of the tab' }
  const { promise: begun, resolve: begin } = Promise.withResolvers<[string, Record<string, unknown>[]]>()
  const Scalar = {
    createApiReference: (mounted: string, chapters: Record<string, unknown>[]) => begin([mounted, chapters]),
  }
  const addEventListener = (_: string, start: () => void) => start()
  const read = (path: string) => fetch(origin + path)
  runInNewContext(script, { window, Scalar, addEventListener, fetch: read, location: { origin } })
  const [mounted, chapters] = await begun
  return { storage: window.localStorage, mounted, chapters: JSON.parse(JSON.stringify(chapters)) }
}

test('302 from / to the reference', async () => {
  const response = await fetch(`${service.url}/`, { redirect: 'manual' })
  expect([response.status, response.headers.get('location')]).toEqual([302, '/docs/'])
})

test('the compressed document is the document', async () => {
  const { hostname, port } = new URL(service.url)
  const bytes = await new Promise<Buffer>((resolve) => {
    const pieces: Buffer[] = []
    const socket = connect(Number(port), hostname)
    socket.on('data', (piece) => pieces.push(piece)).on('close', () => resolve(Buffer.concat(pieces)))
    socket.write(
      'GET /api/v1/openapi.json HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n',
    )
  })
  const body = gunzipSync(bytes.subarray(bytes.indexOf('\r\n\r\n') + 4))
  expect(JSON.parse(body.toString())).toMatchObject({ openapi: '3.1.0' })
})

test('refuses a body with too many properties for that, before they are checked', async () => {
  const { key } = await service.tenant()
  const many = Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`p${at}`, 1]))
  for (const path of ['/search', '/columns/set']) {
    const { status, body } = await service.post(path, { key, body: many })
    expect([status, body]).toEqual([
      400,
      { code: 'invalid_request', error: 'An object in the body has more than 200 properties.' },
    ])
  }
})

test('does no work for a client that left before the key was looked up', async () => {
  const { key } = await service.tenant()
  const { hostname, port } = new URL(service.url)
  const lock = await service.app.db.client()
  try {
    await lock.query('begin; lock table keys in access exclusive mode')
    const socket = connect(Number(port), hostname)
    socket.write(`GET /api/v1/probe/count HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`)
    await until('the key is being looked up', hangMs, async () => {
      const waiting = await service.app.db.rows(sql`
        select 1 from pg_locks where not granted and relation = 'keys'::regclass`)
      return waiting.length > 0
    })
    socket.destroy()
    await until('the service has heard it', hangMs, () =>
      service.log.some(
        (line) => line.includes('the client disconnected before') && line.includes('probe_count'),
      ),
    )
    await lock.query('rollback')
    await until('it was dropped', hangMs, async () =>
      (await service.app.metrics.metrics()).includes('parley_http_dropped_total{reason="closed"} 1'),
    )
    expect(asked).toBe(0)
    expect((await service.get('/probe/count', { key })).body).toEqual({ asked: 1 })
  } finally {
    await lock.end()
  }
})

test('reads the files of the migrations once, not for every /readyz', async () => {
  expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
  const { readFile } = fs
  let read = 0
  fs.readFile = ((...given: Parameters<typeof readFile>) => {
    read++
    return readFile(...given)
  }) as typeof readFile
  syncBuiltinESMExports()
  try {
    for (let n = 0; n < 3; n++) expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
  } finally {
    fs.readFile = readFile
    syncBuiltinESMExports()
  }
  expect(read).toBe(0)
})
