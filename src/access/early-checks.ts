/**
 * Checks a form before its file arrives, so that no byte of a file is stored that the caller may not send. The usual checks
 * run afterwards, in their order, and decide what the caller gets.
 */
import type { z } from 'zod'
import type { App } from '../app.ts'
import type { Caller, Needs } from '../contract.ts'
import { findOperation } from '../ledger/enqueue.ts'
import { readIdempotencyKey } from '../ledger/idempotency.ts'
import { requireReachable } from '../ledger/liveness.ts'
import { ApiError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { parse } from '../lib/parse.ts'
import type { Call, FormFile, Route } from '../route.ts'
import { listEligibleAccounts, requireAccount } from './accounts.ts'

interface PartialForm {
  readonly params: never
  readonly query: never
  /** The fields that arrived before the file. */
  readonly fields: object
  readonly idempotency_keys: readonly string[]
}

/** Why the file that follows must not be stored; undefined if no check has failed so far. */
export async function refuseEarly(
  app: App,
  route: Route,
  caller: Caller,
  received: PartialForm,
): Promise<ApiError | undefined> {
  try {
    await requireSendable(app, route, caller, received)
    return undefined
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

async function requireSendable(app: App, route: Route, caller: Caller, received: PartialForm): Promise<void> {
  if (route.effect !== 'platform') return
  const { params, query, fields, idempotency_keys } = received
  const form = route.form as unknown as z.ZodObject
  const body = parse(form.partial(), fields) as never
  const { account_id } = body as { account_id?: string }
  const { gates } = await app.settings.current()
  const needs: Needs = route.variant?.({ query, body }, gates) ?? route
  const key = readIdempotencyKey(idempotency_keys)
  // Until the account is known, the key may turn out to be optional.
  if (account_id !== undefined && needs.idempotency === 'required' && key === undefined) {
    throw new ApiError('idempotency_key_required')
  }
  const asked = { operation: route.operation, key, fingerprint: Buffer.alloc(0) }
  const known = await findOperation(app.db, caller.workspace_id, asked)
  // A repeat is answered from its row, and another payload is refused. Neither needs the file, only its hash.
  if (known && known.state !== 'released') throw new ApiError('operation_in_progress')
  if (account_id === undefined) return
  const accounts = [requireAccount(await listEligibleAccounts(app, caller), account_id)]
  const whole = form.safeParse({ ...fields, attachment: unread })
  // A required field has not arrived yet.
  if (!whole.success) return
  const call: Call<never, never, never, never, never> = {
    caller: caller as never,
    params,
    query,
    body: whole.data as never,
    checked: undefined as never,
    accounts,
    key,
  }
  const wanted = await route.handle(app, call)
  await requireReachable(app, wanted.account_id, route)
}

/** A placeholder for the file until it has been read. */
const unread: FormFile = { file_id: newId(), file_name: 'file', media_type: '', size: 0, sha256: '' }
