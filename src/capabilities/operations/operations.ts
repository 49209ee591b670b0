/** The ledger for callers and operators: what happened to operations, and operators' notes on ambiguous ones. */

import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { type Db, sql } from '../../db/sql.ts'
import { type AmbiguousRow, findShown, listOperations } from '../../ledger/proofs.ts'
import { closeByPerson } from '../../ledger/settle.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { notFound } from '../../lib/names.ts'
import { quote } from '../../lib/text.ts'
import type { State } from '../../operation.ts'
import { type Actor, record } from '../audit/audit.ts'

export type ClosedAs = 'sent' | 'not_sent'

/** Newest first. `ambiguous`: only those whose outcome is unknown and that no operator has closed. */
export async function listLedger(
  db: Db,
  wanted: { workspace_id?: string | undefined; ambiguous: boolean },
): Promise<AmbiguousRow[]> {
  const { workspace_id, ambiguous } = wanted
  if (workspace_id !== undefined && !isUuid(workspace_id)) {
    throw malformed('a workspace', workspace_id, 'workspace')
  }
  return listOperations(db, { workspace_id, ambiguous })
}

/**
 * Records what a person found out. The operation stays ambiguous, and its key never runs again. Only a command `corrects`
 * what another person recorded: a page may be older than that record.
 */
export async function closeOperation(
  app: App,
  actor: Actor,
  { id, closed_as, corrects = true }: { id: string; closed_as: ClosedAs; corrects?: boolean },
): Promise<AmbiguousRow> {
  if (!isUuid(id)) throw malformed('an operation', id, 'operation')
  return app.db.transaction(async (tx) => {
    const noted = await closeByPerson(tx, app.operations, { id, closed_as, corrects })
    const known = await findShown(tx, id)
    if (!noted || !known) {
      if (!known) throw notFound('operation', id)
      const other = closed_as === 'sent' ? 'not_sent' : 'sent'
      throw new ApiError('conflict', {
        detail:
          known.state === 'ambiguous'
            ? `${noteOf(other)} An operator can correct it with \`parley operation close\`.`
            : `The operation is ${known.state}. Only ambiguous operations can be closed by a person.`,
      })
    }
    const { workspace_id } = known
    await record(app, tx, actor, {
      action: 'operation.closed',
      target: id,
      workspace_id,
      detail: { closed_as },
    })
    return known
  })
}

/** Its row's id. A platform operation of another workspace is reported as not found. */
export async function requireOwnOperation(db: Db, { workspace_id }: Caller, id: string): Promise<string> {
  const own = await db.maybe<{ id: string }>(sql`
    select id from operations where effect = 'platform' and (id = ${id} or public_id = ${id})
      and workspace_id = ${workspace_id} -- guard: operations of another workspace
    `)
  if (!own) throw notFound('operation', id)
  return own.id
}

function malformed(what: string, id: string, missing: string): ApiError {
  return new ApiError('not_found', { detail: `${quote(id)} is not ${what}.`, missing })
}

interface LedgerRow {
  readonly id: string
  readonly kind: string
  readonly state: State
  readonly account_id: string | null
  readonly chat_id: string | null
  readonly created_at: Date
  readonly crossed_at: Date | null
  readonly finished_at: Date | null
  readonly reconciled: boolean
  readonly reason: string | null
  readonly message_id: string | null
}

/** One operation of the caller's workspace, with a sentence on its outcome. */
export async function describeOperation(
  { db, routes }: App,
  { workspace_id }: Pick<Caller, 'workspace_id'>,
  id: string,
): Promise<LedgerRow & { readonly detail: string }> {
  const row = await db.maybe<LedgerRow & Ending>(sql`
    select coalesce(public_id, id) as id, kind, state, account_id, 'platform:chat:' || chat_id as chat_id, created_at,
      crossed_at, finished_at, reconciled, reason, detail as cause, closed_as, effect,
      reply_body ->> 'message' as message, reply_body ->> 'changed' = 'false' as unchanged, coalesce(reply_body ->> 'message_id', proof_message_id::text) as message_id
    from operations where workspace_id = ${workspace_id} and (id = ${id} or public_id = ${id})`)
  if (!row) throw new ApiError('not_found', { detail: 'This workspace has no such operation.' })
  const { cause, closed_as, effect, message, unchanged, ...shown } = row
  const done = routes.find(({ name }) => name === row.kind)?.done
  return { ...shown, detail: effect === 'local' ? localSentence(row, done) : sentenceOn(row) }
}

