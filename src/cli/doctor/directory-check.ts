/** Whether the data directory keeps what is written to it. */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { access, open, rm, stat, statfs } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Config } from '../../config.ts'
import { requireTrusted } from '../../db/data-directory.ts'
import { diskShortBytes } from '../../ledger/workers.ts'
import { Refusal } from '../../lib/errors.ts'
import { type Finding, fault, mebibytes, ok, orOk, warning } from './finding.ts'

/** File systems whose files are gone after a restart: of the machine, or of the container. From linux/magic.h. */
const passing: Readonly<Record<number, string>> = {
  16914836: 'in memory (tmpfs)',
  2240043254: 'in memory (ramfs)',
  2035054128: 'in a layer of the container (overlay)',
}

/** Each send waits for one. */
const fsyncMsMax = 250 // limit: slow disk
const fsyncs = 3

export async function lookAtDirectory(
  config: Pick<Config, 'database'>,
  data_dir: string,
): Promise<readonly Finding[]> {
  const directory = resolve(data_dir)
  const found = await stat(directory).catch(() => undefined)
  if (!found) {
    return config.database.kind === 'url'
      ? [ok('There is none here; `parley serve` needs none, and a worker creates it.')]
      : [
          fault(
            `There is no Parley in ${directory}.`,
            'Name its directory with --data-dir or PARLEY_DATA_DIR.',
          ),
        ]
  }
  const unwritable = await findUnwritable(directory)
  if (unwritable) return [unwritable]
  const problems = [
    await findUntrusted(directory),
    await findPassing(directory),
    await findShort(directory),
    await findSlow(directory),
  ]
  return orOk(
    problems.filter((each) => each !== undefined),
    `${directory} is writable and lasting.`,
  )
}

async function findUnwritable(directory: string): Promise<Finding | undefined> {
  try {
    await access(directory, constants.R_OK | constants.W_OK | constants.X_OK)
    return undefined
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return fault(
      `This user cannot write to ${directory} (${code}).`,
      'Run Parley as its owner, or make it writable.',
    )
  }
}

/** What `work` and `start` refuse. */
async function findUntrusted(directory: string): Promise<Finding | undefined> {
  try {
    await requireTrusted(directory) // guard: doctor refuses what work refuses
    return undefined
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return fault(error.message, 'Until then `parley start` and `parley work` refuse to start.')
  }
}

async function findPassing(directory: string): Promise<Finding | undefined> {
  const where = passing[(await statfs(directory)).type]
  if (where === undefined) return undefined
  return warning(
    `${directory} is ${where}, so a restart loses the journals and an embedded database.`,
    'Put it on a volume that lasts.',
  )
}

async function findShort(directory: string): Promise<Finding | undefined> {
  const { bavail, bsize } = await statfs(directory)
  const free = bavail * bsize
  if (free >= diskShortBytes) return undefined
  return warning(
    `The disk of ${directory} has ${mebibytes(free)} left.`,
    'Free disk space: without it a worker cannot write its journal and sends nothing.',
  )
}

/** Writes a file of its own and removes it. */
async function findSlow(directory: string): Promise<Finding | undefined> {
  const file = join(directory, `doctor.${randomBytes(4).toString('hex')}`)
  try {
    const ms = await measureFsync(file)
    if (ms <= fsyncMsMax) return undefined
    return warning(
      `Writing to ${directory} takes ${Math.round(ms)} ms.`,
      'Use a faster disk: every send waits for it.',
    )
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return fault(
      `A file in ${directory} cannot be written and flushed (${code}).`,
      'Use a local disk with room.',
    )
  } finally {
    await rm(file, { force: true }).catch(() => {})
  }
}

/** The shortest of several, so that a busy machine does not count. */
async function measureFsync(path: string): Promise<number> {
  const file = await open(path, 'wx', 0o600)
  try {
    let best = Number.POSITIVE_INFINITY
    for (let n = 0; n < fsyncs; n++) {
      const startedAt = performance.now()
      await file.write('doctor\n')
      await file.sync()
      best = Math.min(best, performance.now() - startedAt)
    }
    return best
  } finally {
    await file.close()
  }
}
