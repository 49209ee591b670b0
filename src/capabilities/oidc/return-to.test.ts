import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readReturnTo } from './return-to.ts'

describe('return_to', () => {
  test.each([
    '/dashboard/',
    '/dashboard/profile',
    '/dashboard/mcp-approvals?request=019a7e6e-7c1a-7b55-9f53-0d6a1f0c7a11',
    '/dashboard/w/0199a1f0-0000-7000-8000-000000000001/keys',
    '/dashboard/w/1/chats/platform%3Achat%3A42?tab=%2F%2Fx',
  ])('is kept: %s', (path) => {
    expect(readReturnTo(path)).toBe(path)
  })

  test.each([
    undefined,
    '',
    '/',
    'dashboard/',
    '/dashboardx/',
    '/dashboard.evil.example/',
    '//evil.example',
    '//evil.example/dashboard/',
    '/\\evil.example',
    '\\\\evil.example',
    '/dashboard/\\evil.example',
    '/dashboard/..\\..\\evil',
    'https://evil.example/dashboard/',
    'https:evil.example',
    'javascript:alert(1)',
    'javascript://dashboard/%0aalert(1)',
    'data:text/html,x',
    '/dashboard/../..',
    '/dashboard/../../evil',
    '/dashboard/..//evil.example',
    '/dashboard/%2e%2e/%2e%2e/',
    '/dashboard/%2E%2E%2Fevil',
    '/dashboard/..%2f..%2fevil',
    '/dashboard/%252e%252e/',
    '/dashboard/%5cevil.example',
    '/dashboard%2F',
    '/dashboard%2Fprofile',
    '/dashboard/%2f%2fevil.example',
    '/dashboard//evil.example',
    '/dashboard/%',
    '/dashboard/%00',
    '/dashboard/%ff',
    '/dashboard/\t/evil',
    '/\t/evil.example',
    '/dashboard/\r\nSet-Cookie: a=b',
    '/dashboard/%0d%0aSet-Cookie:%20a=b',
    ' /dashboard/',
    '/dashboard/api/gates',
    '/dashboard/API/gates',
    '/dashboard/oidc/start',
    '/dashboard/%6fidc/start',
    `/dashboard/${'x'.repeat(2_001)}`,
    '/dashboard/\ud800',
  ])('leads to the first page instead: %j', (path) => {
    expect(readReturnTo(path)).toBe('/dashboard/')
  })

  test('is a dashboard page of the same site, whatever the input', () => {
    const parts = [
      '/',
      '\\',
      '.',
      '..',
      '%2e',
      '%2F',
      '%5c',
      '//',
      'dashboard',
      '/dashboard/',
      'evil.example',
      ':',
      '@',
      '?',
      '#',
      '\t',
      'https:',
      'x',
    ]
    const texts = fc.oneof(
      fc.string(),
      fc.array(fc.constantFrom(...parts), { maxLength: 8 }).map((some) => some.join('')),
      fc.array(fc.constantFrom(...parts), { maxLength: 8 }).map((some) => `/dashboard/${some.join('')}`),
    )
    fc.assert(
      fc.property(texts, (text) => {
        const path = readReturnTo(text)
        const { origin, pathname } = new URL(path, 'https://parley.example')
        expect(origin).toBe('https://parley.example')
        expect(pathname.startsWith('/dashboard/')).toBe(true)
        expect(decodeURIComponent(pathname)).not.toMatch(/\\|\/\/|\/\.{1,2}(\/|$)|\p{Cc}/u)
        // Parsing a result again does not change it.
        expect(readReturnTo(path)).toBe(path)
      }),
      { numRuns: 500 },
    )
  })
})
