/** The one place that knows the order of checks. Each line lets a request pass or throws. */
import type { App, Snapshot, Window } from '../app.ts'
import type { AnyCaller, Caller, Gate, Needs } from '../contract.ts'
import { LostCommit } from '../db/errors.ts'
import type { Tx } from '../db/sql.ts'
import { dropFile } from '../ledger/files.ts'
import { commit, fingerprintOf, once, readIdempotencyKey } from '../ledger/idempotency.ts'
import { requireReachable } from '../ledger/liveness.ts'
import { requestOperation } from '../ledger/request.ts'
import { ApiError } from '../lib/errors.ts'
import { parse, parseQuery } from '../lib/parse.ts'
import { type AnyCall, Form, type Reply, type Route, TextFile } from '../route.ts'
import { listAccounts, listEligibleAccounts, requireAccount } from './accounts.ts'
import { refuseEarly } from './early-checks.ts'
import { requireKey } from './keys.ts'
import { requireNeeds } from './needs.ts'
import { requireAccountLimits, requireWorkspaceLimit } from './operation-limits.ts'
import { requireSession, type SignedInUser } from './sessions.ts'
import { markTouched } from './touched.ts'

/** A request from HTTP, MCP or the dashboard. The body is read only once the caller is known to be allowed. */
export interface Incoming {
  readonly params: Readonly<Record<string, unknown>>
  readonly query: Readonly<Record<string, unknown>>
  readonly body: (wanted: BodyNeeds) => Promise<unknown>
  readonly idempotency_keys: readonly string[]
  readonly channel: Channel
  /** Gates that this channel needs besides the route's own. */
  readonly gates?: readonly Gate[]
  readonly approval?: Approval
  /** The header Range, of a request that may be answered with a part. */
  readonly range?: string | undefined
  /** Aborted once the caller has left. Created on first use. */
  readonly left?: () => AbortSignal
}

/** What comes with a write that a person has approved. */
interface Approval {
  /** The key of its operation, in place of a caller's own. */
  readonly key: string
  /** Runs first in the transaction that creates the operation. If it throws, nothing is created. */
  readonly consume: (tx: Tx) => Promise<void>
  /** How to retry what provably did not happen, as the end of a sentence. */
  readonly again: string
}

/** How a request came in. */
export type Channel = 'rest' | 'mcp' | 'dashboard'

/** How to read a body. */
export interface BodyNeeds {
  readonly route: Route
  /** Why the form's file must not be stored, judging by the fields before it. */
  readonly refuse: (fields: Readonly<Record<string, string>>) => Promise<ApiError | undefined>
}

interface AdmittedCaller {
  readonly caller: Caller
  readonly window: Window
}

/** Checks before any route: the API is open, the key is valid, its rate limit is not exceeded. */
export async function admit(
  app: App,
  { authorization }: { authorization: readonly string[] },
): Promise<AdmittedCaller> {
  const settings = await app.settings.current()
  if (!settings.gates.has('rest')) throw new ApiError('rest_disabled')
  const caller = await requireKey(app, settings, authorization)
  const rule = { limit: app.config.rate_limit, seconds: 60 }
  const id = caller.via.kind === 'key' ? caller.via.id : caller.user_id
  return { caller, window: await app.limits.take(`key:${id}`, rule) }
}

/** The rate limit of one session. */
const sessionRule = { limit: 600, seconds: 60 }

/** The same for a signed-in user. The gate `rest` applies to keys, so the dashboard works while it is closed. */
export async function admitUser(
  app: App,
  asked: Parameters<typeof requireSession>[1],
): Promise<SignedInUser & { readonly window: Window }> {
  const known = await requireSession(app, asked)
  return { ...known, window: await app.limits.take(`session:${known.user.via.id}`, sessionRule) }
}

export async function perform(app: App, route: Route, caller: AnyCaller, incoming: Incoming): Promise<Reply> {
  const begun = await begin(app, route, caller, incoming)
  if (!('workspace_id' in caller)) return performOutside(app, route, caller, { ...incoming, ...begun })
  const read = await receive(app, route, caller, { ...incoming, ...begun })
  const file_id = storedFileOf(read.received)
  if (file_id === undefined) return performInside(app, route, caller, read)
  try {
    const reply = await performInside(app, route, caller, read)
    await dropFile(app, file_id)
    return reply
  } catch (error) {
    // If the answer to the commit was lost, an operation that needs the file may still exist.
    if (!isAmbiguous(error)) await dropFile(app, file_id)
    throw error
  }
}

/** The file that was stored while the body was read. */
function storedFileOf(received: unknown): string | undefined {
  if (received instanceof TextFile) return received.file_id
  return received instanceof Form && !received.refusal ? received.attachment.file_id : undefined
}

