/** A thread that hashes and compares passwords for `passwords.ts`, at a lower priority than every other thread. */
import { parentPort } from 'node:worker_threads'
import { hashSync, verifySync } from '@node-rs/argon2'
import { lowerPriority } from './threads.ts'

/** A password to hash, or to compare with the stored hash. The stored hash may be missing. */
export type PasswordJob =
  | { readonly hash: string }
  | { readonly compare: string; readonly stored: string | undefined }

/** Exactly one of these is set. */
export interface PasswordAnswer {
  readonly hash?: string
  readonly same?: boolean
  /** Why there is neither. */
  readonly problem?: string
}

/** Algorithm 2 is argon2id; the package's own constants cannot be erased with the types. */
const cost = { memoryCost: 19 * 1024, timeCost: 2, parallelism: 1, algorithm: 2 } as const

/** Compared with when no hash is stored, so that it takes as long. No password has this hash. */
const decoy = `$argon2id$v=19$m=${cost.memoryCost},t=${cost.timeCost},p=${cost.parallelism}$${'A'.repeat(22)}$${'A'.repeat(43)}`

lowerPriority()
parentPort?.on('message', (job: PasswordJob) => parentPort?.postMessage(answer(job)))

function answer(job: PasswordJob): PasswordAnswer {
  try {
    if ('hash' in job) return { hash: hashSync(job.hash, cost) }
    const same = verifySync(job.stored ?? decoy, job.compare)
    return { same: same && job.stored !== undefined }
  } catch (error) {
    // The stored hash is at fault, not the password: the next one can still be compared.
    return { problem: (error as Error).message }
  }
}
