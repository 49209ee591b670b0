/** Secrets that are created once and kept in the data directory. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, lstat, mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Refusal } from '../lib/errors.ts'

/** Reads a secret of the data directory. The first call creates it; it never changes. */
export async function keepSecret(file: string): Promise<string> {
  if (!existsSync(file)) await writeSecret(file, randomBytes(32).toString('base64url'))
  return readSecret(file)
}

async function readSecret(file: string): Promise<string> {
  await requireOwner(file)
  const { mode } = await stat(file)
  // The group may read it: some container platforms give a volume's files to a group of their own.
  if (mode & 0o007) {
    throw new Refusal(
      `Other users of this machine can read or change ${file}. Run \`chmod o= ${file}\`; if others have read it, ` +
        'it is no longer secret.',
    )
  }
  const secret = (await readFile(file, 'utf8')).trim()
  if (secret.length < 32) throw new Refusal(`${file} does not contain a secret. Restore it from a backup.`)
  return secret
}

/** The owner of a file can change it. A link and the file behind it may have different owners. */
export async function requireOwner(file: string): Promise<void> {
  for (const look of [lstat, stat]) {
    const found = await look(file).catch(() => undefined)
    // guard: owner of a secret
    if (found && found.uid !== 0 && found.uid !== process.getuid?.()) {
      throw new Refusal(
        `${file} belongs to another user of this machine (uid ${found.uid}), who can change it. ` +
          'Run Parley as that user, or choose another directory with --data-dir.',
      )
    }
  }
}

export async function findSecret(file: string): Promise<string | undefined> {
  return existsSync(file) ? readSecret(file) : undefined
}

export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Writes the file whole, then links it: a reader sees all of it or nothing, and the first file stays. */
export async function writeSecret(file: string, secret: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  for (let linked = false; !linked; ) {
    linked = await withDraft(file, secret, (draft) => link(draft, file)).catch((error) => {
      if (error.code === 'EEXIST') return true
      throw error
    })
  }
}

/** Replaces a secret by another one: a reader sees one of them. */
export async function replaceSecret(file: string, secret: string): Promise<void> {
  while (!(await withDraft(file, secret, (draft) => rename(draft, file))));
  await syncDirectory(dirname(file))
}

/** False: another starting process has removed the draft, taking it for one that a killed process left. */
async function withDraft(
  file: string,
  secret: string,
  place: (draft: string) => Promise<void>,
): Promise<boolean> {
  const draft = `${file}.${randomBytes(4).toString('hex')}`
  try {
    await writeFile(draft, secret, { mode: 0o600, flush: true })
    return await place(draft).then(
      () => true,
      (error) => {
        if (error.code === 'ENOENT') return false
        throw error
      },
    )
  } finally {
    // Also on a full disk.
    await rm(draft, { force: true })
  }
}
