/** A thread that hashes and compares passwords for `passwords.ts`, behind everybody else who wants the processor. */
import { parentPort } from 'node:worker_threads'
import { hashSync, verifySync } from '@node-rs/argon2'
import { lowerPriority } from './threads.ts'

/** A password that is to be hashed, or compared with what is stored of one. Nothing may be stored. */
export type PasswordJob =
  | { readonly hash: string }
  | { readonly compare: string; readonly stored: string | undefined }

/** One of them. */
export interface PasswordAnswer {
  readonly hash?: string
  readonly same?: boolean
  /** Why neither is there. */
  readonly problem?: string
}

/** Its last number is argon2id, which the package's own constants could not be erased to. */
const cost = { memoryCost: 19 * 1024, timeCost: 2, parallelism: 1, algorithm: 2 } as const

/** What a password is compared with where there is none, so that it takes as long. No password has this hash. */
const decoy = `$argon2id$v=19$m=${cost.memoryCost},t=${cost.timeCost},p=${cost.parallelism}$${'A'.repeat(22)}$${'A'.repeat(43)}`

lowerPriority()
parentPort?.on('message', (job: PasswordJob) => parentPort?.postMessage(answer(job)))

function answer(job: PasswordJob): PasswordAnswer {
  try {
    if ('hash' in job) return { hash: hashSync(job.hash, cost) }
    const same = verifySync(job.stored ?? decoy, job.compare)
    return { same: same && job.stored !== undefined }
  } catch (error) {
    // Of what is stored, not of the password: the next one can be compared all the same.
    return { problem: (error as Error).message }
  }
}
