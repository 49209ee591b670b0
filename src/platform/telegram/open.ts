/** Opens Telegram, or a data centre on loopback in its place. Only this and what it imports load mtcute. */
import { readFileSync } from 'node:fs'
import { addPublicKey, type BasicDcOption } from '@mtcute/core/utils.js'
import { Refusal } from '../../lib/errors.ts'
import type { OpenPlatform } from '../module.ts'
import { Crypto } from '../mtcute-crypto.ts'
import { telegramPlatform } from './adapter.ts'

export interface Dc {
  readonly address: string
  readonly port: number
  readonly key_file: string
}

export interface Application {
  readonly api_id: number
  readonly api_hash: string
  /** Null: Telegram itself. */
  readonly dc: Dc | null
}

export function openTelegram({ api_id, api_hash, dc }: Application): OpenPlatform {
  const platform = telegramPlatform({ api_id, api_hash, test_dc: dc && trustDc(dc) })
  return { platform, real: dc === null, close: () => platform.close() }
}

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
