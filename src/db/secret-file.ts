/** Secrets, and what else is made once and kept in the data directory. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Refusal } from '../lib/errors.ts'

/** Reads a secret of the data directory, made on the first call and then always the same. */
export async function keepSecret(file: string): Promise<string> {
  const secret = await keepText(file, randomBytes(32).toString('base64url'))
  if (secret.length < 32) throw new Refusal(`${file} does not hold a secret. Restore it from a backup.`)
  return secret
}

/** Reads a file of the data directory, made with this text on the first call and then always the same. */
export async function keepText(file: string, text: string): Promise<string> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  if (!existsSync(file)) {
    // Written whole, then linked: whoever sees the file sees all of it, and the first one stays.
    const draft = `${file}.${randomBytes(4).toString('hex')}`
    await writeFile(draft, text, { mode: 0o600, flush: true })
    await link(draft, file).catch((error) => {
      if (error.code !== 'EEXIST') throw error
    })
    await rm(draft)
  }
  return (await readFile(file, 'utf8')).trim()
}
