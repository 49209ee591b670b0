/** Backups of the embedded database, and what every restore must do before messages go out again. */
import { join } from 'node:path'
import type { Command } from 'commander'
import { endEverySession } from '../access/sessions.ts'
import type { App } from '../app.ts'
import { type Actor, type Recorder, record } from '../capabilities/audit/audit.ts'
import { switchDispatch } from '../capabilities/gates/gates.ts'
import { endEverySetupLink } from '../capabilities/users/users.ts'
import { readConfig } from '../config.ts'
import { type BackupFacts, writeBackup } from '../db/backup.ts'
import {
  type BackupEnd,
  type BackupHeader,
  backupFormat,
  type OpenBackup,
  openBackup,
} from '../db/backup-file.ts'
import { openEmbedded } from '../db/embedded.ts'
import { openDatabase } from '../db/pool.ts'
import { requireSteps, restoreBackup } from '../db/restore.ts'
import { findSecret, keepSecret, writeSecret } from '../db/secret-file.ts'
import type { Database, Tx } from '../db/sql.ts'
import { renewGeneration } from '../ledger/restore-counter.ts'
import { Refusal } from '../lib/errors.ts'
import { Secrets } from '../lib/secrets.ts'
import { version } from '../lib/version.ts'
import { describeArguments } from './help.ts'
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
  verb<Shared>(program, 'backup <file>', undefined, (app, actor, { dataDir }, file = '') =>
    backUp(app, actor, { data_dir: dataDir, file }),
  ).addHelpText('after', backupHelp)
  describeArguments(commandOf(program, 'restore [file]'))
    .option(
      '--mark',
      'mark a database that was restored with other tools: switches sending off and informs its workers',
      false,
    )
    .option('--json', 'print one JSON document', false)
    .addHelpText('after', restoreHelp)
    .action(async (file: string | undefined, _, command: Command) => {
      const options = command.optsWithGlobals<Shared & { mark: boolean }>()
      if (file === undefined && !options.mark) {
        command.error(
          'error: the file is missing: name a backup, or use --mark after a restore with other tools',
        )
      }
      if (file !== undefined && options.mark) command.error('error: --mark takes no file')
      const result =
        file === undefined
          ? await withApp(options, (app) => markRestored(app, actor()))
          : await restore(file, { data_dir: options.dataDir, migrations: parts.migrations })
      await print(result, options)
    })
}

const backupHelp = `
The service may keep running: the file is a snapshot of one moment. Only its owner can read it, because it contains the
secret of the instance, unless PARLEY_SECRET is set. It does not contain the journals in ledger/: they stay
with their worker. For DATABASE_URL use the tools of that database.`

const restoreHelp = `
The data directory must have no workspace yet and no running service. Journals in its ledger/ stay where they
are. After a restore sending is off: only the journals know what was sent after the backup.`

async function backUp(app: App, actor: Actor, { data_dir, file }: { data_dir: string; file: string }) {
  requireEmbedded(app.config)
  const secret = app.config.secret === undefined ? await keepSecret(join(data_dir, 'secret')) : null
  const header = { parley_version: version, secret, secret_id: idOf(app.secrets) }
  const made = ({ bytes, tables }: BackupFacts) =>
    app.db.transaction((tx) =>
      record(app, tx, actor, {
        action: 'backup.made',
        target: 'instance',
        detail: { bytes, ...summary(tables) },
      }),
    )
  const { bytes, tables } = await withProgress('Backing up', writeBackup(app.db, file, { header, made }))
  return { file, bytes, tables: tables.length, rows: sum(tables) }
}

function requireEmbedded({ database }: Pick<App['config'], 'database'>): void {
  if (database.kind === 'embedded') return
  throw new Refusal(
    'Back up and restore the database of DATABASE_URL with its own tools, such as pg_dump and pg_restore. ' +
      'After a restore, run `parley restore --mark`.',
  )
}

async function restore(
  file: string,
  { data_dir, migrations }: { data_dir: string; migrations: readonly string[] },
) {
  const config = readConfig(process.env, platformVariables)
  requireEmbedded(config)
  const backup = await withProgress('Checking the backup', openBackup(file))
  try {
    const steps = await requireSteps(backup, migrations)
    const secret = await requireSecret(backup.header, { given: config.secret, data_dir })
    // Nothing has been written so far.
    const embedded = await openEmbedded({ data_dir, claim: 'service' })
    const db = openDatabase(embedded.connection, { pool_size: 1 })
    const close = async () => {
      await db.close()
      await embedded.close()
    }
    const finish = async (tx: Tx, end: BackupEnd) => {
      await noteRestore(tx, { secret, header: backup.header, end })
      // Before the commit: the restored database is useless without its secret, and nothing writes the secret later.
      if (config.secret === undefined) await writeSecret(join(data_dir, 'secret'), secret)
    }
    return await closing(close, () => load(db, backup, { steps, finish }))
  } finally {
    await backup.close()
  }
}

async function load(db: Database, backup: OpenBackup, how: Parameters<typeof restoreBackup>[2]) {
  const { tables } = await withProgress('Restoring', restoreBackup(db, backup, how))
  const { made_at, parley_version } = backup.header
  return { made_at, parley_version, tables: tables.length, rows: sum(tables), dispatch: false, next }
}

async function noteRestore(
  tx: Tx,
  { secret, header, end }: { secret: string; header: BackupHeader; end: BackupEnd },
): Promise<void> {
  const app = { secrets: new Secrets(secret), log: makeLogger('silent') }
  const { made_at, parley_version } = header
  await leaveGeneration(app, tx, actor(), {
    action: 'restore.done',
    detail: { made_at, parley_version, ...summary(end.tables) },
  })
}

/** Returns the backup's secret. Refuses if the data directory or PARLEY_SECRET has a different one. */
async function requireSecret(
  { secret, secret_id }: BackupHeader,
  { given, data_dir }: { given: string | undefined; data_dir: string },
): Promise<string> {
  const path = join(data_dir, 'secret')
  const present = given ?? (await findSecret(path))
  const wanted = present ?? secret
  if (wanted === null) {
    throw new Refusal(
      'The backup was created with PARLEY_SECRET and does not contain it. Set PARLEY_SECRET to the same value.',
    )
  }
  if (idOf(new Secrets(wanted)) === secret_id) return wanted
  throw new Refusal(
    given === undefined
      ? `${path} is not the secret that the backup was created with. Move it away, or choose another --data-dir.`
      : 'PARLEY_SECRET is not the secret that the backup was created with.',
  )
}

/** Identifies a secret by a subkey that has no other use. */
function idOf(secrets: Secrets): string {
  return secrets.sign('backup', 'secret').toString('hex')
}

async function markRestored(app: App, actor: Actor) {
  await app.db.transaction((tx) => leaveGeneration(app, tx, actor, { action: 'restore.marked', detail: {} }))
  await app.settings.refresh()
  return { dispatch: false, next }
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
