/** What is worth waking an operator for. A text names ids only: never a text, or the name of a person or a chat. */
import { connectionsShort, countConnections } from '../../db/server-state.ts'
import type { Db } from '../../db/sql.ts'
import { readLedgerFigures } from '../../ledger/figures.ts'
import { diskShortBytes, listWorkers } from '../../ledger/workers.ts'
import { countUndriven, listTroubled } from '../accounts/accounts.ts'
import { readDispatch } from '../gates/gates.ts'
import { listDisabled } from '../webhooks/webhooks.ts'

export type AlertKind =
  | 'account_needs_person'
  | 'campaigns_held'
  | 'sending_off'
  | 'worker_owes'
  | 'webhook_disabled'
  | 'disk_short'
  | 'database_short'
  | 'loop_failing'
  | 'accounts_without_worker'
  | 'journal_unwritable'
  | 'queue_old'

export interface Problem {
  readonly kind: AlertKind
  /** The same for as long as it lasts, also over a restart of a worker. */
  readonly subject: string
  readonly text: string
  /** What is said once it is over. */
  readonly over_text: string
}

/** Read from heartbeats and counts, which are missing for a moment when a process restarts: over only after a minute. */
export const fleetingKinds: readonly AlertKind[] = [
  'disk_short',
  'database_short',
  'loop_failing',
  'accounts_without_worker',
  'journal_unwritable',
  'queue_old',
]
/** They stop or threaten the whole instance: each begin is posted, and the heartbeat is silent while one lasts. */
export const instanceKinds: readonly AlertKind[] = [
  'sending_off',
  'worker_owes',
  'disk_short',
  'database_short',
  'accounts_without_worker',
  'journal_unwritable',
  'queue_old',
]
/** Most failures of a loop pass by themselves. */
export const patientKinds: readonly AlertKind[] = ['loop_failing']

/** Every problem of this moment. */
export async function listProblems(db: Db): Promise<Problem[]> {
  return [
    ...(await findAccounts(db)),
    ...(await findUndriven(db)),
    ...(await findDispatch(db)),
    ...(await findWebhooks(db)),
    ...(await findWorkers(db)),
    ...(await findConnections(db)),
    ...(await findQueue(db)),
  ]
}

async function findAccounts(db: Db): Promise<Problem[]> {
  const troubled = await listTroubled(db)
  const held = troubled.flatMap(({ id, platform, campaigns_held_by }): Problem[] => {
    if (campaigns_held_by === null) return [] // guard: held campaigns are worth an alert
    const whose = `the campaign messages of the account ${id} (${platform})`
    return [
      {
        kind: 'campaigns_held',
        subject: id,
        text: `Sends kept ending with the unknown error ${campaigns_held_by}, so ${whose} wait. Find out what it means, then enable the account.`,
        over_text: `Over: ${whose} no longer wait for a person.`,
      },
    ]
  })
  const needy = troubled
    .filter(({ status }) => status === 'NEEDS_LOGIN' || status === 'RESTRICTED')
    .map(
      ({ id, platform, status }): Problem => ({
        kind: 'account_needs_person',
        subject: id,
        text: `The account ${id} (${platform}) needs attention: its status is ${status}.`,
        over_text: `Over: the account ${id} (${platform}) no longer needs attention.`,
      }),
    )
  return [...needy, ...held]
}

/** Not while a worker restarts: one that ended within half a minute still counts. */
async function findUndriven(db: Db): Promise<Problem[]> {
  const undriven = await countUndriven(db)
  if (undriven === 0) return []
  return [
    {
      kind: 'accounts_without_worker',
      subject: '',
      text: `No running worker can drive ${undriven === 1 ? '1 account' : `${undriven} accounts`}: nothing is sent from there, and nothing arrives. Start a worker.`,
      over_text: 'Over: every account has a worker again.',
    },
  ]
}

/** Above it workers do not keep up; an operation that no worker takes is given up after half a minute. */
const queuedSecondsMax = 15

async function findQueue(db: Db): Promise<Problem[]> {
  const { queued_seconds } = await readLedgerFigures(db)
  if ((queued_seconds ?? 0) <= queuedSecondsMax) return []
  return [
    {
      kind: 'queue_old',
      subject: '',
      text: `An operation has waited for a worker for ${Math.floor(queued_seconds ?? 0)} s: the workers do not keep up.`,
      over_text: 'Over: no operation waits long for a worker any more.',
    },
  ]
}

async function findDispatch(db: Db): Promise<Problem[]> {
  const { dispatch, owing } = await readDispatch(db)
  const off: Problem = {
    kind: 'sending_off',
    subject: '',
    text: 'Sending is off. `parley dispatch status` says why.',
    over_text: 'Over: sending is on again.',
  }
  return [
    ...(dispatch ? [] : [off]),
    ...owing.map(
      ({ id }): Problem => ({
        kind: 'worker_owes',
        subject: id,
        text: `Nothing is sent before the worker ${id} has replayed its journals. Start it with the data directory it had.`,
        over_text: `Over: sending no longer waits for the worker ${id}.`,
      }),
    ),
  ]
}

async function findWebhooks(db: Db): Promise<Problem[]> {
  const disabled = await listDisabled(db)
  return disabled.map(({ id }) => ({
    kind: 'webhook_disabled',
    subject: id,
    text: `The webhook ${id} was disabled after too many failures.`,
    over_text: `Over: the webhook ${id} is active again, or was deleted.`,
  }))
}

async function findWorkers(db: Db): Promise<Problem[]> {
  const workers = await listWorkers(db)
  const alive = workers.filter(({ state }) => state === 'driving' || state === 'without_journal')
  const short = alive.find(({ disk_free }) => disk_free !== null && disk_free < diskShortBytes)
  const disk: Problem = {
    kind: 'disk_short',
    subject: '',
    text: `The disk of the worker ${short?.id} has ${Math.floor((short?.disk_free ?? 0) / 1024 ** 2)} MiB left.`,
    over_text: 'Over: the disk of every worker has room again.',
  }
  const unwritable = alive.find(({ state }) => state === 'without_journal')
  const journal: Problem = {
    kind: 'journal_unwritable',
    subject: '',
    text: `The worker ${unwritable?.id} cannot write its journal, and drives no account. Its log says why.`,
    over_text: 'Over: every worker can write its journal again.',
  }
  const failing = new Set(alive.flatMap((worker) => worker.failing))
  return [
    ...(short ? [disk] : []),
    ...(unwritable ? [journal] : []),
    ...[...failing].map(
      (loop): Problem => ({
        kind: 'loop_failing',
        subject: loop,
        text: `The background loop ${loop} has failed for five minutes. The log of the worker says why.`,
        over_text: `Over: the background loop ${loop} works again.`,
      }),
    ),
  ]
}

async function findConnections(db: Db): Promise<Problem[]> {
  const { allowed, left } = await countConnections(db)
  if (left >= connectionsShort) return []
  return [
    {
      kind: 'database_short',
      subject: '',
      text: `The database has ${left} of ${allowed} connections left.`,
      over_text: 'Over: the database has connections left again.',
    },
  ]
}
