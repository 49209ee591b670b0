/**
 * The folder for the embedded PostgreSQL's socket. A user who could put a server of their own there would receive the
 * password, so only we may enter the folder, or the start is refused.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, type Stats } from 'node:fs'
import { chown, lstat, mkdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Refusal } from '../lib/errors.ts'
import { writeSecret } from './secret-file.ts'

/** The path of a socket may have about a hundred bytes. */
const lengthMax = 85

/** In the data directory or, if its path is too long, in the system's temporary folder under an unguessable name. */
export async function openSocketDirectory(data_dir: string, owner: number | undefined): Promise<string> {
  const inside = join(data_dir, 'socket')
  const directory = inside.length <= lengthMax ? inside : await rememberOutside(data_dir)
  await mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  const { uid } = await requireOurs(directory, owner)
  // Also a folder whose process was killed before it could hand it over.
  if (owner !== undefined && uid !== owner) await chown(directory, owner, owner)
  return directory
}

/** Every process that uses the server must find it, so the data directory stores the name. A copy of it needs another one. */
async function rememberOutside(data_dir: string): Promise<string> {
  const file = join(data_dir, 'socket.path')
  const chosen = join(tmpdir(), `parley-${randomBytes(16).toString('hex')}`)
  for (;;) {
    if (!existsSync(file)) await writeSecret(file, `${data_dir}\n${chosen}\n`)
    const [owner, directory] = (await readFile(file, 'utf8').catch(() => '')).split('\n')
    if (owner === data_dir && directory) return directory
    await rm(file, { force: true })
  }
}

async function requireOurs(directory: string, owner: number | undefined): Promise<Stats> {
  const found = await lstat(directory)
  const wrong = found.isSymbolicLink()
    ? 'it is a link'
    : !found.isDirectory()
      ? 'it is not a folder'
      : owner !== undefined && found.uid !== owner && found.uid !== process.getuid?.()
        ? 'it belongs to another user'
        : (found.mode & 0o777) !== 0o700
          ? 'other users can enter it'
          : undefined
  if (!wrong) return found
  throw new Refusal(
    `The folder ${directory} is for the socket of the embedded PostgreSQL, but ${wrong}. Find out who created it, and remove it.`,
  )
}
