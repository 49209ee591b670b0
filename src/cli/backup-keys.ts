/** The passphrase or the keys of an encrypted backup: never on the command line, where other users of the machine see them. */
import { readFile } from 'node:fs/promises'
import type { BackupKey, BackupLock } from '../db/backup-encryption.ts'
import { requireOwner } from '../db/secret-file.ts'
import { Refusal } from '../lib/errors.ts'
import { Prompt } from './prompt.ts'

export interface EncryptOptions {
  readonly encrypt: boolean
  /** Public keys. */
  readonly recipient: readonly string[]
}

export function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value]
}

const passphraseMin = 12

/** Undefined: the backup is not encrypted. */
export async function readBackupLock({
  encrypt,
  recipient,
}: EncryptOptions): Promise<BackupLock | undefined> {
  if (recipient.length > 0 && encrypt) {
    throw new Refusal(
      'A backup has a passphrase or recipients, not both: leave --encrypt or --recipient out.',
    )
  }
  if (recipient.length > 0) return { recipients: recipient }
  if (!encrypt) return undefined
  const passphrase = await askPassphrase({ twice: process.stdin.isTTY === true })
  if (passphrase.length < passphraseMin) {
    throw new Refusal(
      `A passphrase needs at least ${passphraseMin} characters: a file can be guessed at without end.`,
    )
  }
  return { passphrase }
}

export async function readBackupKey(identity: string | undefined): Promise<BackupKey> {
  if (identity === undefined) return { passphrase: await askPassphrase({ twice: false }) }
  await requireOwner(identity)
  const text = await readFile(identity, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Refusal(`The file ${identity} cannot be read (${error.code}).`)
  })
  const identities = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  if (identities.length === 0) throw new Refusal(`${identity} has no private key, AGE-SECRET-KEY-1….`)
  return { identities }
}

const noPassphrase =
  'Standard input ended without a passphrase. Type it at a terminal, pass it as one line (`< FILE`), or use a key: ' +
  '`parley backup --recipient`, `parley restore --identity`.'

async function askPassphrase({ twice }: { twice: boolean }): Promise<string> {
  const prompt = new Prompt()
  try {
    const ask = (question: string) =>
      prompt.ask(question, { hidden: true }).catch(() => {
        throw new Refusal(noPassphrase)
      })
    const passphrase = await ask('Passphrase of the backup: ')
    if (!twice || passphrase === (await ask('Again: '))) return passphrase
    throw new Refusal('The two passphrases differ. Nothing was written.')
  } finally {
    prompt.close()
  }
}
