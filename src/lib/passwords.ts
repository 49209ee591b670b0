/** Passwords of local accounts: argon2id, a few at a time, because each takes 19 MiB and a core. */
import { randomBytes } from 'node:crypto'
import { hash, verify } from '@node-rs/argon2'
import { z } from 'zod'
import { ApiError } from './errors.ts'
import { parse } from './parse.ts'
import { boundedQueue } from './queue.ts'
import { lengthOf } from './text.ts'

const lengths = { min: 12, max: 256 }

/** Its second number is argon2id, which the package's own constants could not be erased to. */
const cost = { memoryCost: 19 * 1024, timeCost: 2, parallelism: 1, algorithm: 2 } as const

/** Two take both cores of a small machine and leave half of Node's threads to others. */
const inTurn = boundedQueue({
  atOnceMax: 2,
  waitingMax: 20,
  refuse: () =>
    new ApiError('rate_limited', {
      detail: 'Too many people are signing in just now. Try again in a few seconds.',
      retry_after: 2,
    }),
})

/** A password that somebody chooses. */
export const newPassword = z
  .string()
  .refine((value) => lengthOf(value) >= lengths.min, {
    message: `must have at least ${lengths.min} characters`,
  })
  .refine((value) => lengthOf(value) <= lengths.max, {
    message: `must have at most ${lengths.max} characters`,
  })

/** A password that is compared with the stored one. */
export const givenPassword = z
  .string()
  .min(1, 'is required')
  .refine((value) => lengthOf(value) <= lengths.max, {
    message: `must have at most ${lengths.max} characters`,
  })

/** The same for a password that comes from elsewhere than a request. */
export function requireNewPassword(password: string): string {
  return parse(z.strictObject({ password: newPassword }), { password }).password
}

export function hashPassword(password: string): Promise<string> {
  return inTurn(() => hash(prepared(password), cost))
}

/** Where there is no hash the work is the same, so that the time tells nothing. */
export function isPassword(password: string, stored: string | undefined): Promise<boolean> {
  return inTurn(async () => {
    decoy ??= hash(randomBytes(32), cost)
    const known = await verify(stored ?? (await decoy), prepared(password))
    return known && stored !== undefined
  })
}

/** The hash of a password that nobody knows. It is made once, by whoever comes first, known or not. */
let decoy: Promise<string> | undefined

/** Keyboards write the same letter in different ways. */
function prepared(password: string): string {
  return password.normalize('NFC')
}
