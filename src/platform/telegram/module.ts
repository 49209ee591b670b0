/** Telegram as a platform of the service: its variables, and how it is opened. */
import { z } from 'zod'
import { isLoopbackAddress } from '../../lib/addresses.ts'
import { Refusal } from '../../lib/errors.ts'
import { wholeNumber } from '../../lib/variables.ts'
import type { PlatformModule } from '../module.ts'
import type { Application, Dc } from './open.ts'

const variables = {
  PARLEY_TELEGRAM_API_ID: wholeNumber(1, 999_999_999).optional(),
  PARLEY_TELEGRAM_API_HASH: z
    .string()
    // The value itself is a secret and is never repeated.
    .regex(/^[0-9a-f]{32}$/, { message: 'must be 32 hexadecimal digits' })
    .optional(),
  PARLEY_TELEGRAM_DC: z
    .string()
    .refine((text) => parseDc(text) !== undefined, {
      message:
        "must be test, for Telegram's own test servers, or 127.0.0.1:PORT,FILE with the public key of a data centre on this machine",
    })
    .optional()
    // A script that meant a data centre for tests must not reach the real Telegram.
    .meta({ empty: 'fault' }),
}

export const telegramModule: PlatformModule = {
  name: 'telegram',
  variables,
  /** A process without an api_id does not run this platform. */
  async open({ env, manual_from }) {
    const application = readApplication(env)
    if (!application) return undefined
    if (manual_from)
      throw new Refusal('PARLEY_CLOCK=manual is for tests: the time of Telegram cannot be moved.')
    // Imported on demand: every verb reads the list of platforms, and mtcute takes long to load.
    const { openTelegram } = await import('./open.ts')
    return openTelegram(application)
  },
  async reach({ env, ...ways }) {
    const application = readApplication(env)
    if (!application) return undefined
    const { findUnreached } = await import('./reach.ts')
    return findUnreached(application.dc, ways)
  },
}

/** Undefined: no variable of Telegram is set. */
export function readApplication(env: Readonly<Record<string, string>>): Application | undefined {
  const given = z.object(variables).parse(env)
  const { PARLEY_TELEGRAM_API_ID: api_id, PARLEY_TELEGRAM_API_HASH: api_hash } = given
  const dc = given.PARLEY_TELEGRAM_DC
  if (api_id === undefined && api_hash === undefined && dc === undefined) return undefined
  if (api_id === undefined || api_hash === undefined) {
    throw new Refusal('PARLEY_TELEGRAM_API_ID and PARLEY_TELEGRAM_API_HASH are needed together.')
  }
  return { api_id, api_hash, dc: dc === undefined ? null : (parseDc(dc) ?? null) }
}

/** Undefined: malformed, or not on this machine. `test`: Telegram's test servers. */
export function parseDc(text: string): Dc | 'test' | undefined {
  if (text === 'test') return text
  const [, address = '', digits, key_file = ''] = /^([\d.]+):(\d{1,5}),(.+)$/.exec(text) ?? []
  const port = Number(digits)
  // guard: a foreign data centre is on loopback
  if (!isLoopbackAddress(address) || !(port > 0 && port < 65_536)) return undefined
  return { address, port, key_file }
}
