/** The verbs about users, and those that stop a workspace, on the database of a service. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Browser } from './harness/browser.ts'
import { patient, run, runJson, runRefused } from './harness/operator.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'

let service: Service
let tenant: Tenant
const password = 'correct horse battery'
beforeAll(async () => {
  service = await openService()
  tenant = await service.tenant()
})
afterAll(() => service.close())

interface User {
  readonly id: string
}

describe('parley user', () => {
  test(
    'create --password-stdin makes a user who can sign in, and enforces the password rules',
    patient,
    async () => {
      const create = [
        'user',
        'create',
        'pia@acme.example',
        '--workspace',
        tenant.workspace_id,
        '--role',
        'member',
        '--password-stdin',
      ]
      const short = await run(service, create, 'too short')
      expect([short.code, short.stdout]).toEqual([1, ''])
      expect(short.stderr).toContain('at least 12 characters')
      const made = await run(service, [...create, '--json'], `${password}\n`)
      expect([made.code, made.stderr]).toEqual([0, ''])
      expect(made.stdout).not.toContain(password)
      expect(JSON.parse(made.stdout)).toMatchObject({ email: 'pia@acme.example', has_password: true })
      const body = { email: 'pia@acme.example', password }
      expect((await new Browser(service).post('/sign-in', { body })).status).toBe(200)
    },
  )

  test('create, link, update, disable, enable and remove', patient, async () => {
    const { workspace_id } = tenant
    const at = ['--workspace', workspace_id]
    const { id } = await runJson<User>(service, [
      'user',
      'create',
      'bo@acme.example',
      '--role',
      'member',
      ...at,
    ])
    const { setup_link } = await runJson<{ setup_link: string }>(service, ['user', 'link', id])
    const [address, token] = setup_link.split('#')
    expect(address).toBe('http://127.0.0.1:8080/dashboard/setup')
    const browser = new Browser(service)
    expect((await browser.post('/setup', { body: { token, password } })).status).toBe(200)
    const { key } = await service.key({ workspace_id, user_id: id })

    const changes = [
      '--name',
      'Bo',
      '--email',
      'bo2@acme.example',
      '--operator',
      '--time-zone',
      'Europe/Berlin',
    ]
    expect(await runJson(service, ['user', 'update', id, ...changes])).toMatchObject({
      name: 'Bo',
      email: 'bo2@acme.example',
      operator: true,
      time_zone: 'Europe/Berlin',
    })
    const back = ['user', 'update', id, '--no-operator', '--role', 'admin', ...at]
    expect(await runJson(service, back)).toMatchObject({ role: 'admin' })
    expect((await browser.get('/session')).body.user).toMatchObject({ operator: false, name: 'Bo' })
    expect(await runRefused(service, ['user', 'update', id, '--role', 'admin'])).toContain('--workspace')
    const taken = ['user', 'update', id, '--email', `${workspace_id}@ACME.example`]
    expect(await runRefused(service, taken)).toContain('Another user already has the address')

    await runJson(service, ['user', 'disable', id])
    expect((await browser.get('/session')).status).toBe(401)
    await service.settle()
    expect((await service.get('/me', { key })).status).toBe(401)
    await runJson(service, ['user', 'enable', id])
    await service.settle()
    expect((await service.get('/me', { key })).status).toBe(401)

    expect(await runJson(service, ['user', 'remove', id, ...at])).toMatchObject({ removed: true })
    await service.settle()
    expect((await service.get('/me', { key })).status).toBe(401)
    expect(await runRefused(service, ['user', 'remove', tenant.user_id, ...at])).toContain(
      'at least one owner',
    )
  })
})

test(
  'parley workspace disable refuses its keys, and those of no other workspace, until enable',
  patient,
  async () => {
    const own = await service.tenant()
    const me = async ({ key }: Tenant) => (await service.get('/me', { key })).status
    expect(await runJson(service, ['workspace', 'disable', own.workspace_id])).toMatchObject({
      id: own.workspace_id,
      disabled_at: expect.any(String),
    })
    // Another process changed it: this one sees it within a second.
    await service.settle()
    expect([await me(own), await me(tenant)]).toEqual([403, 200])
    await runJson(service, ['workspace', 'enable', own.workspace_id])
    await service.settle()
    expect(await me(own)).toBe(200)
    expect(await runRefused(service, ['workspace', 'disable', 'nope'])).toContain('`parley workspace list`')
  },
)
