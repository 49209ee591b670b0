/** The erasures that a restored database may have forgotten: which list knows them, and that an operator confirms where none does. */
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { App } from '../app.ts'
import { applyErasures, type KeptErasure } from '../capabilities/erasing/erasing.ts'
import type { BackupOrigin } from '../db/backup-origin.ts'
import { syncDirectory } from '../db/secret-file.ts'
import { erasureListIn, keepErasures, readErasures } from '../ledger/erasure-list.ts'
import type { InstanceState } from '../ledger/restore-counter.ts'
import { readSeen } from '../ledger/restore-guard.ts'
import { Refusal } from '../lib/errors.ts'
import { makeLogger } from './log.ts'

export interface ErasureOptions {
  /** A list that is newer than the backup. */
  readonly erasures: string | undefined
  /** The operator confirms that erasures since the backup are lost. */
  readonly without_erasures: boolean
}

const ledgerOf = (data_dir: string): string => join(data_dir, 'ledger')

/** What the disk's list and the given one have. Refuses where neither knows who was erased since the backup. */
async function requireErasures(
  data_dir: string,
  { erasures: path, without_erasures }: ErasureOptions,
  knows: (own: readonly KeptErasure[], disk: InstanceState | undefined) => boolean,
): Promise<readonly KeptErasure[]> {
  const own = await readErasures<KeptErasure>(erasureListIn(ledgerOf(data_dir)))
  const given = path === undefined ? undefined : await readErasures<KeptErasure>(path)
  if (path !== undefined && !given) throw new Refusal(`The list of erasures ${path} does not exist.`)
  const damaged = (own?.damaged ?? 0) + (given?.damaged ?? 0)
  if (damaged > 0 && !without_erasures) {
    throw new Refusal(
      `${damaged} lines of the lists of erasures are damaged. Use another list, or --without-erasures to restore without these lines.`,
    )
  }
  const isKnown = given !== undefined || (own && knows(own.erasures, await readSeen(ledgerOf(data_dir))))
  // guard: an operator confirms that erasures are lost
  if (!isKnown && !without_erasures) {
    throw new Refusal(
      'People who were erased since the backup would come back: no list of erasures in this data directory is as new as the backup. ' +
        'Name the newest one with --erasures, such as ledger/erasures.jsonl of a worker or the file that ends with .erasures beside ' +
        'your last backup, or confirm with --without-erasures.',
    )
  }
  return [...(own?.erasures ?? []), ...(given?.erasures ?? [])]
}

/** Every service begins an empty list, also one of another instance, and a disk may have been set back itself. */
export function requireErasuresSince(
  origin: BackupOrigin,
  { data_dir, ...options }: ErasureOptions & { readonly data_dir: string },
): Promise<readonly KeptErasure[]> {
  return requireErasures(data_dir, options, (own, disk) => {
    if (disk && disk.id === origin.id) {
      return BigInt(disk.restore_counter) >= BigInt(origin.restore_counter) // guard: a disk that was set back knows nothing
    }
    // guard: the list of another instance knows nothing
    return own.some(({ workspace_id }) => origin.workspace_ids.has(workspace_id))
  })
}

/**
 * After a restore with other tools. A disk that is no newer than the database may have been put back with it, so it counts only if it has
 * seen more.
 */
export function requireErasuresOf(
  instance: InstanceState,
  { data_dir, ...options }: ErasureOptions & { readonly data_dir: string },
): Promise<readonly KeptErasure[]> {
  return requireErasures(data_dir, options, (_, disk) => {
    if (disk?.id !== instance.id) return false // guard: the disk of another database knows nothing
    return BigInt(disk.restore_counter) > BigInt(instance.restore_counter) // guard: only a disk that is newer than the database knows
  })
}

export async function keepOnDisk(data_dir: string, erasures: readonly KeptErasure[]): Promise<void> {
  if (erasures.length === 0) return
  const directory = ledgerOf(data_dir)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await syncDirectory(dirname(directory))
  await keepErasures(erasureListIn(directory), erasures)
}

/** From its commit on nothing is sent to these people, and nothing that arrives of them is stored. Returns how many came back. */
export async function eraseAgain(
  { db, secrets }: Pick<App, 'db' | 'secrets'>,
  erasures: readonly KeptErasure[],
): Promise<number> {
  return applyErasures({ db, secrets, log: makeLogger('silent') }, erasures)
}
