/** The one place that knows the order of checks. Each line lets a request through or throws. */
import type { App, Snapshot, Window } from '../app.ts'
import type { Caller, Gate, Needs } from '../contract.ts'
import type { Tx } from '../db/sql.ts'
import { ApiError, type ErrorCode } from '../lib/errors.ts'
import { parse, parseQuery } from '../lib/parse.ts'
import { type Call, Form, type Reply, type Route } from '../route.ts'
import { listEligibleAccounts, requireAccount } from './accounts.ts'
import { refuseEarly } from './early-checks.ts'
import { commit, fingerprintOf, isKnownKey, once, readIdempotencyKey } from './idempotency.ts'
import { requireKey } from './keys.ts'
import { dropFile } from './ledger/files.ts'
import { requireReachable } from './ledger/liveness.ts'
import { submit } from './ledger/submit.ts'

/** A request from HTTP, MCP or the dashboard. The body is read only once the caller is known to be allowed. */
export interface Incoming {
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  readonly body: (wanted: Wanted) => Promise<unknown>
  readonly idempotency_keys: readonly string[]
  /** Where it came in. */
  readonly channel: 'rest' | 'mcp' | 'dashboard'
  /** Gates that this way in needs besides the route's own. */
  readonly gates?: readonly Gate[]
  readonly approval?: Approval
}

/** What a write that a person has approved brings along. */
export interface Approval {
  /** The key of its operation, in place of a caller's own. */
  readonly key: string
  /** Runs first in the transaction that creates the operation. Where it throws, nothing is created. */
  readonly consume: (tx: Tx) => Promise<void>
}

/** How a body is to be read. */
export interface Wanted {
  readonly route: Route
  /** Why the file of a form is not to be stored, as far as the fields before it tell. */
  readonly refuse: (fields: Readonly<Record<string, string>>) => Promise<ApiError | undefined>
}

interface Admitted {
  readonly caller: Caller
  readonly window: Window
}

/** What holds before any route is looked at: the API is open, the key is good, its rate is kept. */
export async function admit(
  app: App,
  { authorization }: { authorization: readonly string[] },
): Promise<Admitted> {
  const settings = await app.settings.current()
  if (!settings.gates.has('rest')) throw new ApiError('rest_disabled')
  const caller = await requireKey(app, settings, authorization)
  const rule = { limit: app.config.rate_limit, seconds: 60 }
  const id = caller.via.kind === 'key' ? caller.via.id : caller.user_id
  return { caller, window: await app.limits.take(`key:${id}`, rule) }
}

export async function perform(app: App, route: Route, caller: Caller, incoming: Incoming): Promise<Reply> {
  const read = await receive(app, route, caller, incoming)
  const { received } = read
  if (!(received instanceof Form) || received.refusal) return performRead(app, route, caller, read)
  const { file_id } = received.attachment
  try {
    const reply = await performRead(app, route, caller, read)
    await dropFile(app, file_id)
    return reply
  } catch (error) {
    // Where the answer to the commit was lost, an operation that needs the file may show up yet.
    if (!isAmbiguous(error)) await dropFile(app, file_id)
    throw error
  }
}

function isAmbiguous(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'outcome_ambiguous'
}

interface Received {
  readonly settings: Snapshot
  readonly params: never
  readonly query: never
  readonly received: unknown
  readonly idempotency_keys: readonly string[]
  readonly approval: Approval | undefined
}

/** What is needed of the caller, then the input as it comes. */
async function receive(app: App, route: Route, caller: Caller, incoming: Incoming): Promise<Received> {
  const settings = await app.settings.current()
  requireNeeds(settings, caller, { ...route, gates: [...(route.gates ?? []), ...(incoming.gates ?? [])] })
  if (caller.via.kind === 'key' && caller.via.mcp_only && incoming.channel !== 'mcp') {
    throw new ApiError('missing_scope', { detail: 'This key is for the MCP endpoint only.' })
  }
  const params = parse(route.params, incoming.params, route.malformed)
  const query = parseQuery(route.query, incoming.query)
  const { idempotency_keys, approval } = incoming
  const refuse = (fields: object) =>
    refuseEarly(app, route, caller, { params, query, fields, idempotency_keys })
  const received = await incoming.body({ route, refuse })
  return { settings, params, query, received, idempotency_keys, approval }
}

