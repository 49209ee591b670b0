/** The list of messaging platforms. Adding one takes a folder below `platform/` and a line here. */
import { join } from 'node:path'
import type { App } from '../app.ts'
import { sql } from '../db/sql.ts'
import { Refusal } from '../lib/errors.ts'
import type { OpenPlatform, PlatformModule, PlatformOptions } from '../platform/module.ts'
import { sandboxModule } from '../platform/sandbox/module.ts'
import { telegramModule } from '../platform/telegram/module.ts'

export const platformModules: readonly PlatformModule[] = [sandboxModule, telegramModule]

/** The values that an account's `platform` may have, and its default. */
export const platformNames: readonly string[] = platformModules.map(({ name }) => name)
export const platformDefault: string = sandboxModule.name

/** The variables of all platforms, for `readConfig`. */
export const platformVariables: PlatformModule['variables'] = Object.assign(
  {},
  ...platformModules.map(({ variables }) => variables),
)

/** The platforms this process uses, by name. The caller that opens them closes them. */
export type OpenPlatforms = ReadonlyMap<string, OpenPlatform>

export async function openPlatforms(
  app: App,
  modules: readonly PlatformModule[],
  { role, directory }: { role: PlatformOptions['role']; directory: string },
): Promise<OpenPlatforms> {
  const { now } = await app.db.one<{ now: Date }>(sql`select domain_now() as now`)
  const manual_from = app.config.clock === 'manual' ? now : undefined
  const open = new Map<string, OpenPlatform>()
  try {
    for (const { name, open: openIt } of modules) {
      const platform = await openIt({
        role,
        data_dir: join(directory, name),
        env: app.config.platform_env,
        manual_from,
        failed: (err) => app.log.error({ err }, `the ${name} failed`),
      })
      if (platform) open.set(name, platform)
      if (platform?.real && manual_from) {
        throw new Refusal(`PARLEY_CLOCK=manual is for tests: the time of ${name} cannot be moved.`)
      }
    }
    return open
  } catch (error) {
    await closePlatforms(open)
    throw error
  }
}

export async function closePlatforms(open: OpenPlatforms): Promise<void> {
  for (const platform of open.values()) await platform.close()
}
