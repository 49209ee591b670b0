/** Telegram as a platform of the service: its variables, and how it is opened. */
import { readFileSync } from 'node:fs'
import { addPublicKey, type BasicDcOption } from '@mtcute/core/utils.js'
import { z } from 'zod'
import { Refusal } from '../../lib/errors.ts'
import { wholeNumber } from '../../lib/variables.ts'
import type { PlatformModule } from '../module.ts'
import { Crypto } from '../mtcute-crypto.ts'
import { telegramPlatform } from './adapter.ts'
import { isLoopback } from './transport.ts'

const name = 'telegram'

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
      message: 'must be 127.0.0.1:PORT,FILE with the public key of a data centre on this machine',
    })
    .optional(),
}

export const telegramModule: PlatformModule = {
  name,
  variables,
  /** A process without an api_id does not run this platform. */
  async open({ env, manual_from }) {
    const given = z.object(variables).parse(env)
    const { PARLEY_TELEGRAM_API_ID: api_id, PARLEY_TELEGRAM_API_HASH: api_hash } = given
    const dc = given.PARLEY_TELEGRAM_DC
    if (api_id === undefined && api_hash === undefined && dc === undefined) return undefined
    if (manual_from)
      throw new Refusal('PARLEY_CLOCK=manual is for tests: the time of Telegram cannot be moved.')
    if (api_id === undefined || api_hash === undefined) {
      throw new Refusal('PARLEY_TELEGRAM_API_ID and PARLEY_TELEGRAM_API_HASH are needed together.')
    }
    const test_dc = dc === undefined ? null : trustDc(dc)
    const platform = telegramPlatform({ api_id, api_hash, test_dc })
    return { platform, real: test_dc === null, close: () => platform.close() }
  },
}

interface Dc {
  readonly address: string
  readonly port: number
  readonly key_file: string
}

/** Undefined: malformed, or not on this machine. */
export function parseDc(text: string): Dc | undefined {
  const [, address = '', digits, key_file = ''] = /^([\d.]+):(\d{1,5}),(.+)$/.exec(text) ?? []
  const port = Number(digits)
  // guard: a foreign data centre is on loopback
  if (!isLoopback(address) || !(port > 0 && port < 65_536)) return undefined
  return { address, port, key_file }
}

/** The whole process trusts a key that is added here, so the address must be on loopback. */
function trustDc(text: string): BasicDcOption {
  const dc = parseDc(text)
  if (!dc) throw new Refusal('PARLEY_TELEGRAM_DC is not an address on this machine.')
  const crypto = new Crypto()
  crypto.initialize()
  addPublicKey(crypto, readFileSync(dc.key_file, 'utf8'))
  return { id: 2, ipAddress: dc.address, port: dc.port, ipv6: false, mediaOnly: false, testMode: false }
}