interface Checked {
  readonly body: never
  readonly needs: Needs
  /** Throws if the account is not eligible, so it is called only when there is no earlier answer to replay. */
  readonly call: (key: string | undefined) => Call<never, never, never, never>
}

/** The whole request is known: what it needs, and what can be said against its input. */
async function check(
  app: App,
  route: Route,
  caller: Caller,
  { settings, params, query, received }: Received,
): Promise<Checked> {
  const form = received instanceof Form
  const body = parse(form ? (route.form as typeof route.body) : route.body, form ? received.fields : received)
  const needs: Needs = route.variant?.({ query, body }, settings.gates) ?? route
  if (route.variant) requireNeeds(settings, caller, needs)
  const account_id = readAccountId(settings, route, query ?? body)
  const checked = (await route.check?.(app, caller, { query, body })) as never
  // Read here, because a transaction must not wait for a second connection; checked after replays, which need no account.
  const eligible = route.account ? await listEligibleAccounts(app, caller) : []
  const call = (key: string | undefined) => {
    const accounts = account_id === undefined ? eligible : [requireAccount(eligible, account_id)]
    return { caller, params, query, body, checked, accounts, key }
  }
  return { body, needs, call }
}

/** Everything up to the input; what may not be done any more is only found out by doing it. */
export async function inspect(app: App, route: Route, caller: Caller, incoming: Incoming): Promise<Checked> {
  return check(app, route, caller, await receive(app, route, caller, incoming))
}

async function performRead(app: App, route: Route, caller: Caller, read: Received): Promise<Reply> {
  const { params, received, approval } = read
  const checked = await check(app, route, caller, read)
  if (route.effect === 'read') return route.handle(app, checked.call(undefined))
  const key = keyOf(checked.needs, read)
  const form = received instanceof Form
  const fingerprint = fingerprintOf(route, { params, body: form ? received.identity() : received })
  const call = () => checked.call(key)
  if (route.effect === 'platform') {
    const refusal = form ? received.refusal : undefined
    const { body } = checked
    return performOnPlatform(app, route, caller, { key, fingerprint, call, body, refusal, approval })
  }
  const { handle } = route
  await requireWorkspaceLimit(app, route, caller, key)
  const work = async (tx: Tx) => handle(app, tx, call())
  if (key === undefined) return commit(app, work)
  return once(app, route, caller, { key, fingerprint, consume: approval?.consume }, work)
}

/** An approved operation has the approval's key, whether or not its route takes one of the caller's. */
function keyOf({ idempotency }: Needs, { idempotency_keys, approval }: Received): string | undefined {
  if (approval) return approval.key
  const key = idempotency ? readIdempotencyKey(idempotency_keys) : undefined
  if (idempotency === 'required' && key === undefined) throw new ApiError('idempotency_key_required')
  return key
}

type OnPlatform = Extract<Route, { effect: 'platform' }>

interface Asked {
  readonly key: string | undefined
  readonly fingerprint: Buffer
  readonly call: () => Call<never, never, never, never>
  readonly body: never
  /** Its file was not stored, for a reason that held when it came. */
  readonly refusal: ApiError | undefined
  readonly approval: Approval | undefined
}

