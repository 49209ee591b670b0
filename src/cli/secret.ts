/** `parley secret`: replaces the secret of the instance while the service runs. */
import type { Command } from 'commander'
import type { App } from '../app.ts'
import { type Actor, record } from '../capabilities/audit/audit.ts'
import { readConfig } from '../config.ts'
import { type ColumnUse, inspectColumn, resealColumn } from '../db/sealed-column.ts'
import {
  beginRotation,
  countProcesses,
  endRotation,
  findSecretUse,
  type SecretUse,
} from '../db/secret-use.ts'
import { listWorkers } from '../ledger/workers.ts'
import { Refusal } from '../lib/errors.ts'
import { type Secrets, shortId } from '../lib/secrets.ts'
import { version } from '../lib/version.ts'
import { sealedColumns } from '../lists/sealed-columns.ts'
import { explainEnvironment } from './database-sentences.ts'
import { findSecrets, forgetOldSecret, prepareSecret, secretFiles } from './instance-secret.ts'
import { print } from './output.ts'
import { platformVariables } from './platforms.ts'
import { withProgress } from './progress.ts'
import { commandOf, type Shared, verb } from './verbs.ts'

export const addSecretVerbs = (program: Command) => {
  const secret = commandOf(program, 'secret').addHelpText('after', help)
  verb<Shared>(secret, 'show', 'which secret is in use, and what still uses another one', showSecret)
  commandOf(secret, 'prepare')
    .description('make a new secret in the data directory; the present one becomes `secret.old`')
    .option('--json', 'print one JSON document', false)
    .action(async (_, command: Command) => {
      const options = command.optsWithGlobals<Shared>()
      await print(await prepare(options.dataDir), options)
    })
  verb<Shared>(
    secret,
    'rotate',
    'seal everything with the new secret; a run that was stopped is continued',
    (app, actor, { dataDir }) => rotate(app, actor, dataDir),
  )
}

const help = `
A rotation has three steps, and the service goes on meanwhile:
  1. Every process gets both secrets. With PARLEY_SECRET: set it to the new one and PARLEY_SECRET_OLD to the present one, then
     restart the processes one after the other. Otherwise run \`parley secret prepare\` and restart the service.
  2. \`parley secret rotate\`, with the same environment.
  3. With PARLEY_SECRET: unset PARLEY_SECRET_OLD and restart the processes again.
A backup opens only with the secret it was made with: keep the old one as long as such backups.`

async function prepare(data_dir: string) {
  if (readConfig(process.env, platformVariables).secret !== undefined) {
    throw new Refusal(
      'This instance has its secret from PARLEY_SECRET. Set PARLEY_SECRET to a new one, such as `openssl rand -hex 32`, ' +
        'and PARLEY_SECRET_OLD to the present one.',
    )
  }
  const prepared = await prepareSecret(data_dir)
  const next = 'Restart the service, then run `parley secret rotate`.'
  return { prepared, old: secretFiles(data_dir).old, next }
}

async function showSecret(app: App) {
  const use = await findSecretUse(app.db)
  const columns = await inspectSecretUse(app)
  return {
    in_use: use ? shortId(use.secret_id) : null,
    rotating_from: use?.old_id ? shortId(use.old_id) : null,
    given: app.secrets.ids.map(shortId),
    sealed: columns.map(({ lost_keys: _, ...column }) => column),
  }
}

export async function inspectSecretUse({ db, secrets }: Pick<App, 'db' | 'secrets'>): Promise<ColumnUse[]> {
  const found = []
  for (const column of sealedColumns) found.push(await inspectColumn(db, secrets, column))
  return found
}

async function rotate(app: App, actor: Actor, data_dir: string) {
  const given = await findSecrets(app.config, data_dir)
  const { old_id, new_id, begins } = await planRotation(app)
  await requireProcesses(app, [new_id, old_id])
  const detail = { from: shortId(old_id), to: shortId(new_id) }
  if (begins) {
    await app.db.transaction(async (tx) => {
      const begun = await beginRotation(tx, app.secrets, { old_id, new_id })
      if (!begun) throw new Refusal('Another rotation has begun meanwhile. Run `parley secret show`.')
      await record(app, tx, actor, { action: 'secret.rotation_begun', target: 'instance', detail })
    })
    // crash point 25a: the rotation has begun, and only the stored keys are sealed again
  }
  const sealed = await resealAll(app).catch(stopped)
  // What changed meanwhile was sealed with the new secret; only a pass that finds nothing proves it.
  for (let again = sealed; again.resealed + again.changed > 0; ) again = await resealAll(app).catch(stopped)
  const { resealed, lost } = sealed
  // crash point 25b: everything is sealed again, and nothing says so yet
  const rotated = await app.db.transaction(async (tx) => {
    const ended = await endRotation(tx, old_id)
    if (!ended && resealed === 0) return false // guard: a rotation that did nothing is not recorded
    const done = { action: 'secret.rotated', target: 'instance', detail: { ...detail, resealed, lost } }
    await record(app, tx, actor, done)
    return true
  })
  // crash point 25c: the rotation has ended, and the file of the old secret is still there
  if (given?.from === 'files') await forgetOldSecret(data_dir)
  const next = given?.from === 'files' ? nextOfFiles : nextOfEnvironment
  if (rotated) return { rotated, ...detail, resealed, lost, next }
  return { rotated, in_use: detail.to, lost, next: given?.from === 'files' ? next : nothingDone(detail) }
}

