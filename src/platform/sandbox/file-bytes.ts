/** The bytes of files that people sent. Those of a seed are made when they are read, so a file of any size costs nothing. */
import { createCipheriv, createHash } from 'node:crypto'
import type { WorldFile } from './entries.ts'

/** A file with a timer is never downloaded, and the bytes of our own files are not kept. */
export function hasBytes({ seed, data, timer_seconds }: WorldFile): boolean {
  return timer_seconds === undefined && (seed !== undefined || data !== undefined)
}

const blockBytes = 16

/** Up to `length` bytes from `offset` on, which is a multiple of 16. */
export function readFile({ size, seed = 0, data }: WorldFile, offset: number, length: number): Uint8Array {
  const count = Math.max(0, Math.min(length, size - offset))
  if (data !== undefined) return Buffer.from(data, 'base64').subarray(offset, offset + count)
  const key = createHash('sha256').update(`file ${seed}`).digest().subarray(0, 16)
  const counter = Buffer.alloc(blockBytes)
  counter.writeBigUInt64BE(BigInt(offset / blockBytes), 8)
  return createCipheriv('aes-128-ctr', key, counter).update(new Uint8Array(count))
}
