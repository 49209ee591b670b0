/** The dashboard's pages: served from the list that the build made, and from nowhere else. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../test/harness/service.ts'

const page = '<!doctype html><title>Parley</title>'
const script = 'export const answer = 42'
let service: Service
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-pages-'))
  await mkdir(join(directory, 'assets'))
  await write('index.html', page)
  await write('assets/index-abc.js', script)
  await writeFile(join(directory, 'secret.txt'), 'not in the list')
  const entry = { encodings: ['br', 'gzip'] }
  await writeFile(
    join(directory, 'manifest.json'),
    JSON.stringify([
      { ...entry, file: 'index.html', type: 'text/html; charset=utf-8', tag: 'page', immutable: false },
      { ...entry, file: 'assets/index-abc.js', type: 'text/javascript', tag: 'script', immutable: true },
    ]),
  )
  service = await openService({ pages: directory })
})
afterAll(async () => {
  await service.close()
  await rm(directory, { recursive: true })
})

async function write(file: string, text: string): Promise<void> {
  await writeFile(join(directory, file), text)
  await writeFile(join(directory, `${file}.br`), brotliCompressSync(text))
  await writeFile(join(directory, `${file}.gz`), gzipSync(text))
}

interface Got {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** The path goes out as written: `fetch` would normalise it. */
function get(path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET'): Promise<Got> {
  const { promise, resolve, reject } = Promise.withResolvers<Got>()
  const { hostname, port } = new URL(service.url)
  const asked = request({ hostname, port, path, method, headers }, (response) => {
    const chunks: Buffer[] = []
    response.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.on('end', () =>
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
    )
  })
  asked.on('error', reject).end()
  return promise
}

describe('GET /dashboard and below', () => {
  test.each(['/dashboard', '/dashboard/', '/dashboard/w/019a/keys', '/dashboard/mcp-approvals?request=x'])(
    '200 with the page at %s',
    async (path) => {
      const { status, headers, body } = await get(path)
      expect([status, body.toString()]).toEqual([200, page])
      expect(headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-cache',
        'content-security-policy': expect.stringContaining("script-src 'self'; "),
        'x-frame-options': 'DENY',
      })
    },
  )

  test('200 with a hashed file, which a browser may keep forever', async () => {
    const { status, headers, body } = await get('/dashboard/assets/index-abc.js')
    expect([status, body.toString()]).toEqual([200, script])
    expect(headers['cache-control']).toBe('public, max-age=31536000, immutable')
  })

  test('200 compressed by the build, and 304 for a browser that has it', async () => {
    const brotli = await get('/dashboard/', { 'accept-encoding': 'gzip, br' })
    expect(brotliDecompressSync(brotli.body).toString()).toBe(page)
    const gzip = await get('/dashboard/', { 'accept-encoding': 'gzip, br;q=0' })
    expect(gunzipSync(gzip.body).toString()).toBe(page)
    const etag = String(gzip.headers.etag)
    expect(etag).not.toBe(brotli.headers.etag)
    const again = await get('/dashboard/', { 'accept-encoding': 'gzip', 'if-none-match': etag })
    expect([again.status, again.body.length]).toEqual([304, 0])
  })

  test.each([
    '/dashboard/assets/missing.js',
    '/dashboard/assets/',
    '/dashboard/manifest.json',
    '/dashboard/secret.txt',
    '/dashboard/../secret.txt',
    '/dashboard/%2e%2e/secret.txt',
    '/dashboard/assets/..%2fsecret.txt',
    '/dashboard/assets/%2e%2e%2f%2e%2e%2fpackage.json',
    '/dashboard//etc/passwd.txt',
    '/dashboard/oidc/elsewhere',
  ])('404 as JSON for %s', async (path) => {
    const { status, headers, body } = await get(path)
    expect([status, headers['content-type']]).toEqual([404, 'application/json; charset=utf-8'])
    expect(JSON.parse(body.toString())).toMatchObject({ code: 'not_found' })
  })

  test('401 as JSON for an unknown address of the API', async () => {
    const { status, body } = await get('/dashboard/api/nothing')
    expect([status, JSON.parse(body.toString()).code]).toEqual([401, 'not_signed_in'])
  })

  test('403 under a foreign host name', async () => {
    const { status, body } = await get('/dashboard/', { host: 'evil.example' })
    expect([status, JSON.parse(body.toString()).code]).toEqual([403, 'origin_refused'])
  })

  test('404 for any other method', async () => {
    expect((await get('/dashboard/keys', {}, 'POST')).status).toBe(404)
  })
})

describe('GET /docs/', () => {
  test('200 with a link to the dashboard, and without one where it is not built', async () => {
    const link = '<a class="dashboard" href="/dashboard/">'
    expect((await get('/docs/')).body.toString()).toContain(link)
    const bare = await openService({ pages: join(directory, 'not-built') })
    try {
      expect(await (await fetch(`${bare.url}/docs/`)).text()).not.toContain('/dashboard')
    } finally {
      await bare.close()
    }
  })
})

describe('GET /', () => {
  test('302 to the dashboard, and to the reference when it is not built', async () => {
    expect((await get('/')).headers.location).toBe('/dashboard/')
    const bare = await openService({ pages: join(directory, 'not-built') })
    try {
      const response = await fetch(bare.url, { redirect: 'manual' })
      expect([response.status, response.headers.get('location')]).toEqual([302, '/docs/'])
      expect((await fetch(`${bare.url}/dashboard/`)).status).toBe(404)
    } finally {
      await bare.close()
    }
  })
})
