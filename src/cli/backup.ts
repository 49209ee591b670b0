/** Backups of the embedded database, and what every restore must do before messages go out again. */
import type { Command } from 'commander'
import { endEverySession } from '../access/sessions.ts'
import type { App } from '../app.ts'
import { type Actor, type Recorder, record } from '../capabilities/audit/audit.ts'
import { listErasures } from '../capabilities/erasing/erasing.ts'
import { switchDispatch } from '../capabilities/gates/gates.ts'
import { endEverySetupLink } from '../capabilities/users/users.ts'
import { type Config, readConfig } from '../config.ts'
import { type BackupFacts, type SnapshotSecrets, writeBackup } from '../db/backup.ts'
import { type BackupKey, isEncryptedFile, prepareEncryption } from '../db/backup-encryption.ts'
import {
  type BackupEnd,
  type BackupHeader,
  backupFormat,
  type OpenBackup,
  openBackup,
} from '../db/backup-file.ts'
import { readOrigin } from '../db/backup-origin.ts'
import { openEmbedded } from '../db/embedded.ts'
import { openDatabase } from '../db/pool.ts'
import { requireSteps, restoreBackup } from '../db/restore.ts'
import { findSecret, writeSecret } from '../db/secret-file.ts'
import type { Database, Tx } from '../db/sql.ts'
import { keepErasures } from '../ledger/erasure-list.ts'
import { readInstance, renewGeneration } from '../ledger/restore-counter.ts'
import { Refusal } from '../lib/errors.ts'
import { Secrets, shortId } from '../lib/secrets.ts'
import { version } from '../lib/version.ts'
import { collect, type EncryptOptions, readBackupKey, readBackupLock } from './backup-keys.ts'
import { describeArguments } from './help.ts'
import {
  findSecrets,
  type GivenSecrets,
  requireSecrets,
  secretFiles,
  secretsOf,
  textOf,
  tieRestored,
} from './instance-secret.ts'
import {
  type ErasureOptions,
  eraseAgain,
  keepOnDisk,
  requireErasuresOf,
  requireErasuresSince,
} from './known-erasures.ts'
import { makeLogger } from './log.ts'
import { print } from './output.ts'
import { platformVariables } from './platforms.ts'
import { withProgress } from './progress.ts'
import type { Parts } from './service.ts'
import { actor, closing, commandOf, type Shared, verb, withApp } from './verbs.ts'

const next =
  'Sending is off. Start the service with the ledger/ folders of every worker that worked on the database before, check ' +
  '`parley operation list --ambiguous`, then run `parley dispatch on`.'

export const addBackupVerbs = (parts: Parts) => (program: Command) => {
  verb<Shared & EncryptOptions>(program, 'backup <file>', undefined, (app, actor, options, file = '') =>
    backUp(app, actor, { data_dir: options.dataDir, file, options }),
  )
    .option('--encrypt', 'encrypt the file with a passphrase, which is read from standard input', false)
    .option('--recipient <key>', 'encrypt the file for this public key, age1…; may be repeated', collect, [])
    .addHelpText('after', backupHelp)
  describeArguments(commandOf(program, 'restore [file]'))
    .option(
      '--mark',
      'mark a database that was restored with other tools: switches sending off and informs its workers',
      false,
    )
    .option(
      '--identity <file>',
      'a file with the private key that opens an encrypted backup, AGE-SECRET-KEY-1…',
    )
    .option(
      '--erasures <file>',
      'a list of erasures that is newer than the backup, such as the one beside a later backup',
    )
    .option('--without-erasures', 'confirm that people who were erased since the backup come back', false)
    .option('--json', 'print one JSON document', false)
    .addHelpText('after', restoreHelp)
    .action(async (file: string | undefined, _, command: Command) => {
      const options = command.optsWithGlobals<
        Shared & { mark: boolean; identity?: string; erasures?: string; withoutErasures: boolean }
      >()
      if (file === undefined && !options.mark) {
        command.error(
          'error: the file is missing: name a backup, or use --mark after a restore with other tools',
        )
      }
      if (file !== undefined && options.mark) command.error('error: --mark takes no file')
      const { dataDir: data_dir, erasures, withoutErasures: without_erasures } = options
      const lists = { data_dir, erasures, without_erasures }
      const result =
        file === undefined
          ? await withApp(options, (app) => markRestored(app, actor(), lists))
          : await restore(file, {
              ...lists,
              migrations: parts.migrations,
              key: () => readBackupKey(options.identity),
            })
      await print(result, options)
    })
}

const backupHelp = `
The service may keep running: the file is a snapshot of one moment. Only its owner can read it, because it contains the
secret of the instance, unless PARLEY_SECRET is set. --encrypt and --recipient encrypt it; age opens such a file too. It does not contain the journals in ledger/: they stay
with their worker. For DATABASE_URL use the tools of that database.`