/** Outside a workspace there are no accounts, files, ledger or idempotency keys. */
async function performOutside(
  app: App,
  route: Route,
  caller: AnyCaller,
  incoming: Pick<Incoming, 'body'> & { readonly params: never; readonly query: never },
): Promise<Reply> {
  const { params, query } = incoming
  const body = parse(route.body, await incoming.body({ route, refuse: async () => undefined }))
  const checked = (await route.check?.(app, caller as never, { query, body })) as never
  const call = {
    caller,
    params,
    query,
    body,
    checked,
    accounts: [],
    key: undefined,
    range: undefined,
  } as unknown as AnyCall
  const reply = await runOutside(app, route, call)
  markTouched(app, route, caller, { params, query, body, reply })
  return reply
}

function runOutside(app: App, route: Route, call: AnyCall): Promise<Reply> {
  switch (route.effect) {
    case 'read':
      return route.handle(app, call)
    case 'admin':
      return reportLostCommit(route.handle(app, call))
    case 'local':
      return commit(app, (tx) => route.handle(app, tx, call))
    case 'platform':
      throw new Error(`${route.name} needs a workspace.`)
  }
}

/** If the answer to a change's commit is lost, the change may have happened. */
async function reportLostCommit(reply: Promise<Reply>): Promise<Reply> {
  try {
    return await reply
  } catch (error) {
    if (error instanceof LostCommit) throw new ApiError('outcome_ambiguous', { cause: error })
    throw error
  }
}

function isAmbiguous(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'outcome_ambiguous'
}

interface ReceivedRequest extends BegunRequest {
  readonly received: unknown
  readonly channel: Channel
  readonly again: string | undefined
  readonly idempotency_keys: readonly string[]
  readonly approval: Approval | undefined
  readonly range: string | undefined
  readonly left: (() => AbortSignal) | undefined
}

interface BegunRequest {
  readonly settings: Snapshot
  readonly params: never
  readonly query: never
}

/** Checks the caller, then the path and query. */
async function begin(app: App, route: Route, caller: AnyCaller, incoming: Incoming): Promise<BegunRequest> {
  const settings = await app.settings.current()
  requireNeeds(settings, caller, { ...route, gates: [...(route.gates ?? []), ...(incoming.gates ?? [])] })
  if (caller.via.kind === 'key' && caller.via.mcp_only && incoming.channel !== 'mcp') {
    throw new ApiError('missing_scope', { detail: 'This key is for the MCP endpoint only.' })
  }
  const params = parse(route.params, incoming.params, route.malformed)
  return { settings, params, query: parseQuery(route.query, incoming.query) }
}

async function receive(
  app: App,
  route: Route,
  caller: Caller,
  incoming: Omit<Incoming, keyof BegunRequest> & BegunRequest,
): Promise<ReceivedRequest> {
  const { settings, params, query, idempotency_keys, approval, channel, range, left } = incoming
  const refuse = (fields: object) =>
    refuseEarly(app, route, caller, { params, query, fields, idempotency_keys })
  const received = await incoming.body({ route, refuse })
  const again = approval?.again ?? (channel === 'dashboard' ? 'you can send it again' : undefined)
  return { settings, params, query, received, channel, idempotency_keys, approval, again, range, left }
}

interface CheckedRequest {
  readonly body: never
  readonly needs: Needs
  /** Throws if the account is not eligible, so it is called only when there is no earlier answer to replay. */
  readonly call: (key: string | undefined) => AnyCall
}

/** Checks the whole request: what it needs, and its input. */
async function check(
  app: App,
  route: Route,
  caller: Caller,
  { settings, params, query, received, channel, range, left }: ReceivedRequest,
): Promise<CheckedRequest> {
  const form = received instanceof Form
  const body = parse(form ? (route.form as typeof route.body) : route.body, form ? received.fields : received)
  const needs: Needs = route.variant?.({ query, body }, settings.gates) ?? route
  if (route.variant) requireNeeds(settings, caller, needs)
  const forPeople = isForPeople(route, channel)
  const account_id = readAccountId(settings, route, { input: query ?? body, forPeople })
  const checked = (await route.check?.(app, caller as never, { query, body })) as never
  // Read here, because a transaction must not wait for a second connection; checked after replays, which need no account.
  const list = forPeople ? listAccounts : listEligibleAccounts
  const usable = route.account ? await list(app, caller) : []
  const missing = route.scopes.length === 0 ? 'not_found' : 'account_unavailable'
  const call = (key: string | undefined): AnyCall => {
    const accounts = account_id === undefined ? usable : [requireAccount(usable, account_id, missing)]
    return { caller: caller as never, params, query, body, checked, accounts, key, range, left }
  }
  return { body, needs, call }
}

/** Runs every check up to the input. What is no longer possible shows only when it is done. */
export async function inspect(
  app: App,
  route: Route,
  caller: Caller,
  incoming: Incoming,
): Promise<CheckedRequest> {
  const begun = await begin(app, route, caller, incoming)
  return check(app, route, caller, await receive(app, route, caller, { ...incoming, ...begun }))
}