/** A row of the ledger under the key, and where the operation has a second part, another row for that. */
async function performOnPlatform(
  app: App,
  route: OnPlatform,
  caller: Caller,
  { key, fingerprint, call, body, refusal, approval }: Asked,
): Promise<Reply> {
  const asked = { key, fingerprint, overrides: { collision: route.collision ?? 400, flood: route.flood } }
  const reply = await submit(app, caller, {
    ...asked,
    operation: route.operation,
    consume: approval?.consume,
    want: async () => {
      const wanted = await route.handle(app, call())
      await requireReachable(app, wanted.account_id, route.flood)
      await requireAccountLimits(app, route, wanted.account_id)
      if (refusal) throw refusal
      return wanted
    },
  })
  const { followed_by } = route
  if (reply.status !== 200 || !followed_by?.wanted(body)) return reply
  const want = async () => followed_by.next(call(), reply.body)
  const second = await submit(app, caller, { ...asked, operation: followed_by.operation, want })
  return second.status === 200 ? reply : second
}

/** Limits per account, besides the key's rate limit: platforms restrict accounts that do too much. */
async function requireAccountLimits(app: App, route: OnPlatform, account_id: string): Promise<void> {
  for (const rule of route.account_limits?.(app) ?? []) {
    const { allowed, retry_after } = await app.limits.take(
      `${route.name}:${rule.seconds}:${account_id}`,
      rule,
    )
    if (!allowed) {
      throw new ApiError('rate_limited', {
        detail: `This account has done this ${rule.limit} times in the last ${rule.seconds} seconds. Wait as long as Retry-After says.`,
        retry_after,
      })
    }
  }
}

/** Limits per workspace. Whatever a key has come to is told without counting it. */
async function requireWorkspaceLimit(
  app: App,
  route: Extract<Route, { effect: 'local' }>,
  caller: Caller,
  key: string | undefined,
): Promise<void> {
  const rule = route.workspace_limit?.(app)
  if (!rule || (key !== undefined && (await isKnownKey(app.db, route, caller, key)))) return
  const { allowed, retry_after } = await app.limits.take(`${route.name}:${caller.workspace_id}`, rule)
  if (!allowed) {
    throw new ApiError('rate_limited', {
      detail: `This workspace has done this ${rule.limit} times in the last ${rule.seconds} seconds. Wait as long as Retry-After says.`,
      retry_after,
    })
  }
}

/** Gates, scope, allowlists: what can be said without looking at the input. */
export function requireNeeds(settings: Snapshot, caller: Caller, needs: Needs): void {
  const missing = unmetNeed(settings, caller, needs)
  if (missing) throw new ApiError(missing.code, { detail: missing.sentence })
}

/** Whether the caller could do this now, as /me tells it. */
export function isCapable(settings: Snapshot, caller: Caller, needs: Needs): boolean {
  return unmetNeed(settings, caller, needs) === undefined
}

function unmetNeed(
  settings: Snapshot,
  caller: Caller,
  { gates = [], scopes, allowlists = [] }: Needs,
): { code: ErrorCode; sentence: string } | undefined {
  for (const gate of gates) {
    if (!settings.gates.has(gate)) {
      return { code: 'feature_disabled', sentence: `The feature "${gate}" is switched off on this instance.` }
    }
  }
  if (!scopes.some((scope) => caller.scopes.includes(scope))) {
    return {
      code: 'missing_scope',
      sentence: `This operation needs a key with the scope ${scopes.join(' or ')}.`,
    }
  }
  for (const list of allowlists) {
    if (!settings.allowlists) {
      return { code: 'schema_unavailable', sentence: 'The campaign allowlists are not installed.' }
    }
    const id = list === 'campaign_user' ? caller.user_id : caller.workspace_id
    if (!settings.allowlists[list].has(id)) {
      const who = list === 'campaign_user' ? 'user' : 'workspace'
      return { code: 'not_allowlisted', sentence: `The ${who} of this key is not on the campaign allowlist.` }
    }
  }
  return undefined
}

/** Where the contract requires `account_id`, only the extended gate lets it be left out. */
function readAccountId(settings: Snapshot, route: Route, input: unknown): string | undefined {
  if (!route.account) return undefined
  const { account_id } = (input ?? {}) as { account_id?: string }
  if (account_id === undefined && route.account === 'extended' && !settings.gates.has('extended')) {
    throw new ApiError('account_scope_required')
  }
  return account_id
}
