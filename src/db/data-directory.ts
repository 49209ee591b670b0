/** Opens the data directory: creates it if missing, and refuses one that cannot be used or trusted. */
import { constants } from 'node:fs'
import { access, mkdir, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { Refusal } from '../lib/errors.ts'
import { requireOwner } from './secret-file.ts'

const elsewhere = 'or choose another with --data-dir.'

export async function openDataDirectory(data_dir: string): Promise<void> {
  try {
    await mkdir(data_dir, { recursive: true, mode: 0o700 })
    await access(data_dir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    throw explain(data_dir, (await findReadOnly(data_dir)) ?? code) ?? error // guard: a disk without writing is not full
  }
  await requireTrusted(data_dir)
}

/** Node reports a directory that it cannot make on a read-only disk as missing. Returns EROFS if the disk is read-only. */
async function findReadOnly(data_dir: string): Promise<'EROFS' | undefined> {
  for (let path = resolve(data_dir); ; path = dirname(path)) {
    const problem = await access(path, constants.W_OK).catch((error: NodeJS.ErrnoException) => error.code)
    if (problem === 'EROFS') return 'EROFS'
    if (problem !== 'ENOENT' || path === dirname(path)) return undefined
  }
}

/** Another user who could write here could choose the secret, the database and the journals. */
export async function requireTrusted(data_dir: string): Promise<void> {
  const { mode } = await stat(data_dir)
  // guard: a directory that everybody may write to
  if (mode & 0o002) {
    throw new Refusal(
      `Every user of this machine can write to the data directory ${data_dir}. Run \`chmod o-w ${data_dir}\`, ` +
        elsewhere,
    )
  }
  await requireOwner(join(data_dir, 'secret'))
}

function explain(data_dir: string, code: string): Refusal | undefined {
  if (code === 'EEXIST') {
    return new Refusal(`The data directory ${data_dir} is a file. Move it away, ${elsewhere}`)
  }
  if (code === 'ENOTDIR') {
    return new Refusal(`The data directory ${data_dir} is below a file. Move it away, ${elsewhere}`)
  }
  if (code === 'EROFS') {
    return new Refusal(
      `The disk of the data directory ${data_dir} is read-only. Mount it for writing, ${elsewhere}`,
    )
  }
  if (code === 'EACCES' || code === 'EPERM') {
    return new Refusal(
      `This user cannot write to the data directory ${data_dir} (${code}). Make it writable, ${elsewhere}`,
    )
  }
  if (code === 'ENOENT' || code === 'ENOSPC') {
    return new Refusal(
      `The data directory ${data_dir} cannot be created (${code}). Free disk space, ${elsewhere}`,
    )
  }
  return undefined
}