async function performInside(app: App, route: Route, caller: Caller, read: ReceivedRequest): Promise<Reply> {
  const checked = await check(app, route, caller, read)
  const reply = await runInside(app, route, caller, { read, checked })
  markTouched(app, route, caller, { ...read, body: checked.body, reply })
  return reply
}

async function runInside(
  app: App,
  route: Route,
  caller: Caller,
  { read, checked }: { read: ReceivedRequest; checked: CheckedRequest },
): Promise<Reply> {
  const { params, received, approval, again } = read
  if (route.effect === 'read') {
    const call = checked.call(undefined)
    const work = () => route.handle(app, call)
    const { workspace_id } = caller
    // guard: costly reads take turns
    return route.costly ? app.costly({ workspace_id, left: call.left?.() }, work) : work()
  }
  if (route.effect === 'admin') return reportLostCommit(route.handle(app, checked.call(undefined)))
  const key = keyOf(checked.needs, read)
  const form = received instanceof Form
  const fingerprint = await fingerprintOf(route, { params, body: form ? received.identity() : received })
  const call = () => checked.call(key)
  if (route.effect === 'platform') {
    const refusal = form ? received.refusal : undefined
    const { body } = checked
    return performOnPlatform(app, route, caller, { key, fingerprint, call, body, refusal, approval, again })
  }
  const { handle, in_turn } = route
  const run = async () => {
    await requireWorkspaceLimit(app, route, caller, { key, call })
    const work = async (tx: Tx) => handle(app, tx, call())
    if (key === undefined) return commit(app, work)
    return once(app, route, caller, { key, fingerprint, consume: approval?.consume }, work)
  }
  if (!in_turn) return run()
  // Before the transaction, which would hold a connection while it waits.
  const { workspace_id } = caller
  const left = read.left?.()
  const inPlace = () => app.long({ workspace_id, left }, run) // guard: creations take places
  return in_turn({ key: workspace_id, timer: app.sources.timer, left }, inPlace)
}

/** An approved operation uses the approval's key, whether or not its route accepts one from the caller. */
function keyOf({ idempotency }: Needs, { idempotency_keys, approval }: ReceivedRequest): string | undefined {
  if (approval) return approval.key
  const key = idempotency ? readIdempotencyKey(idempotency_keys) : undefined
  if (idempotency === 'required' && key === undefined) throw new ApiError('idempotency_key_required')
  return key
}

type OnPlatform = Extract<Route, { effect: 'platform' }>

interface PlatformRequest {
  readonly key: string | undefined
  readonly fingerprint: Buffer
  readonly call: () => AnyCall
  readonly body: never
  /** Why its file was not stored when it arrived. */
  readonly refusal: ApiError | undefined
  readonly approval: Approval | undefined
  /** How to retry what provably did not happen, for callers without a key of their own to repeat. */
  readonly again: string | undefined
}

/** Queues an operation under the key and waits for it; if it has a second part, that is another operation under the same key. */
async function performOnPlatform(
  app: App,
  route: OnPlatform,
  caller: Caller,
  { key, fingerprint, call, body, refusal, approval, again }: PlatformRequest,
): Promise<Reply> {
  const overrides = {
    collision: route.collision ?? 400,
    flood: route.flood,
    ...(again && { again }),
  } as const
  const asked = { key, fingerprint, overrides }
  const reply = await requestOperation(app, caller, {
    ...asked,
    operation: route.operation,
    consume: approval?.consume,
    want: async (queued_no) => {
      const wanted = await route.handle(app, call())
      const { account_id } = wanted
      await requireReachable(app, account_id, route)
      // A released operation that runs again reaches the platform again.
      const place = key === undefined ? undefined : `${caller.workspace_id} ${queued_no} ${key}`
      await requireAccountLimits(app, route, { account_id, place })
      if (refusal) throw refusal
      return wanted
    },
  })
  const { followed_by } = route
  if (reply.status !== 200 || !followed_by?.wanted(body)) return reply
  const want = async () => followed_by.next(call(), reply.body)
  const second = await requestOperation(app, caller, { ...asked, operation: followed_by.operation, want })
  return second.status === 200 ? reply : second
}

/**
 * A member reads every account of the workspace, so that the chats of one that needs a login do not vanish. What reaches a
 * platform, and the contract's other changes, need a READY account at every door.
 */
function isForPeople(route: Route, channel: Channel): boolean {
  // guard: members read accounts in every status
  return channel === 'dashboard' && (route.effect === 'read' || route.scopes.length === 0)
}

/** Where the contract requires `account_id`, only the extended gate makes it optional; a member's reads never need it. */
function readAccountId(
  settings: Snapshot,
  route: Route,
  { input, forPeople }: { readonly input: unknown; readonly forPeople: boolean },
): string | undefined {
  if (!route.account) return undefined
  const { account_id } = (input ?? {}) as { account_id?: string }
  const required = route.account === 'extended' && !forPeople && !settings.gates.has('extended')
  if (account_id === undefined && required) {
    throw new ApiError('account_scope_required')
  }
  return account_id
}
