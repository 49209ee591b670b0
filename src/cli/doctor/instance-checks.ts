/** Whether this instance works: its secret, workers, accounts, sending and webhooks. */
import type { App } from '../../app.ts'
import { listTroubled } from '../../capabilities/accounts/accounts.ts'
import { beginsUnderSecret, findVerdict } from '../../capabilities/audit/audit.ts'
import { readDispatch } from '../../capabilities/gates/gates.ts'
import { listNarrowedKeys } from '../../capabilities/keys/keys.ts'
import { listDisabled, listStopped } from '../../capabilities/webhooks/webhooks.ts'
import { findMissingSecret, findSecretUse, type SecretUse } from '../../db/secret-use.ts'
import { diskShortBytes, listWorkers } from '../../ledger/workers.ts'
import { type Secrets, shortId } from '../../lib/secrets.ts'
import { version } from '../../lib/version.ts'
import { inspectSecretUse } from '../secret.ts'
import { type Check, counted, type Finding, fault, mebibytes, orOk, some, warning } from './finding.ts'

type Instance = Pick<App, 'db' | 'secrets'>

export const instanceChecks: readonly Check<Instance>[] = [
  { name: 'secret', look: lookAtSecret },
  { name: 'workers', look: lookAtWorkers },
  { name: 'accounts', look: lookAtAccounts },
  { name: 'dispatch', look: lookAtDispatch },
  { name: 'webhooks', look: lookAtWebhooks },
  { name: 'keys', look: lookAtKeys },
]

async function lookAtSecret(app: Instance): Promise<readonly Finding[]> {
  const use = await findSecretUse(app.db)
  const missing = await findMissingSecret(app.db, app.secrets)
  if (missing !== undefined) return [fault(missing, 'Restart every process with it.')] // guard: doctor names the secret that a process lacks
  if ((use && !app.secrets.isTied) || !(await beginsUnderSecret(app))) {
    return [
      fault(
        `The audit log was begun under another secret: sessions, cursors, webhook secrets and logins do not work. ${namesOf(use, app.secrets)}`,
        'Set PARLEY_SECRET to the secret that the instance uses.',
      ),
    ]
  }
  const problems = use ? await problemsOfSecret(app, use) : []
  const verdict = await findVerdict(app.db)
  if (verdict && !verdict.ok) {
    problems.push(
      fault(
        `The last verification of the audit log failed: ${verdict.problem}.`,
        'Find out who changed the table `audit`, then run `parley audit verify`.',
      ),
    )
  }
  return orOk(problems, `It is the one under which the audit log was begun, ${shortId(app.secrets.id)}.`)
}

function namesOf(use: SecretUse | undefined, secrets: Secrets): string {
  const given = secrets.ids.map(shortId).join(' and ')
  return use ? `The instance uses ${shortId(use.secret_id)}; given is ${given}.` : `Given is ${given}.`
}

/** What still uses the old secret, and what no given secret opens. */
async function problemsOfSecret(app: Instance, use: SecretUse): Promise<Finding[]> {
  const columns = await inspectSecretUse(app)
  const countOf = (which: 'old' | 'lost') =>
    columns.flatMap(({ name, [which]: count }) => (count > 0 ? [`${count} in ${name}`] : [])).join(', ')
  const problems: Finding[] = []
  const others = app.secrets.ids.filter((id) => id !== use.secret_id)
  const [old, lost] = [countOf('old'), countOf('lost')]
  if (use.old_id !== null || old !== '') {
    const left = old === '' ? 'Nothing uses the old one any more.' : `Sealed with the old one: ${old}.` // guard: doctor names what uses the old secret
    problems.push(warning(`A rotation of the secret has not ended. ${left}`, 'Run `parley secret rotate`.'))
  } else if (use.secret_id !== app.secrets.ids[0]) {
    problems.push(
      warning(
        `Everything is sealed with the old secret, ${shortId(use.secret_id)}.`,
        'Once every process has both secrets, run `parley secret rotate`.',
      ),
    )
  } else if (others.length > 0) {
    problems.push(
      warning(
        'Nothing uses the old secret any more.',
        'Unset PARLEY_SECRET_OLD and restart the processes. Keep the secret as long as backups that were made with it.',
      ),
    )
  }
  if (lost !== '') {
    const keys = columns.flatMap(({ lost_keys }) => lost_keys)
    problems.push(
      warning(
        `None of the given secrets opens ${lost}: ${some(keys)}.`,
        'Log these accounts in again, set their proxy again, or rotate the secret of these webhooks.',
      ),
    )
  }
  return problems
}

