/** A request's source, as its X-RateLimit-* headers show it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../test/harness/service.ts'

const limit = 1_000_000
let behind: Service
let alone: Service
let elsewhere: Service
beforeAll(async () => {
  behind = await openService({ env: { PARLEY_TRUSTED_PROXIES: '127.0.0.1,10.0.0.0/8' } })
  alone = await openService()
  elsewhere = await openService({ env: { PARLEY_TRUSTED_PROXIES: '10.0.0.0/8' } })
})
afterAll(() => Promise.all([behind, alone, elsewhere].map((service) => service.close())))

/** The requests that its source has made so far, including this one. */
async function count(service: Service, forwarded?: string): Promise<number> {
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
  const answer = await service.get('/me', { key: 'none', headers })
  expect(answer.status).toBe(401)
  return limit - Number(answer.headers.get('x-ratelimit-remaining'))
}

describe('through a trusted proxy', () => {
  test.each([
    ['the last address that is no proxy', '198.51.100.1', '198.51.100.1, 10.0.0.3'],
    ['not what the client had written before', '198.51.100.2', '1.2.3.4, 198.51.100.2'],
    ['with a port', '198.51.100.3', '198.51.100.3:4711'],
    ['IPv6 with a port, by its /64', '2001:db8:1:1::1', '[2001:db8:1:1::2]:4711'],
    ['IPv4 over IPv6', '198.51.100.4', '::ffff:198.51.100.4'],
  ])('counts as %s', async (_, one, other) => {
    expect(await count(behind, one)).toBe(1)
    expect(await count(behind, other)).toBe(2)
  })

  test('counts as the proxy when the header names no client, or something that is not an address', async () => {
    const before = await count(behind)
    for (const [more, forwarded] of [
      '',
      '10.0.0.3, 127.0.0.1',
      'unknown',
      '203.0.113.9, unknown',
      '_hidden',
      'fe80::1%eth-0',
    ].entries()) {
      expect(await count(behind, forwarded), forwarded).toBe(before + more + 1)
    }
  })
})

describe.each(['no proxy', 'another proxy'])('where %s is trusted', (whom) => {
  test('X-Forwarded-For changes nothing', async () => {
    const service = whom === 'no proxy' ? alone : elsewhere
    const before = await count(service)
    expect(await count(service, '198.51.100.1')).toBe(before + 1)
    expect(await count(service, '10.0.0.3, 198.51.100.2')).toBe(before + 2)
  })
})
