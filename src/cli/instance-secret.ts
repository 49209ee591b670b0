/** The secrets that this process is given: by the environment, or by files in the data directory. */
import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { beginsUnderSecret } from '../capabilities/audit/audit.ts'
import type { Config } from '../config.ts'
import { requireCluster } from '../db/embedded-cluster.ts'
import { findSecret, keepSecret, replaceSecret, syncDirectory, writeSecret } from '../db/secret-file.ts'
import { findMissingSecret, openRestoredKeys, openStoredKeys } from '../db/secret-use.ts'
import type { Database, Tx } from '../db/sql.ts'
import { Refusal } from '../lib/errors.ts'
import { Secrets } from '../lib/secrets.ts'

export interface GivenSecrets {
  readonly secret: string
  /** During a rotation, the one before it. */
  readonly old: string | undefined
  readonly from: 'environment' | 'files'
}

type SecretConfig = Pick<Config, 'secret' | 'secret_old'>

export function secretFiles(data_dir: string) {
  return { secret: join(data_dir, 'secret'), old: join(data_dir, 'secret.old') }
}

export async function findSecrets(config: SecretConfig, data_dir: string): Promise<GivenSecrets | undefined> {
  if (config.secret !== undefined) {
    return { secret: config.secret, old: config.secret_old, from: 'environment' }
  }
  const files = secretFiles(data_dir)
  const secret = await findSecret(files.secret)
  if (secret === undefined) return undefined
  const old = await findSecret(files.old)
  // A kill between the two steps of `prepareSecret` leaves the same secret in both.
  return { secret, old: old === secret ? undefined : old, from: 'files' }
}

/** With `makes`, a missing file is created. */
export async function requireSecrets(
  config: SecretConfig,
  { data_dir, makes }: { data_dir: string; makes: boolean },
): Promise<GivenSecrets> {
  const found = await findSecrets(config, data_dir)
  if (found) return found
  const { secret } = secretFiles(data_dir)
  if (makes) return { secret: await keepSecret(secret), old: undefined, from: 'files' }
  // guard: a command makes no second secret
  throw missingSecret(secret)
}

function missingSecret(file: string): Refusal {
  return new Refusal(
    `The file ${file} is missing. Set PARLEY_SECRET to the value that the service uses, or restore the file from a backup.`,
  )
}

export function secretsOf({ secret, old }: Pick<GivenSecrets, 'secret' | 'old'>): Secrets {
  return new Secrets(secret, old)
}

/** The given one with this id. */
export function textOf({ secret, old }: GivenSecrets, secret_id: string): string | undefined {
  return [secret, old].find((text) => text !== undefined && new Secrets(text).id === secret_id)
}

/** Makes a new secret beside the present one, which becomes `secret.old`. False: that was done before. */
export async function prepareSecret(data_dir: string): Promise<boolean> {
  const files = secretFiles(data_dir)
  const secret = await findSecret(files.secret)
  if (secret === undefined) {
    await requireCluster(data_dir)
    throw new Refusal(`The file ${files.secret} is missing. Restore it from a backup.`)
  }
  const old = await findSecret(files.old)
  if (old !== undefined && old !== secret) return false // guard: a secret that is in use is not dropped
  await writeSecret(files.old, secret)
  await syncDirectory(data_dir)
  await replaceSecret(files.secret, randomBytes(32).toString('base64url'))
  return true
}

export async function forgetOldSecret(data_dir: string): Promise<void> {
  await rm(secretFiles(data_dir).old, { force: true })
  await syncDirectory(data_dir)
}

/** Reads the keys that never change. False: the instance was set up with another secret. */
export async function tieSecrets(
  db: Database,
  secrets: Secrets,
  { as_it_is }: { as_it_is: boolean },
): Promise<boolean> {
  const isOwn = (candidate: Secrets) => beginsUnderSecret({ db, secrets: candidate })
  if (as_it_is) return openStoredKeys(db, secrets, { isOwn, reads: true }).catch(() => false)
  const missing = await findMissingSecret(db, secrets)
  if (missing !== undefined) throw new Refusal(missing) // guard: no process without the old secret during a rotation
  return openStoredKeys(db, secrets, { isOwn })
}

/** The same in the transaction of a restore. */
export function tieRestored(tx: Tx, secrets: Secrets): Promise<boolean> {
  return openRestoredKeys(tx, secrets, (candidate) => beginsUnderSecret({ db: tx, secrets: candidate }))
}
