import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { platformVariables } from './cli/platforms.ts'
import { readConfig, variableNames } from './config.ts'
import { ConfigError } from './lib/errors.ts'

const secret = 'a secret for tests that is long enough'
const url = 'postgres://parley:hunter2@localhost/parley'

function faults(env: NodeJS.ProcessEnv): readonly string[] {
  try {
    readConfig(env, platformVariables)
    return []
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as ConfigError).faults
  }
}

describe('the configuration', () => {
  test('is documented: .env.example names every variable, and no other', () => {
    const text = readFileSync(join(import.meta.dirname, '..', '.env.example'), 'utf8')
    const documented = [...text.matchAll(/^#?([A-Z_]+)=/gm)].map((match) => match[1] ?? '')
    expect(documented.sort()).toEqual([...variableNames, ...Object.keys(platformVariables)].sort())
  })

  test('is complete without a single variable', () => {
    expect(readConfig({})).toMatchObject({
      database: { kind: 'embedded' },
      secret: undefined,
      host: '127.0.0.1',
      clock: 'system',
      rate_limit: 120,
      pool_size: 10,
      log_level: 'info',
    })
  })

  test('refuses an empty PARLEY_TELEGRAM_DC: a script that meant a data centre for tests would reach Telegram', () => {
    expect(faults({ PARLEY_TELEGRAM_DC: '' })).toEqual([
      'PARLEY_TELEGRAM_DC is set and empty. Unset it, or give it a value.',
    ])
    expect(faults({ PARLEY_TELEGRAM_API_ID: '' })).toEqual([])
  })

  test('uses given values, and ignores an empty variable', () => {
    const config = readConfig({
      DATABASE_URL: url,
      REDIS_URL: 'rediss://localhost:6380',
      PARLEY_SECRET: secret,
      PARLEY_BASE_URL: 'https://parley.example/',
      PARLEY_HOST: '0.0.0.0',
      PARLEY_CLOCK: 'manual',
      PARLEY_RATE_LIMIT: '5',
      PARLEY_POOL_SIZE: '5',
      PARLEY_LOG_LEVEL: 'warn',
      PARLEY_METRICS_TOKEN: '',
      PARLEY_DATA_DIR: '/somewhere',
      PATH: '/bin',
    })
    expect(config).toMatchObject({
      database: { kind: 'url', url },
      redis_url: 'rediss://localhost:6380',
      secret,
      base_url: 'https://parley.example',
      host: '0.0.0.0',
      clock: 'manual',
      rate_limit: 5,
      pool_size: 5,
      log_level: 'warn',
      metrics_token: undefined,
    })
  })

  test('names every fault at once, and repeats no value', () => {
    const env = {
      DATABASE_URL: 'mysql://root:hunter2@localhost/x',
      REDIS_URL: 'hunter2',
      PARLEY_SECRET: 'hunter2',
      PARLEY_BASE_URL: 'ftp://hunter2',
      PARLEY_CLOCK: 'hunter2',
      PARLEY_RATE_LIMIT: '1.5',
      PARLEY_POOL_SIZE: '4',
      PARLEY_LOG_LEVEL: 'loud',
      PARLEY_METRICS_TOKEN: 'hunter2',
      PARLEY_SANDBOX_URL: 'https://hunter2',
      PARLEY_PORT: '80',
      PARLEY_: '',
    }
    const named = faults(env)
    for (const name of Object.keys(env)) {
      expect(
        named.filter((fault) => fault.startsWith(`${name} `)),
        name,
      ).toHaveLength(1)
    }
    expect(named.join()).not.toContain('hunter2')
    for (const fault of named) expect(fault).toMatch(/^[A-Z_]+ .*\.$/)
  })

  test('accepts trusted proxies, by address and by network, and never all addresses', () => {
    const trusted = (text: string) => readConfig({ PARLEY_TRUSTED_PROXIES: text }).trusted_proxies
    expect(trusted('')).toEqual([])
    const named = trusted(' 127.0.0.1, 10.0.0.0/8,::1,fc00::/7 ,')
    expect(named.map(([address, bits]) => `${address}/${bits}`)).toEqual([
      '127.0.0.1/32',
      '10.0.0.0/8',
      '::1/128',
      'fc00::/7',
    ])
    const wrong = ['0.0.0.0/0', '::/0', '128.0.0.0/1', '8000::/1', '::ffff:0:0/96', '::ffff:10.0.0.1', '*']
    for (const text of [
      ...wrong,
      'all',
      'true',
      'proxy',
      '10.0.0.1/33',
      '10.0.0.1/',
      '10.0.0.1/8/8',
      '10.1/16',
    ]) {
      expect(faults({ PARLEY_TRUSTED_PROXIES: `127.0.0.1,${text}` }), text).toEqual([
        expect.stringContaining(
          'PARLEY_TRUSTED_PROXIES must be a comma-separated list of proxy addresses or networks',
        ),
      ])
    }
  })

  test('accepts an identity provider, over plain HTTP on this machine only', () => {
    const env = {
      PARLEY_BASE_URL: 'https://parley.example',
      PARLEY_OIDC_ISSUER: 'http://127.0.0.1:4000/realms/acme',
      PARLEY_OIDC_CLIENT_ID: 'parley',
    }
    expect(readConfig(env).oidc).toEqual({
      issuer: 'http://127.0.0.1:4000/realms/acme',
      client_id: 'parley',
      client_secret: undefined,
      uuid_claim: undefined,
      label: 'single sign-on',
      link_by_email: false,
    })
    expect(readConfig({ ...env, PARLEY_OIDC_LINK_BY_EMAIL: 'on' }).oidc?.link_by_email).toBe(true)
    expect(readConfig({}).oidc).toBeUndefined()
  })

  test.each([
    ["a database of one's own needs a secret of one's own", { DATABASE_URL: url }, 'PARLEY_SECRET'],
    ["Redis needs a database of one's own", { REDIS_URL: 'redis://localhost' }, 'REDIS_URL'],
    ['an address without a host', { DATABASE_URL: 'postgres:', PARLEY_SECRET: secret }, 'DATABASE_URL'],
    ['a number with a sign', { PARLEY_RATE_LIMIT: '+5' }, 'PARLEY_RATE_LIMIT'],
    ['a number with a space', { PARLEY_RATE_LIMIT: ' 5' }, 'PARLEY_RATE_LIMIT'],
    ['zero', { PARLEY_RATE_LIMIT: '0' }, 'PARLEY_RATE_LIMIT'],
    ['a number that is too long', { PARLEY_RATE_LIMIT: '9'.repeat(40) }, 'PARLEY_RATE_LIMIT'],
    ['a provider without an address', { PARLEY_OIDC_CLIENT_ID: 'parley' }, 'PARLEY_OIDC_CLIENT_ID'],
    [
      'a provider that knows us by no name',
      { PARLEY_OIDC_ISSUER: 'https://id.example', PARLEY_BASE_URL: 'https://parley.example' },
      'PARLEY_OIDC_ISSUER',
    ],
    [
      'a provider that cannot send people back',
      { PARLEY_OIDC_ISSUER: 'https://id.example', PARLEY_OIDC_CLIENT_ID: 'parley' },
      'PARLEY_OIDC_ISSUER',
    ],
    ['a misspelled variable', { PARLEY_LOGLEVEL: 'info' }, 'PARLEY_LOGLEVEL'],
  ])('refuses: %s', (_, env, name) => {
    expect(faults(env).map((fault) => fault.split(' ')[0])).toEqual([name])
  })

  test.each([
    'http://localhost:8080',
    'https://parley.example/outreach/',
    'http://[::1]:8080',
    'https://a.example/@b',
  ])('accepts the address %s', (address) => {
    expect(faults({ PARLEY_BASE_URL: address })).toEqual([])
  })

  test.each([
    'https://parley.example?a=1',
    'https://parley.example/?',
    'https://parley.example/#',
    'https://parley.example/path#a',
    'https://hunter2@parley.example',
    'https://ana:hunter2@parley.example/path',
    'https://@parley.example',
    'https://parley.example/a b',
    'https://parley.example\\a',
    'https://',
    'parley.example',
  ])('refuses the address %s, without repeating it', (address) => {
    expect(faults({ PARLEY_BASE_URL: address })).toEqual([
      'PARLEY_BASE_URL must be an address that starts with http:// or https://, without a user name, ? or #.',
    ])
  })

  test.each([
    'http://id.example',
    'https://id.example?a=1',
    'https://id.example#a',
    'https://id.example/ a',
    'id.example',
  ])('refuses an identity provider at %s', (issuer) => {
    const env = { PARLEY_OIDC_CLIENT_ID: 'parley', PARLEY_BASE_URL: 'https://parley.example' }
    expect(faults({ ...env, PARLEY_OIDC_ISSUER: issuer }).map((fault) => fault.split(' ')[0])).toEqual([
      'PARLEY_OIDC_ISSUER',
    ])
  })
})
