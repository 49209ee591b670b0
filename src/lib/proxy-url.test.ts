import { describe, expect, test } from 'vitest'
import { parseProxyUrl, proxyHostProblemOf, shownProxy } from './proxy-url.ts'

/** As it is shown, or why it is refused. */
function judge(text: string, allow: readonly string[] = []): string {
  const proxy = parseProxyUrl(text)
  if (typeof proxy === 'string') return proxy
  return proxyHostProblemOf(proxy, new Set(allow)) ?? shownProxy(proxy)
}

describe('the host of a proxy', () => {
  const loopback = 'must not use the address "127.0.0.1", unless PARLEY_PROXY_ALLOW of the service lists it'
  test.each([
    '127.0.0.1',
    '%31%32%37.0.0.1',
    '127%2e0%2E0.1',
    '①②⑦.0.0.1',
    '１２７.0.0.1',
    '127。0。0。1',
    '0x7f.1',
    '0177.0.0.1',
    '2130706433',
    '127.0.0.1.',
    'user:secret@%31%32%37.1',
  ])('%s is judged as the address it stands for, under every scheme', (host) => {
    for (const scheme of ['socks5', 'SOCKS5', 'http', 'https']) {
      expect(judge(`${scheme}://${host}:1080`)).toBe(loopback)
    }
    expect(judge(`socks5://${host}:1080`, ['127.0.0.1'])).toBe('socks5://127.0.0.1:1080')
  })

  test('a name is decoded before it is judged, and kept as name servers know it', () => {
    expect(judge('socks5://%6cocalhost:1080')).toMatch(/^must not use the local name "localhost"/)
    expect(judge('socks5://ｄｂ.internal:1080')).toMatch(/^must not use the local name "db.internal"/)
    expect(judge('socks5://Proxy.Example.com:1080')).toBe('socks5://proxy.example.com:1080')
    expect(judge('socks5://bücher.example:1080')).toBe('socks5://xn--bcher-kva.example:1080')
    expect(judge('socks5://[2001:4860:4860:0::8888]:1080')).toBe('socks5://[2001:4860:4860::8888]:1080')
  })

  test('the standard ports of the web are ports like others', () => {
    expect(judge('socks5://proxy.example.com:80')).toBe('socks5://proxy.example.com:80')
    expect(judge('https://proxy.example.com:443')).toBe('https://proxy.example.com:443')
    expect(judge('https://proxy.example.com:80')).toBe('https://proxy.example.com:80')
  })

  test.each([
    'socks5:proxy.example.com:1080',
    'http:proxy.example.com:1080',
    'socks5:///proxy.example.com:1080',
    'socks5://%00.example.com:1080',
    'socks5://a%2fb.example.com:1080',
    'socks5://256.0.0.1:1080',
    'socks5://[fe80::1%25eth0]:1080',
    'socks5://proxy.example.com:65536',
    'socks5://:1080',
  ])('%s is refused', (text) => {
    expect(judge(text)).toMatch(/^must (begin with|name a host)/)
  })
})
