/** Which secret seals and signs, the keys that never change, and which processes know which secret. */
import { ApiError } from '../lib/errors.ts'
import { type Secrets, type StoredPurpose, shortId, storedPurposes } from '../lib/secrets.ts'
import { sealedColumn } from './sealed-column.ts'
import { processName } from './server-state.ts'
import { type Database, type Db, sql, type Tx } from './sql.ts'

export interface SecretUse {
  /** The secret that seals and signs. */
  readonly secret_id: string
  /** During a rotation, the one before it. */
  readonly old_id: string | null
  readonly turn: number
  readonly addresses_sealed: boolean
}

const columns = sql`secret_id, old_id, turn, addresses_sealed`

export function findSecretUse(db: Db): Promise<SecretUse | undefined> {
  return db.maybe<SecretUse>(sql`select ${columns} from secret_use`)
}

interface OpenOptions {
  /** Whether this is the secret that the instance was set up with, for a database that does not say so yet. */
  readonly isOwn: (secrets: Secrets) => Promise<boolean>
  /** Reads only: nothing is stored. */
  readonly reads?: boolean
}

/**
 * Reads the stored keys into `secrets`; the first process stores them, with the values that the secret derives. False: the
 * database belongs to another secret. Then nothing is stored, and every key is derived from the given one.
 */
export async function openStoredKeys(
  db: Database,
  secrets: Secrets,
  { isOwn, reads = false }: OpenOptions,
): Promise<boolean> {
  let use = await findSecretUse(db)
  if (!use) {
    if (!(await findOwn(secrets, isOwn))) return false // guard: no key of another secret is stored
    if (reads) return true
    use = await db.transaction((tx) => beginUse(tx, secrets))
  }
  if (!secrets.sealWith(use)) return false
  const known = await readKeys(db, secrets)
  if (known.size < storedPurposes.length && !reads) {
    await db.transaction((tx) => storeMissing(tx, secrets))
    secrets.useStored(await readKeys(db, secrets))
  } else secrets.useStored(known)
  return true
}

/** The same within a transaction that has just restored a backup. */
export async function openRestoredKeys(
  tx: Tx,
  secrets: Secrets,
  isOwn: OpenOptions['isOwn'],
): Promise<boolean> {
  const use = (await findSecretUse(tx)) ?? ((await findOwn(secrets, isOwn)) && (await beginUse(tx, secrets)))
  if (!use || !secrets.sealWith(use)) return false
  await storeMissing(tx, secrets)
  secrets.useStored(await readKeys(tx, secrets))
  return true
}

/** Chooses the given secret that the instance was set up with, the older one first: a new instance has had no other. */
async function findOwn(secrets: Secrets, isOwn: OpenOptions['isOwn']): Promise<boolean> {
  for (const secret_id of secrets.ids.toReversed()) {
    secrets.sealWith({ secret_id, turn: -1 })
    if (await isOwn(secrets)) return true
  }
  return false
}

/** Several processes may start at once: the first one's secret is the instance's. */
async function beginUse(tx: Tx, secrets: Secrets): Promise<SecretUse> {
  // A process of release 0.3 cannot start on this schema: it runs only where it ran before.
  await tx.run(sql`
    insert into secret_use (secret_id, addresses_sealed)
    select ${secrets.id}, not exists (select from workspaces) on conflict do nothing`)
  return tx.one<SecretUse>(sql`select ${columns} from secret_use`)
}

async function storeMissing(tx: Tx, secrets: Secrets): Promise<void> {
  await lockSecretUse(tx, secrets)
  for (const purpose of storedPurposes) {
    const sealed = secrets.seal('stored_key', placeOf(purpose), secrets.derive(purpose))
    await tx.run(sql`
      insert into stored_keys (purpose, sealed) values (${purpose}, ${sealed})
      on conflict do nothing -- guard: a stored key never changes
    `)
  }
}

/** Throws if a stored key is sealed with a secret that is not given. */
async function readKeys(db: Db, secrets: Secrets): Promise<Map<StoredPurpose, Buffer>> {
  const rows = await db.rows<{ purpose: StoredPurpose; sealed: Buffer }>(
    sql`select purpose, sealed from stored_keys`,
  )
  const ours = rows.filter(({ purpose }) => storedPurposes.includes(purpose))
  return new Map(
    ours.map(({ purpose, sealed }) => [purpose, secrets.open('stored_key', placeOf(purpose), sealed)]),
  )
}

function placeOf(purpose: string): string {
  return `stored_keys:${purpose}`
}

/**
 * A transaction that stores a sealed value calls this before it seals. A rotation waits for such transactions, so that it misses
 * nothing that was sealed with the old secret.
 */
export async function lockSecretUse(tx: Tx, secrets: Secrets): Promise<SecretUse | undefined> {
  const use = await tx.maybe<SecretUse>(sql`
    select ${columns} from secret_use for share -- guard: a rotation waits for what is being sealed
  `)
  if (use && !secrets.sealWith(use) && secrets.isTied) throw otherSecret(use) // guard: nothing is sealed with a secret of before
  return use
}

