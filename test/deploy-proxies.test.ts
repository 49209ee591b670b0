/** The reverse proxies in deploy/: what they pass on, how long they wait, what they answer themselves and what they log. */
import { describe, expect, test } from 'vitest'
import { apiPrefix, ownPrefix, workspacePrefix } from '../src/contract.ts'
import { errors } from '../src/lib/errors.ts'
import { ownRoutes, workspaceRoutes } from '../src/lists/dashboard-routes.ts'
import { routes } from '../src/lists/routes.ts'
import type { Route } from '../src/route.ts'
import { textOf } from './harness/deploy.ts'

describe.each(['Caddyfile', 'haproxy.cfg', 'nginx.conf'])('%s', (proxy) => {
  const text = textOf(proxy)
  const pattern = (start: string) =>
    [...text.matchAll(new RegExp(`${start} (\\^\\S+\\$)`, 'g'))].map(([, source = '']) => new RegExp(source))
  const patterns = [...pattern('path_regexp'), ...pattern('path_reg'), ...pattern('location ~')]

  const placed = [
    ...routes.map((route) => [apiPrefix + route.path, route] as const),
    ...[...routes, ...workspaceRoutes].map((route) => [workspacePrefix + route.path, route] as const),
    ...ownRoutes.map((route) => [ownPrefix + route.path, route] as const),
  ]
  const where = (takes: (route: Route) => boolean) =>
    placed
      .filter(([, route]) => takes(route))
      .map(([path]) => path.replaceAll(/\{\w+\}/g, '018f0000-0000-7000-8000-000000000000'))

  test('gives time to exactly the addresses that take files', () => {
    const taking = where(({ form, text: file }) => form !== undefined || file !== undefined)
    expect(taking.length).toBeGreaterThanOrEqual(3)
    const matched = where(() => true).filter((path) => patterns.some((each) => each.test(path)))
    expect(new Set(matched)).toEqual(new Set(taking))
    expect(text).toMatch(/120s/)
  })

  test('leaves the size of every other body to Parley', () => {
    const largest = Math.max(...placed.map(([, { body_limit = 0 }]) => body_limit))
    expect(largest).toBeLessThan(9 * 1024 ** 2)
    const sizes = [...text.matchAll(/(?:client_max_body_size|max_size) (\w+)/g)].map(([, size]) => size)
    const expected = { Caddyfile: ['26MiB', '65MiB', '9MiB'], 'nginx.conf': ['9m', '26m', '65m'] }
    expect(sizes).toEqual(expected[proxy as keyof typeof expected] ?? [])
  })

  test('names the stream, which sends something every 20 s', () => {
    expect(where(({ live }) => live === true)).toContain('/dashboard/api/stream')
    expect(text).toContain('/dashboard/api/stream')
  })

  test('answers with codes of the contract', () => {
    const bodies = [...text.matchAll(/['`](\{"error".*?\})['`]/g)].map(([, body = '']) => JSON.parse(body))
    expect(bodies.map(({ code }) => code)).toEqual(
      expect.arrayContaining(['store_unavailable', 'outcome_ambiguous']),
    )
    for (const body of bodies) {
      expect(Object.keys(body)).toEqual(['error', 'code'])
      expect(errors).toHaveProperty(body.code)
    }
  })

  test('logs no query', () => {
    expect(text).not.toMatch(/\$(request|request_uri|args|query_string)\b(?!;)|%HU|%HQ|%r\b|option httplog/)
    expect(text).toMatch(/\$uri|%HPO|request>uri regexp "\[\?\]\.\*" ""/)
  })
})
