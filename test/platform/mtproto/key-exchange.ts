/** The server's half of the key exchange (https://core.telegram.org/mtproto/auth_key), one for each connection. */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { bigint, u8 } from '@fuman/utils'
import type { mtp } from '@mtcute/core'
import { generateKeyAndIvFromNonce, type ICryptoProvider } from '@mtcute/core/utils.js'
import Long from 'long'
import type { ServerClock } from './server-clock.ts'
import type { ServerKey } from './server-key.ts'
import { lengthOfInnerData, type read, readerAt, readInnerData, write } from './tl.ts'

/** The prime of Telegram's own data centres: clients take seconds to check any other. */
export const dhPrime = BigInt(
  '0xC71CAEB9C6B1C9048E6C522F70F13F73980D40238E3E21C14934D037563D930F48198A0AA7C14058229493D22530F4DBFA336F6E0AC9' +
    '25139543AED44CCE7C3720FD51F69458705AC68CD4FE6B6B13ABDC9746512969328454F18FAF8C595F642477FE96BB2A941D5BCD1D4AC8CC' +
    '49880708FA9B378E3C4F3A9060BEE67CF9A4A4A695811051907E162753B56B0F6B410DBA74D8A84B2A14B3144E0EF1284754FD17ED950D59' +
    '65B4B9DD46582DB1178D169C6BC465B0D6FF9CA3928FEF5B9AE4E418FC15E83EBEA0F87FA9FF5EED70050DED2849F47BF959D956850CE929' +
    '851F0D8115F635B105EE2E4E15D04B2454BF6F4FADF034B10403119CD8E3B92FCC5B',
)
export const dhGenerator = 3
/** Clients factor their product. Any two primes of 31 bits work. */
const p = 1229739323n
const q = 1402015859n

export function power(base: bigint, exponent: bigint): bigint {
  return bigint.modPowBinary(base, exponent, dhPrime)
}

export function secretExponent(): bigint {
  return bigint.fromBytes(randomBytes(256))
}

interface Nonces {
  readonly nonce: Uint8Array
  readonly serverNonce: Uint8Array
}

interface KeyExchangeParts {
  readonly crypto: ICryptoProvider
  readonly serverKey: ServerKey
  readonly clock: ServerClock
}

interface Agreed {
  readonly key: Uint8Array
  readonly salt: Long
}

function must(holds: boolean): asserts holds {
  if (!holds) throw new Error('The key exchange is broken.')
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}

export class KeyExchange {
  readonly #crypto: ICryptoProvider
  readonly #serverKey: ServerKey
  readonly #clock: ServerClock
  readonly #agreed: (agreed: Agreed) => void
  #nonces: Nonces | undefined
  #secret: { readonly newNonce: Uint8Array; readonly exponent: bigint } | undefined

  constructor({ crypto, serverKey, clock }: KeyExchangeParts, agreed: (agreed: Agreed) => void) {
    this.#crypto = crypto
    this.#serverKey = serverKey
    this.#clock = clock
    this.#agreed = agreed
  }

  /** Answers a message of the exchange; throws if it breaks the protocol. */
  answer(message: ReturnType<typeof read>): mtp.TlObject {
    switch (message._) {
      case 'mt_req_pq_multi':
        return this.#begin(message)
      case 'mt_req_DH_params':
        return this.#offer(message)
      case 'mt_set_client_DH_params':
        return this.#agree(message)
      default:
        throw new Error('This message must be encrypted.')
    }
  }

