/** Files in calls of the control address: a person's message carries one that is made from a seed, or that the call contains. */
import { z } from 'zod'
import { ApiError } from '../../lib/errors.ts'
import { attachmentKinds } from '../port.ts'
import type { WorldFile } from './entries.ts'

/** The log keeps them, so they are small. */
const givenBytesMax = 64 * 1024
const side = z.int().min(1).max(100_000).optional()

export const givenFile = z
  .strictObject({
    kind: z.enum(attachmentKinds).optional(),
    file_name: z.string().min(1).max(200).optional(),
    media_type: z.string().min(1).max(200).optional(),
    size: z.int().min(0).max(4_000_000_000).optional(),
    seed: z.int().min(0).optional(),
    data: z.base64().optional(),
    width: side,
    height: side,
    seconds: z.int().min(0).max(1_000_000).optional(),
    timer_seconds: z.int().min(1).max(3600).optional(),
    dc: z.int().min(1).max(9).optional(),
  })
  .describe(
    'A file: `data` in base64 (at most 64 KiB), or `size` bytes that follow from `seed` (0 unless given). One with ' +
      '`timer_seconds` is never downloaded. `dc` is the data centre that has it.',
  )

export function makeFile(given: z.infer<typeof givenFile>): WorldFile {
  const {
    data,
    size,
    kind = 'file',
    file_name = kind,
    media_type = 'application/octet-stream',
    ...more
  } = given
  if ((data === undefined) === (size === undefined) || (data !== undefined && more.seed !== undefined)) {
    throw new ApiError('invalid_request', {
      detail: 'A file needs either data, or a size and optionally a seed.',
    })
  }
  const rest = Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined))
  const facts = { index: 0, kind, file_name, media_type, ...rest }
  if (data === undefined) return { seed: 0, ...facts, size: size ?? 0 }
  const bytes = Buffer.from(data, 'base64').length
  if (bytes > givenBytesMax) {
    throw new ApiError('invalid_request', { detail: 'The data of a file has at most 64 KiB.' })
  }
  return { ...facts, size: bytes, data }
}
