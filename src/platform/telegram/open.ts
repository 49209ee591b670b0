/** Opens Telegram, or a data centre on loopback in its place. Only this and what it imports load mtcute. */
import { readFileSync } from 'node:fs'
import { addPublicKey, type BasicDcOption, defaultTestDc } from '@mtcute/core/utils.js'
import { Refusal } from '../../lib/errors.ts'
import type { OpenPlatform } from '../module.ts'
import { Crypto } from '../mtcute-crypto.ts'
import { telegramPlatform } from './adapter.ts'
import type { Endpoint } from './client.ts'

export interface Dc {
  readonly address: string
  readonly port: number
  readonly key_file: string
}

export interface Application {
  readonly api_id: number
  readonly api_hash: string
  /** Null: Telegram itself. `test`: its own test servers, which have made-up numbers and real rules. */
  readonly dc: Dc | 'test' | null
}

/** Dials nothing. */
export function endpointOf({ api_id, api_hash, dc }: Application): Endpoint {
  const test_dc = dc === 'test' ? testServers : dc && trustDc(dc) // guard: the test servers are not telegram itself
  return { api_id, api_hash, test_dc }
}

export function openTelegram(application: Application): OpenPlatform {
  const { dc } = application
  const platform = telegramPlatform(endpointOf(application))
  return { platform, real: dc === null || dc === 'test', close: () => platform.close() }
}

const testServers: BasicDcOption = { ...defaultTestDc.main, ipv6: false, mediaOnly: false, testMode: true }

/** The whole process then trusts this key, which is why the address must be on loopback. */
function trustDc({ address, port, key_file }: Dc): BasicDcOption {
  const crypto = new Crypto()
  crypto.initialize()
  try {
    addPublicKey(crypto, readFileSync(key_file, 'utf8'))
  } catch (error) {
    const { code = 'it holds no public key' } = error as NodeJS.ErrnoException
    throw new Refusal(`The key file of PARLEY_TELEGRAM_DC, ${key_file}, cannot be used (${code}).`)
  }
  return { id: 2, ipAddress: address, port, ipv6: false, mediaOnly: false, testMode: false }
}