  #begin({ nonce }: mtp.RawMt_req_pq_multi): mtp.TlObject {
    this.#nonces = { nonce: nonce.slice(), serverNonce: randomBytes(16) }
    const serverPublicKeyFingerprints = [Long.fromString(this.#serverKey.fingerprint, true, 16)]
    return { _: 'mt_resPQ', ...this.#nonces, pq: bigint.toBytes(p * q, 8), serverPublicKeyFingerprints }
  }

  #offer(message: mtp.RawMt_req_DH_params): mtp.TlObject {
    const nonces = this.#require(message)
    const raw = this.#serverKey.decrypt(message.encryptedData)
    const inner = readInnerData(this.#unpadOld(raw) ?? this.#unpad(raw))
    this.#require(inner)
    must(bigint.fromBytes(inner.p) === p && bigint.fromBytes(inner.q) === q)
    const exponent = secretExponent()
    this.#secret = { newNonce: inner.newNonce.slice(), exponent }
    const answer = write({
      _: 'mt_server_DH_inner_data',
      ...nonces,
      g: dhGenerator,
      dhPrime: bigint.toBytes(dhPrime, 256),
      gA: bigint.toBytes(power(BigInt(dhGenerator), exponent), 256),
      serverTime: this.#clock.seconds(),
    })
    const padding = randomBytes((16 - ((answer.length + 20) % 16)) % 16)
    const encryptedAnswer = this.#aes().encrypt(u8.concat3(this.#crypto.sha1(answer), answer, padding))
    return { _: 'mt_server_DH_params_ok', ...nonces, encryptedAnswer }
  }

  #agree(message: mtp.RawMt_set_client_DH_params): mtp.TlObject {
    const nonces = this.#require(message)
    must(this.#secret !== undefined && message.encryptedData.length % 16 === 0)
    const { newNonce, exponent } = this.#secret
    const plain = this.#aes().decrypt(message.encryptedData)
    const reader = readerAt(plain, 20)
    const inner = reader.object() as mtp.TlObject
    must(inner._ === 'mt_client_DH_inner_data')
    must(isEqual(plain.subarray(0, 20), this.#crypto.sha1(plain.subarray(20, reader.pos))))
    this.#require(inner)
    const given = bigint.fromBytes(inner.gB)
    must(given > 1n && given < dhPrime - 1n)
    const shared = power(given, exponent)
    const key = bigint.toBytes(shared, 256)
    // A client does not pad a key with leading zeros and could not decrypt its own messages: the exchange tries
    // another key.
    const short = key[0] === 0
    const aux = this.#crypto.sha1(short ? bigint.toBytes(shared) : key).subarray(0, 8)
    const hash = this.#crypto.sha1(u8.concat3(newNonce, new Uint8Array([short ? 2 : 1]), aux)).subarray(4, 20)
    if (short) return { _: 'mt_dh_gen_retry', ...nonces, newNonceHash2: hash }
    const salt = u8.xor(newNonce.subarray(0, 8), nonces.serverNonce.subarray(0, 8))
    this.#agreed({ key, salt: Long.fromBytesLE([...salt]) })
    return { _: 'mt_dh_gen_ok', ...nonces, newNonceHash1: hash }
  }

  /** Before RSA_PAD: a zero, the hash of what follows, what follows, and noise. Undefined if this is something else. */
  #unpadOld(raw: Uint8Array): Uint8Array | undefined {
    must(raw.length === 256)
    const data = raw.slice(21)
    try {
      const end = lengthOfInnerData(data)
      return raw[0] === 0 && isEqual(raw.subarray(1, 21), this.#crypto.sha1(data.subarray(0, end)))
        ? data
        : undefined
    } catch {
      return undefined
    }
  }

  /** RSA_PAD: a key, hidden by the hash of what it encrypts, then 192 reversed bytes and their hash. */
  #unpad(raw: Uint8Array): Uint8Array {
    must(raw.length === 256)
    const encrypted = raw.subarray(32)
    const key = u8.xor(raw.subarray(0, 32), this.#crypto.sha256(encrypted))
    const padded = this.#crypto.createAesIge(key, new Uint8Array(32)).decrypt(encrypted)
    const data = padded.slice(0, 192).reverse()
    must(isEqual(padded.subarray(192), this.#crypto.sha256(u8.concat2(key, data))))
    return data
  }

  #aes() {
    must(this.#nonces !== undefined && this.#secret !== undefined)
    const { serverNonce } = this.#nonces
    const [key, iv] = generateKeyAndIvFromNonce(this.#crypto, serverNonce, this.#secret.newNonce)
    return this.#crypto.createAesIge(key, iv)
  }

  #require({ nonce, serverNonce }: Nonces): Nonces {
    must(this.#nonces !== undefined)
    must(isEqual(nonce, this.#nonces.nonce) && isEqual(serverNonce, this.#nonces.serverNonce))
    return this.#nonces
  }
}
