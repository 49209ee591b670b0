import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../test/harness/service.ts'

describe('Strict-Transport-Security', () => {
  const opened: Service[] = []
  afterAll(async () => {
    for (const service of opened) await service.close()
  })

  const paths = ['/api/v1/me', '/api/v1/nothing', '/dashboard/', '/docs/', '/healthz', '/nowhere', '/%']

  /** What is not a request that HTTP knows, with its status. */
  const broken = [
    ['400', 'nonsense\r\n\r\n'],
    ['431', `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(20_000)}\r\n\r\n`],
  ] as const

  async function open(env: Readonly<Record<string, string>>): Promise<Service> {
    const service = await openService({ env })
    opened.push(service)
    return service
  }

  async function speak({ url }: Service, lines: string): Promise<string> {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.write(lines)
    return text(socket)
  }

  async function headersOf(env: Readonly<Record<string, string>>): Promise<(string | null)[]> {
    const service = await open(env)
    const answers = await Promise.all(paths.map((path) => fetch(service.url + path, { redirect: 'manual' })))
    return answers.map(({ headers }) => headers.get('strict-transport-security'))
  }

  test('is in every answer, also in refusals, where the base URL is https', async () => {
    const sent = await headersOf({ PARLEY_BASE_URL: 'https://parley.example.com' })
    expect(sent).toEqual(paths.map(() => 'max-age=31536000'))
  })

  test('is in the answer to what is no request, where the base URL is https', async () => {
    const service = await open({ PARLEY_BASE_URL: 'https://parley.example.com' })
    const plain = await open({})
    for (const [status, lines] of broken) {
      const answer = await speak(service, lines)
      expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
      expect(answer).toContain('\r\nstrict-transport-security: max-age=31536000\r\n')
      expect(await speak(plain, lines)).not.toContain('strict-transport-security')
    }
  })

  test('is in no answer where it is http, or not known', async () => {
    expect(await headersOf({ PARLEY_BASE_URL: 'http://127.0.0.1:8080' })).toEqual(paths.map(() => null))
    expect(await headersOf({})).toEqual(paths.map(() => null))
  })
})