function stopped(error: unknown): never {
  const found = explainEnvironment((error as Error).cause ?? error)
  throw found ? new Refusal(`The rotation has not ended, and the next run goes on. ${found.message}`) : error
}

/** Also what somebody sees who has given the two secrets the wrong way round. */
function nothingDone({ from, to }: { from: string; to: string }): string {
  return (
    `Nothing was to do: everything is sealed with ${to}, which is PARLEY_SECRET. To rotate to ${from}, set PARLEY_SECRET to it and ` +
    'PARLEY_SECRET_OLD to the other, and restart the processes. Otherwise unset PARLEY_SECRET_OLD and restart them.'
  )
}

const nextOfEnvironment =
  'Unset PARLEY_SECRET_OLD and restart the processes. Backups of before open only with the old secret: keep it as long as them.'
const nextOfFiles = 'The old secret is gone from the data directory. Backups of before contain it.'

interface RotationPlan {
  readonly old_id: string
  readonly new_id: string
  /** False: a run that was stopped is continued, or what was left is sealed again. */
  readonly begins: boolean
}

async function planRotation({ db, secrets }: Pick<App, 'db' | 'secrets'>): Promise<RotationPlan> {
  const use = await findSecretUse(db)
  const [new_id = '', old_id] = secrets.ids
  if (!use || !secrets.isTied) throw new Refusal(foreign(use, secrets))
  if (old_id === undefined) {
    throw new Refusal(
      'Only one secret is given, so there is nothing to rotate to. Run `parley secret --help`: it has the steps.',
    )
  }
  if (use.secret_id !== new_id && use.old_id !== null) {
    throw new Refusal(
      `The rotation from ${shortId(use.old_id)} to ${shortId(use.secret_id)} has not ended. Set PARLEY_SECRET to ` +
        `${shortId(use.secret_id)} and PARLEY_SECRET_OLD to ${shortId(use.old_id)}, and run this again.`,
    )
  }
  return { old_id, new_id, begins: use.secret_id !== new_id }
}

export function foreign(use: SecretUse | undefined, secrets: Secrets): string {
  const wanted = use ? `the secret ${shortId(use.secret_id)}` : 'another secret'
  return (
    `This instance uses ${wanted}, and the given one is ${secrets.ids.map(shortId).join(' and ')}. Set PARLEY_SECRET to the secret ` +
    'that the service uses; in a rotation, set PARLEY_SECRET to the new one and PARLEY_SECRET_OLD to that.'
  )
}

/** A process that knows only one of the secrets would fail in the middle. */
async function requireProcesses({ db }: Pick<App, 'db'>, wanted: readonly string[]): Promise<void> {
  const { lacking, unnamed } = await countProcesses(db, wanted)
  const workers = await listWorkers(db)
  const alive = workers.filter(({ state }) => state === 'driving' || state === 'without_journal')
  const earlier = alive.filter((worker) => worker.version !== version).length
  const ofBefore = unnamed > 0 || earlier > 0
  if (ofBefore) throw new Refusal(upgradeFirst) // guard: no rotation beside a process of an earlier release
  if (lacking > 0) throw new Refusal(restartFirst(lacking)) // guard: no rotation beside a process with one secret
}

const upgradeFirst =
  'A process of an earlier release runs on this database, or one is just starting. Finish the upgrade, then run this again.'

function restartFirst(lacking: number): string {
  return `Running processes that have only one of the two secrets: ${lacking}. Restart each with both, then run this again.`
}

interface ResealedColumns {
  readonly resealed: number
  readonly changed: number
  readonly lost: number
}

async function resealAll({ db, secrets }: Pick<App, 'db' | 'secrets'>): Promise<ResealedColumns> {
  const total = { resealed: 0, changed: 0, lost: 0 }
  for (const column of sealedColumns) {
    const done = await withProgress(`Sealing ${column.name} again`, resealColumn(db, secrets, column))
    total.resealed += done.resealed
    total.changed += done.changed
    total.lost += done.lost
  }
  return total
}
