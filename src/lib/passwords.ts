/** Passwords of local accounts: argon2id, a few at a time, because each needs 19 MiB and a core. */
import { z } from 'zod'
import { passwordMax, passwordMin } from '../rules/limits.ts'
import { ApiError } from './errors.ts'
import { LaneQueue, type Turn } from './lane-queue.ts'
import { parse } from './parse.ts'
import type { PasswordAnswer, PasswordJob } from './password-thread.ts'
import { lengthOf } from './text.ts'
import { threadCalls } from './threads.ts'

/**
 * Who waits for a password to be hashed or compared: an unknown browser, by its network address; a user's known browser or a
 * session, by the user; a set-up link, by its user.
 */
export type PasswordTurn = Turn<'stranger' | 'known' | 'setup'>

/** Each takes some 40 ms of an idle core, and yields the core to other work. A full lane waits a second or two. */
const queue = new LaneQueue<PasswordTurn['lane']>({
  lanes: ['stranger', 'known', 'setup'],
  atOnceMax: 2,
  waitingMax: 40,
  refuse: () =>
    new ApiError('rate_limited', {
      detail: 'Too many people are signing in right now. Retry in a few seconds.',
      retry_after: 2,
    }),
})

/** Refuses before anything is counted: a client that waits and retries has used none of its attempts. */
export function requireTurn(turn: PasswordTurn): void {
  queue.requirePlace(turn)
}

/** A password that a user chooses. */
export const newPassword = z
  .string()
  .refine((value) => lengthOf(value) >= passwordMin, {
    message: `must have at least ${passwordMin} characters`,
  })
  .refine((value) => lengthOf(value) <= passwordMax, {
    message: `must have at most ${passwordMax} characters`,
  })

/** A password that is compared with the stored one. */
export const givenPassword = z
  .string()
  .min(1, 'is required')
  .refine((value) => lengthOf(value) <= passwordMax, {
    message: `must have at most ${passwordMax} characters`,
  })

/** The same for a password that does not come from a request. */
export function requireNewPassword(password: string): string {
  return parse(z.strictObject({ password: newPassword }), { password }).password
}

const askThread = threadCalls<PasswordJob, PasswordAnswer>(new URL('./password-thread.ts', import.meta.url))

export async function hashPassword(password: string, turn: PasswordTurn): Promise<string> {
  const { hash, problem } = await queue.run(turn, () => askThread({ hash: prepared(password) }))
  if (hash === undefined) throw new Error(`A password could not be hashed: ${problem}`)
  return hash
}

/** Without a stored hash the work is the same, so that the time reveals nothing. */
export async function isPassword(
  password: string,
  stored: string | undefined,
  turn: PasswordTurn,
): Promise<boolean> {
  const { same, problem } = await queue.run(turn, () => askThread({ compare: prepared(password), stored }))
  if (same === undefined) throw new Error(`A password could not be compared: ${problem}`)
  return same
}

/** Keyboards encode the same letter in different ways. */
function prepared(password: string): string {
  return password.normalize('NFC')
}