const restoreHelp = `
An encrypted backup asks for its passphrase on standard input, unless --identity names a private key.
The data directory must have no workspace yet and no running service. Journals in its ledger/ stay where they
are. After a restore sending is off: only the journals know what was sent after the backup.
People who were erased since the backup are erased again: from the list in ledger/ if this instance wrote it, or from the file of
--erasures. Beside every backup is the list of its moment, with .erasures after its name. It has no names. Where there is neither
list, --without-erasures confirms that these people come back. --mark needs the same: a list on this disk counts only if it is newer
than the database. From the end of the command nothing is sent to these people. Their texts go once the service runs: its journals
say what was on its way to them, and its search has their words.`

async function backUp(
  app: App,
  actor: Actor,
  { data_dir, file, options }: { data_dir: string; file: string; options: EncryptOptions },
) {
  requireEmbedded(app.config)
  const lock = await readBackupLock(options)
  const encrypt = lock && (await prepareEncryption(lock))
  const secretsOf = await secretsOfBackup(app, data_dir)
  const header = async (snapshot: SnapshotSecrets) => ({
    parley_version: version,
    ...(await secretsOf(snapshot)),
  })
  const made = ({ bytes, tables }: BackupFacts) =>
    app.db.transaction((tx) =>
      record(app, tx, actor, {
        action: 'backup.made',
        target: 'instance',
        detail: { bytes, ...summary(tables) },
      }),
    )
  const { bytes, tables } = await withProgress(
    'Backing up',
    writeBackup(app.db, file, { header, made, encrypt }),
  )
  // It has no names, and grows more important than the backup: a restore of an older one needs the newest list.
  await keepErasures(`${file}.erasures`, await listErasures(app.db))
  return { file, encrypted: lock !== undefined, bytes, tables: tables.length, rows: sum(tables) }
}

type SecretHeader = Pick<BackupHeader, 'secret' | 'secret_id' | 'old_secret' | 'old_secret_id'>

/** The secret that the snapshot is sealed with, and during a rotation both: neither alone opens everything. */
async function secretsOfBackup(
  app: App,
  data_dir: string,
): Promise<(snapshot: SnapshotSecrets) => Promise<SecretHeader>> {
  const before = await requireSecrets(app.config, { data_dir, makes: true })
  return async (snapshot) => {
    // Another command may have made the new secret, or removed the old one, since this one began.
    const now = (await findSecrets(app.config, data_dir)) ?? before
    const textIn = (id: string) =>
      before.from === 'files' ? (textOf(before, id) ?? textOf(now, id) ?? null) : null
    // Whoever has lost the secret of the instance backs up and restores with another one.
    const use = app.secrets.isTied ? snapshot : undefined
    const secret_id = use?.secret_id ?? app.secrets.id
    const header = { secret: textIn(secret_id), secret_id }
    if (!use?.old_id) return header
    return { ...header, old_secret: textIn(use.old_id), old_secret_id: use.old_id }
  }
}

function requireEmbedded({ database }: Pick<App['config'], 'database'>): void {
  if (database.kind === 'embedded') return
  throw new Refusal(
    'Back up and restore the database of DATABASE_URL with its own tools, such as pg_dump and pg_restore. ' +
      'After a restore, run `parley restore --mark`.',
  )
}

interface RestoreOptions extends ErasureOptions {
  readonly data_dir: string
  readonly migrations: readonly string[]
  /** Asked for if the backup is encrypted. */
  readonly key: () => Promise<BackupKey>
}

async function restore(file: string, { data_dir, migrations, key, ...lists }: RestoreOptions) {
  const config = readConfig(process.env, platformVariables)
  requireEmbedded(config)
  const backup = await withProgress('Checking the backup', openBackup(file, await keyOf(file, key)))
  try {
    const steps = await requireSteps(backup, migrations)
    const { secret, old } = await requireBackupSecrets(backup.header, { config, data_dir })
    const erasures = await requireErasuresSince(await readOrigin(backup), { data_dir, ...lists })
    // Nothing has been written so far.
    const embedded = await openEmbedded({ data_dir, claim: 'service' })
    const db = openDatabase(embedded.connection, { pool_size: 1 })
    const close = async () => {
      await db.close()
      await embedded.close()
    }
    const finish = async (tx: Tx, end: BackupEnd) => {
      await noteRestore(tx, { secret, old, header: backup.header, end })
      if (config.secret !== undefined) return
      // Before the commit: the restored database is useless without its secret, and nothing writes the secret later.
      const files = secretFiles(data_dir)
      if (old !== undefined) await writeSecret(files.old, old)
      await writeSecret(files.secret, secret)
    }
    return await closing(close, async () => {
      // Before the commit: if the restore is killed after it, a worker repeats them before it sends anything.
      await keepOnDisk(data_dir, erasures)
      const loaded = await load(db, backup, { steps, finish })
      const secrets = new Secrets(secret, old)
      if (erasures.length > 0) await db.transaction((tx) => tieRestored(tx, secrets))
      const erased = await eraseAgain({ db, secrets }, erasures)
      return { ...loaded, next: nextOf(erased), erased }
    })
  } finally {
    await backup.close()
  }
}

/** Asked before the progress is shown, which would write over the question. */
async function keyOf(file: string, ask: RestoreOptions['key']): Promise<BackupKey | undefined> {
  return (await isEncryptedFile(file)) ? ask() : undefined
}