interface Course {
  readonly workspace_id: string
  readonly attempts: number
  /** The worker that submits it now. */
  readonly worker_id: string | null
  /** From its acceptance to the boundary, and from there to its end. */
  readonly waited_seconds: number | null
  readonly submitted_seconds: number | null
  readonly closed_as: ClosedAs | null
}

/** One operation of any workspace, for operators: what became of it, and where its time went. */
export async function showOperation(app: App, id: string) {
  if (!isUuid(id)) throw malformed('an operation', id, 'operation')
  const course = await app.db.maybe<Course>(sql`
    select workspace_id, attempt_no as attempts, owner as worker_id, closed_as,
      extract(epoch from
        coalesce(crossed_at, finished_at) -- guard: an operation waits up to the boundary
        - created_at)::float8 as waited_seconds,
      extract(epoch from
        finished_at - crossed_at -- guard: an operation is submitted from the boundary on
      )::float8 as submitted_seconds
    from operations where id = ${id}
      or public_id = ${id} -- guard: operations by their public id
    `)
  if (!course) throw notFound('operation', id)
  return { ...(await describeOperation(app, course, id)), ...course }
}

interface Ending {
  readonly effect: 'local' | 'platform'
  readonly cause: string | null
  readonly closed_as: ClosedAs | null
  /** From the stored reply: what was done, and whether there was nothing to change. */
  readonly message: string | null
  readonly unchanged: boolean | null
}

/** A local change commits together with its row, so such a row is always completed. */
function localSentence({ message, unchanged }: Ending, done = 'The change was made.'): string {
  const what = message ?? (unchanged ? 'Nothing changed: it already was in that state.' : done)
  return `${what} This request sent nothing.`
}

/** How far a platform operation has come. */
export type OperationOutcome = Pick<LedgerRow & Ending, 'state' | 'reason' | 'cause' | 'closed_as'> &
  Partial<Pick<LedgerRow, 'reconciled'>>

export function sentenceOn({ state, reason, cause, closed_as, reconciled }: OperationOutcome): string {
  switch (state) {
    case 'queued':
      return 'Waiting for the worker of the account. Nothing was sent yet.'
    case 'submitting':
      return 'The worker is submitting it and waits for the answer of the platform.'
    case 'completed':
      return reconciled
        ? 'The platform accepted it. Its answer was lost; a message with the random id of this operation proved it later.'
        : 'The platform accepted it.'
    case 'refused':
      return `The platform refused it permanently (${cause ?? reason}). Nothing was sent.`
    case 'released':
      return `Nothing was sent (${cause ?? reason}). You can repeat the request.`
    case 'ambiguous':
      return `${unknownBecause(reason)} ${closed_as ? noteOf(closed_as) : watched}`
  }
}

const watched =
  'Not sent again. If it shows up in the chat, this turns to Accepted on its own. Or tell us what you see on the phone.'

function noteOf(closed_as: ClosedAs): string {
  const what = closed_as === 'sent' ? 'sent' : 'not sent'
  return `Parley does not send it again. A person recorded it as ${what}.`
}

function unknownBecause(reason: string | null): string {
  switch (reason) {
    case 'timeout':
      return 'The platform did not answer in time, so it is unknown whether the platform accepted it.'
    case 'lease':
      return 'The worker that submitted it stopped before it stored the outcome.'
    case 'restored':
      return 'The database was restored from an older copy, and a journal shows that the worker may have submitted it.'
    default:
      return 'The connection broke before the answer, or the answer does not say whether the platform accepted it.'
  }
}