async function lookAtWorkers({ db }: Instance): Promise<readonly Finding[]> {
  const workers = await listWorkers(db)
  const alive = workers.filter(({ state }) => isAlive(state))
  const problems = workers.flatMap((worker) => problemsOf(worker, alive))
  const others = new Set(alive.map((worker) => worker.version).filter((each) => each !== version))
  if (others.size > 0) {
    problems.push(
      warning(
        `Workers of other versions than this one, ${version}, run: ${some([...others])}.`,
        'Finish the upgrade: docs/upgrading.md has the order.',
      ),
    )
  }
  if (alive.length === 0 && problems.length === 0) {
    problems.push(
      fault(
        'No worker runs, so nothing is sent and nothing arrives.',
        'Start `parley start` or `parley work`.',
      ),
    )
  }
  return orOk(problems, `Running: ${counted(alive.length, 'worker')}.`)
}

type Worker = Awaited<ReturnType<typeof listWorkers>>[number]

function isAlive(state: Worker['state']): boolean {
  return state === 'driving' || state === 'without_journal'
}

function problemsOf(worker: Worker, alive: readonly Worker[]): Finding[] {
  const { id, state, failing, disk_free, beat_at } = worker
  if (state === 'silent') {
    // A worker that started since then has taken over its accounts and, on the same disk, its journal.
    if (alive.some(({ started_at }) => started_at > beat_at)) return []
    return [
      warning(
        `The worker ${id} ended without signing off; its last heartbeat was at ${beat_at.toISOString()}.`,
        'Start a worker with the same data directory: its journal is there.',
      ),
    ]
  }
  if (!isAlive(state)) return []
  const problems: Finding[] = []
  if (state === 'without_journal') {
    problems.push(
      fault(
        `The worker ${id} cannot write its journal, so it drives no account.`,
        'Make its data directory writable, or free disk space.',
      ),
    )
  }
  if (failing.length > 0) {
    problems.push(
      fault(`The worker ${id} fails in ${some(failing)}.`, 'Read its log for "a background step failed".'),
    )
  }
  if (disk_free !== null && disk_free < diskShortBytes) {
    problems.push(
      warning(
        `The disk of the worker ${id} has ${mebibytes(disk_free)} left.`,
        'Free disk space: without it the worker cannot write its journal and sends nothing.',
      ),
    )
  }
  return problems
}

