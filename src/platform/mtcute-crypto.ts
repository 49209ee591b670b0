/** The cryptography that mtcute requires, from Node and mtcute's own WebAssembly: for the client and for its data centre. */
import { createCipheriv, createHash, createHmac, pbkdf2, randomFillSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { deflateSync, gunzipSync } from 'node:zlib'
import { MtSecurityError } from '@mtcute/core'
import { BaseCryptoProvider, type ICryptoProvider } from '@mtcute/core/utils.js'
import { ige256Decrypt, ige256Encrypt, initSync, SIMD_AVAILABLE } from '@mtcute/wasm'

/** The largest size of an unpacked answer. */
const unpackedBytesMax = 16 * 1024 * 1024

/** Telegram's product of two primes. Factoring a longer one would occupy the process forever, and no key protects it. */
const productBytesMax = 8

const derive = promisify(pbkdf2)
let isLoaded = false

export class Crypto extends BaseCryptoProvider implements ICryptoProvider {
  initialize(): void {
    if (isLoaded) return
    const name = SIMD_AVAILABLE ? 'mtcute-simd' : 'mtcute'
    initSync(readFileSync(new URL(import.meta.resolve(`@mtcute/wasm/${name}.wasm`))))
    isLoaded = true
  }

  sha1 = (data: Uint8Array): Uint8Array => createHash('sha1').update(data).digest()
  sha256 = (data: Uint8Array): Uint8Array => createHash('sha256').update(data).digest()
  hmacSha256 = (data: Uint8Array, key: Uint8Array): Uint8Array =>
    createHmac('sha256', key).update(data).digest()
  randomFill = (buffer: Uint8Array): void => void randomFillSync(buffer)
  gunzip = (data: Uint8Array): Uint8Array => gunzipSync(data, { maxOutputLength: unpackedBytesMax })

  override factorizePQ(product: Uint8Array) {
    // guard: a product that cannot be factored
    if (product.length > productBytesMax) throw new MtSecurityError('Step 2: the product is too long')
    return super.factorizePQ(product)
  }

  pbkdf2(password: Uint8Array, salt: Uint8Array, rounds: number, length = 64, algorithm = 'sha512') {
    return derive(password, salt, rounds, length, algorithm)
  }

  createAesCtr(key: Uint8Array, iv: Uint8Array) {
    const cipher = createCipheriv(`aes-${key.length * 8}-ctr`, key, iv)
    return { process: (data: Uint8Array) => cipher.update(data) }
  }

  createAesIge(key: Uint8Array, iv: Uint8Array) {
    return {
      encrypt: (data: Uint8Array) => ige256Encrypt(data, key, iv),
      decrypt: (data: Uint8Array) => ige256Decrypt(data, key, iv),
    }
  }

  gzip(data: Uint8Array, maxOutputLength: number): Uint8Array | null {
    try {
      return deflateSync(data, { maxOutputLength })
    } catch {
      return null
    }
  }
}
