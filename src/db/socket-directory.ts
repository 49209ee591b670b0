/**
 * Where the socket of the embedded PostgreSQL lies. Whoever could put a server of his own there would be told the password,
 * so the folder is one that only we can enter, or the start is refused.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, type Stats } from 'node:fs'
import { chown, lstat, mkdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Refusal } from '../lib/errors.ts'
import { writeSecret } from './secret-file.ts'

/** A socket's path has room for about a hundred bytes. */
const lengthMax = 85

/** In the data directory, or where that lies too deep in the system's temporary folder, under a name nobody can guess. */
export async function openSocketDirectory(data_dir: string, owner: number | undefined): Promise<string> {
  const inside = join(data_dir, 'socket')
  const directory = inside.length <= lengthMax ? inside : await rememberOutside(data_dir)
  await mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  const { uid } = await requireOurs(directory, owner)
  // Also one that a process made and was killed before it could give it away.
  if (owner !== undefined && uid !== owner) await chown(directory, owner, owner)
  return directory
}

/** Everybody who joins the server has to find it, so the data directory keeps the name. A copy of it needs another one. */
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
      ? 'it is no folder'
      : owner !== undefined && found.uid !== owner && found.uid !== process.getuid?.()
        ? 'it belongs to somebody else'
        : (found.mode & 0o777) !== 0o700
          ? 'others may enter it'
          : undefined
  if (!wrong) return found
  throw new Refusal(
    `The folder ${directory} is for the socket of the embedded PostgreSQL, and ${wrong}. Find out who made it, and remove it.`,
  )
}