async function lookAtAccounts({ db }: Instance): Promise<readonly Finding[]> {
  const troubled = await listTroubled(db)
  const of = (...statuses: readonly string[]) =>
    troubled.filter(({ status }) => statuses.includes(status)).map(({ id }) => id)
  const stopped = troubled.filter((each) => each.first_messages_stopped_at !== null && isDriven(each.status))
  const held = troubled.filter(({ campaigns_held_at }) => campaigns_held_at !== null)
  const undriven = troubled.filter(
    (each) =>
      isDriven(each.status) && each.first_messages_stopped_at === null && each.campaigns_held_at === null,
  )
  const groups: readonly (readonly [ids: readonly string[], (names: string) => Finding])[] = [
    [
      of('NEEDS_LOGIN'),
      (names) => warning(`Accounts need a login: ${names}.`, 'Run `parley account login ACCOUNT_ID`.'),
    ],
    [
      of('RESTRICTED'),
      (names) =>
        warning(
          `The platform or Parley restricts accounts: ${names}.`,
          'Read their status_reason in `parley account list`, then run `parley account enable ACCOUNT_ID`.',
        ),
    ],
    [
      undriven.map(({ id }) => id),
      (names) =>
        fault(
          `No worker can drive accounts: ${names}.`,
          'Start a worker that has the variables of their platform and can write its journal.',
        ),
    ],
    [
      stopped.map(({ id }) => id),
      (names) =>
        warning(
          `The platform takes no first messages from accounts: ${names}.`,
          'Wait some days, then run `parley account enable ACCOUNT_ID`.',
        ),
    ],
    [
      held.map(({ id }) => id),
      (names) =>
        warning(
          `Campaign messages of accounts wait, because sends kept ending with an unknown error: ${names}.`,
          'Read their status_reason in `parley account list`, then run `parley account enable ACCOUNT_ID`.',
        ),
    ],
  ]
  const problems = groups.flatMap(([ids, say]) => (ids.length > 0 ? [say(some(ids))] : []))
  return orOk(problems, 'None needs a person or a worker.')
}

function isDriven(status: string): boolean {
  return status === 'CONNECTING' || status === 'READY'
}

async function lookAtDispatch({ db }: Instance): Promise<readonly Finding[]> {
  const { dispatch, since, reason, owing, unconfirmed } = await readDispatch(db)
  const problems: Finding[] = []
  if (!dispatch) {
    const when = since ? ` since ${since.toISOString()}` : ''
    problems.push(
      warning(
        `Sending is off${when}${reason ? `: ${reason}` : '.'}`,
        'Run `parley dispatch on` once it may continue.',
      ),
    )
  }
  for (const { id, beat_at } of owing) {
    problems.push(
      fault(
        `Nothing is sent before the worker ${id} has replayed its journals; its last heartbeat was at ${beat_at.toISOString()}.`,
        `Start it with the data directory it had. If that disk is lost, run \`parley dispatch on --without ${id}\`.`,
      ),
    )
  }
  if (unconfirmed.length > 0) {
    problems.push(
      warning(
        `First messages wait for accounts that have not connected since PostgreSQL started: ${some(unconfirmed.map(({ account_id }) => account_id))}.`,
        'Connect them, or run `parley account disable ACCOUNT_ID`.',
      ),
    )
  }
  return orOk(problems, 'Sending is on.')
}

async function lookAtWebhooks({ db }: Instance): Promise<readonly Finding[]> {
  const disabled = await listDisabled(db)
  const stopped = await listStopped(db)
  const problems: Finding[] = []
  if (disabled.length > 0) {
    problems.push(
      warning(
        `Webhooks were disabled after too many failures: ${some(disabled.map(({ id }) => id))}.`,
        'Repair the receiver, then run `parley webhook update WEBHOOK_ID --active` with a key of its workspace.',
      ),
    )
  }
  if (stopped.length > 0) {
    problems.push(
      warning(
        `Webhooks stopped because their maker was removed or disabled: ${some(stopped.map(({ id }) => id))}.`,
        'An admin of the workspace activates or deletes each at the dashboard.',
      ),
    )
  }
  return orOk(problems, 'None is disabled.')
}

async function lookAtKeys({ db }: Instance): Promise<readonly Finding[]> {
  const { routes } = await import('../../lists/routes.ts')
  const narrowed = await listNarrowedKeys(db, routes)
  const problems = narrowed.map(({ id, prefix, last_used_at, lost }) => {
    const used = last_used_at ? `last used at ${last_used_at.toISOString()}` : 'never used'
    return warning(
      `The key ${prefix}… (${id}, ${used}) can no longer do what the role of its user does not allow: ${lost.join(', ')}.`,
      'Raise the role of its user, or issue another key with `parley key create`, which keeps all its scopes; then revoke this one.',
    )
  })
  return orOk(problems, 'No key has more scopes than the role of its user allows since the upgrade.')
}
