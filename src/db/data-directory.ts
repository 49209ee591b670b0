/** The data directory: made where it is missing, and a sentence where it cannot be used. */
import { constants } from 'node:fs'
import { access, mkdir } from 'node:fs/promises'
import { Refusal } from '../lib/errors.ts'

const elsewhere = 'or name another with --data-dir.'

export async function openDataDirectory(data_dir: string): Promise<void> {
  try {
    await mkdir(data_dir, { recursive: true, mode: 0o700 })
    await access(data_dir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    throw explain(data_dir, (error as NodeJS.ErrnoException).code ?? '') ?? error
  }
}

function explain(data_dir: string, code: string): Refusal | undefined {
  if (code === 'EEXIST') {
    return new Refusal(`The data directory ${data_dir} is a file. Move it away, ${elsewhere}`)
  }
  if (code === 'ENOTDIR') {
    return new Refusal(`The data directory ${data_dir} lies below a file. Move it away, ${elsewhere}`)
  }
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
    return new Refusal(
      `The data directory ${data_dir} cannot be written by this user (${code}). Make it writable, ${elsewhere}`,
    )
  }
  if (code === 'ENOENT' || code === 'ENOSPC') {
    return new Refusal(
      `The data directory ${data_dir} cannot be made (${code}). Make room for it, ${elsewhere}`,
    )
  }
  return undefined
}
