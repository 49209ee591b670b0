/** The server's half of the two-step password, SRP (https://core.telegram.org/api/srp). */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { bigint, u8 } from '@fuman/utils'
import type { tl } from '@mtcute/core'
import { computeNewPasswordHash, type ICryptoProvider } from '@mtcute/core/utils.js'
import Long from 'long'
import { dhGenerator, dhPrime, power, secretExponent } from './key-exchange.ts'

type Algorithm = tl.RawPasswordKdfAlgoSHA256SHA256PBKDF2HMACSHA512iter100000SHA256ModPow

const g = bigint.toBytes(BigInt(dhGenerator), 256)
const p = bigint.toBytes(dhPrime, 256)

/** The answer for an account without a password, too. */
export const noPassword: tl.account.RawPassword = {
  _: 'account.password',
  newAlgo: { _: 'passwordKdfAlgoUnknown' },
  newSecureAlgo: { _: 'securePasswordKdfAlgoUnknown' },
  secureRandom: new Uint8Array(0),
}

/** One question for the password: each answer needs a new one. */
export class PasswordCheck {
  readonly question: tl.account.RawPassword
  readonly #crypto: ICryptoProvider
  readonly #algorithm: Algorithm
  readonly #verifier: bigint
  readonly #exponent = secretExponent()
  readonly #id = Long.fromBytesLE([...randomBytes(8)])
  readonly #ours: Uint8Array

  static async ask(crypto: ICryptoProvider, password: string): Promise<PasswordCheck> {
    const algorithm: Algorithm = {
      _: 'passwordKdfAlgoSHA256SHA256PBKDF2HMACSHA512iter100000SHA256ModPow',
      salt1: randomBytes(8),
      salt2: randomBytes(16),
      g: dhGenerator,
      p,
    }
    const verifier = bigint.fromBytes(await computeNewPasswordHash(crypto, algorithm, password))
    return new PasswordCheck(crypto, algorithm, verifier)
  }

  private constructor(crypto: ICryptoProvider, algorithm: Algorithm, verifier: bigint) {
    this.#crypto = crypto
    this.#algorithm = algorithm
    this.#verifier = verifier
    const k = bigint.fromBytes(this.#hash(p, g))
    const ours = (k * verifier + power(BigInt(dhGenerator), this.#exponent)) % dhPrime
    this.#ours = bigint.toBytes(ours, 256)
    this.question = {
      ...noPassword,
      hasPassword: true,
      hint: 'as given to POST /accounts',
      currentAlgo: algorithm,
      srpB: this.#ours,
      srpId: this.#id,
    }
  }

  isAnsweredBy(given: tl.TypeInputCheckPasswordSRP): boolean {
    return given._ === 'inputCheckPasswordSRP' && given.srpId.eq(this.#id)
  }

  isRight(given: tl.TypeInputCheckPasswordSRP): boolean {
    if (given._ !== 'inputCheckPasswordSRP' || !this.isAnsweredBy(given)) return false
    const theirs = bigint.fromBytes(given.A)
    if (theirs % dhPrime === 0n) return false
    const u = bigint.fromBytes(this.#hash(given.A, this.#ours))
    const shared = power((theirs * power(this.#verifier, u)) % dhPrime, this.#exponent)
    const proof = this.#hash(
      u8.xor(this.#hash(p), this.#hash(g)),
      this.#hash(this.#algorithm.salt1),
      this.#hash(this.#algorithm.salt2),
      given.A,
      this.#ours,
      this.#hash(bigint.toBytes(shared, 256)),
    )
    return given.M1.length === proof.length && timingSafeEqual(given.M1, proof)
  }

  #hash(...parts: Uint8Array[]): Uint8Array {
    return this.#crypto.sha256(u8.concat(parts))
  }
}
