/** What is worth waking an operator for. A text names ids only: never a text, or the name of a person or a chat. */
import { connectionsShort, countConnections } from '../../db/server-state.ts'
import type { Db } from '../../db/sql.ts'
import { diskShortBytes, listWorkers } from '../../ledger/workers.ts'
import { listTroubled } from '../accounts/accounts.ts'
import { readDispatch } from '../gates/gates.ts'
import { listDisabled } from '../webhooks/webhooks.ts'

export type AlertKind =
  | 'account_needs_person'
  | 'sending_off'
  | 'worker_owes'
  | 'webhook_disabled'
  | 'disk_short'
  | 'database_short'
  | 'loop_failing'

export interface Problem {
  readonly kind: AlertKind
  /** The same for as long as it lasts, also over a restart of a worker. */
  readonly subject: string
  readonly text: string
  /** What is said once it is over. */
  readonly over_text: string
}

/** Read from heartbeats and counts, which are missing for a moment when a process restarts: over only after a minute. */
export const fleetingKinds: readonly AlertKind[] = ['disk_short', 'database_short', 'loop_failing']
/** Most failures of a loop pass by themselves. */
export const patientKinds: readonly AlertKind[] = ['loop_failing']

/** Every problem of this moment. */
export async function listProblems(db: Db): Promise<Problem[]> {
  return [
    ...(await findAccounts(db)),
    ...(await findDispatch(db)),
    ...(await findWebhooks(db)),
    ...(await findWorkers(db)),
    ...(await findConnections(db)),
  ]
}

async function findAccounts(db: Db): Promise<Problem[]> {
  const troubled = await listTroubled(db)
  return troubled
    .filter(({ status }) => status === 'NEEDS_LOGIN' || status === 'RESTRICTED')
    .map(({ id, platform, status }) => ({
      kind: 'account_needs_person',
      subject: id,
      text: `The account ${id} (${platform}) needs a person: its status is ${status}.`,
      over_text: `Over: the account ${id} (${platform}) no longer needs a person.`,
    }))
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
  const failing = new Set(alive.flatMap((worker) => worker.failing))
  return [
    ...(short ? [disk] : []),
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