function otherSecret({ secret_id }: SecretUse): ApiError {
  return new ApiError('conflict', {
    detail:
      `This process has the secret of before a rotation; the instance uses ${shortId(secret_id)} now. ` +
      'Restart it with the new PARLEY_SECRET, and PARLEY_SECRET_OLD until the rotation has ended.',
  })
}

/** The name of a process's connection: others see which secrets it has. */
export function processNameWith(secrets: Secrets): string {
  return `${processName} ${secrets.ids.map(shortId).join(' ')}`
}

export interface RunningProcesses {
  /** Have both secrets. */
  readonly ready: number
  /** Have only one. */
  readonly lacking: number
  /** Of an earlier release, or just starting. */
  readonly unnamed: number
}

/** The processes of the service on this database. */
export async function countProcesses(db: Db, wanted: readonly string[]): Promise<RunningProcesses> {
  const rows = await db.rows<{ name: string }>(sql`
    select application_name as name from pg_stat_activity
    where datname = current_database() and application_name like ${`${processName}%`}`)
  const known = rows.map(({ name }) => name.slice(processName.length).split(' ').filter(Boolean))
  const has = (ids: readonly string[]) => wanted.every((id) => ids.includes(shortId(id)))
  return {
    ready: known.filter(has).length,
    lacking: known.filter((ids) => ids.length > 0 && !has(ids)).length,
    unnamed: known.filter((ids) => ids.length === 0).length,
  }
}

/**
 * Begins a rotation: from the commit on, everything is sealed with the new secret, and the stored keys are. False: another one
 * has begun, or the old secret is no longer in use.
 */
export async function beginRotation(
  tx: Tx,
  secrets: Secrets,
  { old_id, new_id }: { old_id: string; new_id: string },
): Promise<boolean> {
  const begun = await tx.maybe<SecretUse>(sql`
    update secret_use set secret_id = ${new_id}, old_id = secret_id, turn = turn + 1
    where secret_id = ${old_id} and old_id is null -- guard: one rotation at a time
    returning ${columns}`)
  if (!begun || !secrets.sealWith(begun)) return false
  for (const [purpose, bytes] of await readKeys(tx, secrets)) {
    const sealed = secrets.seal('stored_key', placeOf(purpose), bytes)
    await tx.run(sql`update stored_keys set sealed = ${sealed} where purpose = ${purpose}`)
  }
  return true
}

/** Nothing uses the old secret any more. False: the rotation had ended before. */
export async function endRotation(tx: Tx, old_id: string): Promise<boolean> {
  return (await tx.run(sql`update secret_use set old_id = null where old_id = ${old_id}`)) > 0
}

/**
 * Why a process with these secrets may not start: it could not open what the others seal, or what is left of the old secret, and
 * it would seal with a secret that nobody keeps. One whose secret was never in use here may start: the right one may be lost.
 */
export async function findMissingSecret(db: Db, secrets: Secrets): Promise<string | undefined> {
  const use = await findSecretUse(db)
  if (!use) return undefined
  const [hasNew, hasOld] = [use.secret_id, use.old_id].map((id) => id === null || secrets.ids.includes(id))
  const [now, before] = [shortId(use.secret_id), shortId(use.old_id ?? '')]
  if (use.old_id !== null && hasNew !== hasOld) {
    const [has, lacks] = hasNew
      ? ['new', 'PARLEY_SECRET_OLD to the old secret, or restore the file `secret.old`,']
      : [
          'old',
          'PARLEY_SECRET to the new secret and PARLEY_SECRET_OLD to this one, or restore the file `secret`,',
        ]
    return (
      `The secret is being rotated from ${before} to ${now}, and this process has only the ${has} one. ` +
      `Set ${lacks} until \`parley secret rotate\` has ended.`
    )
  }
  if (hasNew || !(await wasReplaced(db, secrets))) return undefined // guard: no process with a secret that was replaced
  return (
    `A rotation has replaced the secret of this process, ${secrets.ids.map(shortId).join(' and ')}: the instance uses ${now} now. ` +
    'Set PARLEY_SECRET to that one, or restore the file `secret`.'
  )
}

/** Whether a rotation led away from one of these secrets. A missing table switches off its own feature only. */
async function wasReplaced(db: Db, { ids }: Secrets): Promise<boolean> {
  const found = await db
    .maybe(sql`
      select 1 from audit
      where action = 'secret.rotated' and detail::jsonb ->> 'from' = any(${ids.map(shortId)}) limit 1`)
    .catch((error) => {
      if (error instanceof ApiError && error.code === 'schema_unavailable') return undefined
      throw error
    })
  return found !== undefined
}

/** From the commit on, no address of a webhook is written in plain. */
export async function sealAddresses(tx: Tx): Promise<void> {
  await tx.run(sql`update secret_use set addresses_sealed = true where not addresses_sealed`)
}

export const storedKeys = sealedColumn({
  name: 'stored_keys.sealed',
  purpose: 'stored_key',
  table: sql`stored_keys`,
  key: sql`purpose`,
  column: sql`sealed`,
  placeOf,
})
