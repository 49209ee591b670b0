import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAccount } from '../src/capabilities/accounts/accounts.ts'
import { closePlatforms, openPlatforms, platformNames } from '../src/cli/platforms.ts'
import type { OpenPlatform, PlatformModule } from '../src/platform/module.ts'
import type { Platform } from '../src/platform/port.ts'
import { openService, type Service } from './harness/service.ts'

let service: Service
beforeAll(async () => {
  service = await openService()
})
afterAll(() => service.close())

/** A platform that cannot be reached. Records when it is closed. */
function makeModule(name: string, more: Partial<OpenPlatform>, closed: string[] = []): PlatformModule {
  const platform: Platform = {
    name,
    paceMs: 0,
    gapJitter: 0,
    coldRamp: false,
    takeoverSeconds: 0,
    connect: () => Promise.resolve({ kind: 'not_written', reason: 'The platform is unreachable.' }),
    close: () => Promise.resolve(),
  }
  const close = async () => void closed.push(name)
  const open = async () => ({ platform, real: false, close, ...more })
  return { name, variables: {}, open, reach: async () => [] }
}

const options = { role: 'start', directory: '' } as const

test.each(platformNames)('the database accepts accounts of the platform %s', async (platform) => {
  const { workspace_id } = await service.tenant()
  const account = await createAccount(service.app, 'system', { workspace_id, platform, name: 'Sales' })
  expect(account.platform).toBe(platform)
})

test('a manual clock is refused next to a real platform, and open platforms are closed', async () => {
  const closed: string[] = []
  const modules = [makeModule('ours', {}, closed), makeModule('theirs', { real: true }, closed)]
  const { app } = service
  const manual = { ...app, config: { ...app.config, clock: 'manual' as const } }
  await expect(openPlatforms(manual, modules, options)).rejects.toThrow('the time of theirs cannot be moved')
  expect(closed).toEqual(['ours', 'theirs'])
  const open = await openPlatforms(app, modules, options)
  expect([...open.keys()]).toEqual(['ours', 'theirs'])
  await closePlatforms(open)
})