async function load(db: Database, backup: OpenBackup, how: Parameters<typeof restoreBackup>[2]) {
  const { tables } = await withProgress('Restoring', restoreBackup(db, backup, how))
  const { made_at, parley_version } = backup.header
  return { made_at, parley_version, tables: tables.length, rows: sum(tables), dispatch: false }
}

async function noteRestore(
  tx: Tx,
  { secret, old, header, end }: BackupSecrets & { header: BackupHeader; end: BackupEnd },
): Promise<void> {
  const app = { secrets: new Secrets(secret, old), log: makeLogger('silent') }
  // The backup brings its own stored keys; one of release 0.3 gets them here.
  await tieRestored(tx, app.secrets)
  const { made_at, parley_version } = header
  await leaveGeneration(app, tx, actor(), {
    action: 'restore.done',
    detail: { made_at, parley_version, ...summary(end.tables) },
  })
}

interface BackupSecrets {
  readonly secret: string
  readonly old: string | undefined
}

/** Returns the secrets that open the backup. Refuses if the data directory or the environment has others. */
async function requireBackupSecrets(
  header: BackupHeader,
  { config, data_dir }: { config: Config; data_dir: string },
): Promise<BackupSecrets> {
  const given = await findSecrets(config, data_dir)
  const known = given ?? secretsIn(header)
  const missing = new Set([header.secret_id, ...(header.old_secret_id ? [header.old_secret_id] : [])])
  for (const id of missing) if (known && textOf(known, id) !== undefined) missing.delete(id)
  if (!known || missing.size > 0)
    throw new Refusal(wrongSecret(header, { missing: [...missing], given, data_dir }))
  const { old } = secretFiles(data_dir)
  const left = given ? undefined : await findSecret(old)
  // guard: a restore leaves no other old secret in the place of its own
  if (left !== undefined && left !== known.old) {
    throw new Refusal(
      `${old} is the secret of another instance, or of another day. Move ${old} away, or choose another --data-dir.`,
    )
  }
  return { secret: known.secret, old: known.old }
}

/** Those that the file itself contains. */
function secretsIn({ secret, old_secret }: BackupHeader): GivenSecrets | undefined {
  if (secret === null) return undefined
  return { secret, old: old_secret ?? undefined, from: 'files' }
}

function wrongSecret(
  { made_at }: BackupHeader,
  {
    missing,
    given,
    data_dir,
  }: { missing: readonly string[]; given: GivenSecrets | undefined; data_dir: string },
): string {
  const needs = `The backup of ${made_at} needs the secret ${missing.map(shortId).join(' and the secret before it, ')}`
  if (!given) {
    const set = missing.length > 1 ? 'PARLEY_SECRET and PARLEY_SECRET_OLD' : 'PARLEY_SECRET'
    return `${needs}: it was created with PARLEY_SECRET and does not contain it. Set ${set} to the same value.`
  }
  const named = secretsOf(given).ids.map(shortId).join(' and ')
  return given.from === 'files'
    ? `${needs}. ${secretFiles(data_dir).secret} is not the secret that the backup was created with, but ${named}. Move it away, or choose another --data-dir.`
    : `${needs}. PARLEY_SECRET is not the secret that the backup was created with, but ${named}. Set it as PARLEY_SECRET or as PARLEY_SECRET_OLD.`
}

async function markRestored(app: App, actor: Actor, lists: ErasureOptions & { readonly data_dir: string }) {
  const erasures = await requireErasuresOf(await readInstance(app.db), lists)
  // Before the mark: if this fails, the operator has to repeat the command.
  const erased = await eraseAgain(app, erasures)
  await app.db.transaction((tx) => leaveGeneration(app, tx, actor, { action: 'restore.marked', detail: {} }))
  await app.settings.refresh()
  return { dispatch: false, next: nextOf(erased), erased }
}

function nextOf(erased: number): string {
  if (erased === 0) return next
  const who = erased === 1 ? 'One person is' : `${erased} people are`
  return `${who} erased again: what this database has of them goes while the service runs. ${next}`
}

const restored = 'The database was restored.'

/** A new generation warns every worker that this database may have lost sends. */
async function leaveGeneration(
  app: Recorder,
  tx: Tx,
  actor: Actor,
  { action, detail }: { action: string; detail: Readonly<Record<string, unknown>> },
): Promise<void> {
  const { id, generation } = await renewGeneration(tx)
  // The backup may contain sessions that have since ended and links that have since been used.
  await endEverySession(tx)
  await endEverySetupLink(tx)
  await switchDispatch(app, tx, actor, false, restored)
  await record(app, tx, actor, {
    action,
    target: 'instance',
    detail: { ...detail, instance_id: id, generation },
  })
}

function summary(tables: BackupEnd['tables']) {
  return { format: backupFormat, tables: tables.length, rows: sum(tables) }
}

function sum(tables: BackupEnd['tables']): number {
  return tables.reduce((total, { rows }) => total + rows, 0)
}
