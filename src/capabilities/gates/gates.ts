/** The operators' switches for the whole instance: gates, the two allowlists, and dispatch. */

import type { App } from '../../app.ts'
import { type Allowlist, type Gate, gates } from '../../contract.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { findSendingStop } from '../../ledger/liveness.ts'
import { confirmInstance } from '../../ledger/restore-counter.ts'
import { type HoldingAccount, listHolding } from '../../ledger/runs.ts'
import { forgiveWorker, listOwing } from '../../ledger/workers.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { isBlank, isWellFormed, lengthOf, quote } from '../../lib/text.ts'
import { type Actor, type Recorder, record } from '../audit/audit.ts'
import { requireUser } from '../users/users.ts'
import { requireWorkspace } from '../workspaces/workspaces.ts'

interface GateState {
  readonly name: Gate
  readonly enabled: boolean
  readonly changed_at: Date | null
}

export async function listGates(db: Db): Promise<GateState[]> {
  const rows = await db.rows<GateState>(sql`select name, enabled, changed_at from gates`)
  return gates.map(
    (name) => rows.find((row) => row.name === name) ?? { name, enabled: false, changed_at: null },
  )
}

interface GateChange extends GateState {
  /** False if the gate already was in this state. */
  readonly changed: boolean
}

/**
 * Returns the named gates and whether each changed. `all` means every gate but `extended`, which widens what the contract
 * allows and is named explicitly.
 */
export async function setGates(
  app: App,
  actor: Actor,
  { names, enabled }: { names: readonly string[]; enabled: boolean },
): Promise<GateChange[]> {
  const chosen = names.flatMap((name) =>
    name === 'all' ? gates.filter((gate) => gate !== 'extended') : [name],
  )
  const unknown = chosen.find((name) => !gates.some((gate) => gate === name))
  if (unknown) {
    throw new ApiError('invalid_request', {
      detail: `There is no gate ${quote(unknown)}. The gates are ${gates.join(', ')}.`,
    })
  }
  const changed = await app.db.transaction(async (tx) => {
    const names = new Set<string>()
    for (const name of chosen) {
      // A gate without a row is closed already, so closing it changes nothing.
      const rows = enabled
        ? await tx.run(sql`
            insert into gates as gate (name, enabled) values (${name}, true)
            on conflict (name) do update set enabled = true, changed_at = domain_now() where not gate.enabled`)
        : await tx.run(sql`
            update gates set enabled = false, changed_at = domain_now() where name = ${name} and enabled`)
      const action = enabled ? 'gate.enabled' : 'gate.disabled'
      if (rows === 0) continue
      names.add(name)
      await record(app, tx, actor, { action, target: name })
    }
    return names
  })
  await app.settings.refresh()
  const states = await listGates(app.db)
  return states
    .filter(({ name }) => chosen.includes(name))
    .map((state) => ({ ...state, changed: changed.has(state.name) }))
}

interface AllowlistEntry {
  readonly list: Allowlist
  readonly id: string
  readonly created_at: Date
}

export function listAllowed(db: Db): Promise<AllowlistEntry[]> {
  return db.rows<AllowlistEntry>(
    sql`select list, id, created_at from allowlists order by list, created_at, id`,
  )
}

interface NamedEntry {
  readonly id: string
  readonly label: string
}

/** Both allowlists, each entry with its name for people. */
export async function listAllowedNamed(db: Db): Promise<Record<Allowlist, NamedEntry[]>> {
  const rows = await db.rows<NamedEntry & { list: Allowlist }>(sql`
    select a.list, a.id, coalesce(u.email, w.name, '') as label
    from allowlists a
      left join users u on a.list = 'campaign_user' and u.id = a.id
      left join workspaces w on a.list = 'campaign_workspace' and w.id = a.id
    order by label, a.id`)
  const of = (list: Allowlist) =>
    rows.filter((row) => row.list === list).map(({ id, label }) => ({ id, label }))
  return { campaign_user: of('campaign_user'), campaign_workspace: of('campaign_workspace') }
}

export async function setAllowed(
  app: App,
  actor: Actor,
  { list, id, allowed }: { list: Allowlist; id: string; allowed: boolean },
): Promise<AllowlistEntry[]> {
  await (list === 'campaign_user' ? requireUser(app.db, id) : requireWorkspace(app.db, id))
  await app.db.transaction(async (tx) => {
    const changed = allowed
      ? await tx.run(sql`insert into allowlists (list, id) values (${list}, ${id}) on conflict do nothing`)
      : await tx.run(sql`delete from allowlists where list = ${list} and id = ${id}`)
    const action = allowed ? 'allowlist.added' : 'allowlist.removed'
    if (changed > 0) await record(app, tx, actor, { action, target: id, detail: { list } })
  })
  await app.settings.refresh()
  return listAllowed(app.db)
}

/** The switch that stops all sending, on every path and every process. A reason is for stopping only. */
export async function setDispatch(
  app: App,
  actor: Actor,
  on: boolean,
  reason?: string,
): Promise<{ dispatch: boolean }> {
  if (reason !== undefined) requireReason(reason)
  await app.db.transaction((tx) => switchDispatch(app, tx, actor, on, reason))
  // Workers and the terminal switch it too, and every open page shows it.
  app.wake.mark({ workspace_id: null, kind: 'gates' }, { workspace_id: null, kind: 'instance' })
  await app.settings.refresh()
  return { dispatch: on }
}

const reasonMax = 500

function requireReason(reason: string): void {
  if (isBlank(reason) || !isWellFormed(reason) || lengthOf(reason) > reasonMax) {
    throw new ApiError('invalid_request', { detail: `A reason has 1 to ${reasonMax} characters.` })
  }
}

/** The same, within the caller's transaction. Stopping what is stopped already keeps the first reason and time. */
export async function switchDispatch(
  app: Recorder,
  tx: Tx,
  actor: Actor,
  on: boolean,
  reason?: string,
): Promise<void> {
  const changed = await tx.run(sql`
    update settings set value = to_jsonb(${on}::boolean)
    where name = 'dispatch' and value <> to_jsonb(${on}::boolean)`)
  if (on) await confirmInstance(tx)
  if (changed === 0) return
  if (!on) {
    await tx.run(sql`
      insert into settings (name, value)
      values ('dispatch_stop', jsonb_build_object('since', domain_now(), 'reason', ${reason ?? null}::text))
      on conflict (name) do update set value = excluded.value`)
  }
  await record(app, tx, actor, {
    action: on ? 'dispatch.on' : 'dispatch.off',
    target: 'instance',
    ...(!on && reason !== undefined && { detail: { reason } }),
  })
}

interface DispatchStop {
  /** Null while dispatch is on, and for a stop before a version of Parley that stored it. */
  readonly since: Date | null
  readonly reason: string | null
}

/** Since when and why dispatch is off. */
async function findStop(db: Db): Promise<DispatchStop> {
  const row = await db.maybe<DispatchStop>(sql`
    select (s.value ->> 'since')::timestamptz as since, s.value ->> 'reason' as reason
    from settings s join settings d on d.name = 'dispatch' and d.value = 'false'::jsonb
    where s.name = 'dispatch_stop'`)
  return row ?? { since: null, reason: null }
}

interface SendingState extends DispatchStop {
  readonly on: boolean
  /** Why this instance sends nothing; null if it sends. */
  readonly stop: string | null
}

/** Whether this instance sends, for every user: a stop is shown on every page. */
export async function describeSending(app: App): Promise<SendingState> {
  const [stop, stopped] = await Promise.all([findSendingStop(app), findStop(app.db)])
  return { on: stop === null, stop, ...stopped }
}

interface DispatchStatus extends DispatchStop {
  readonly dispatch: boolean
  /** Workers that found the database restored and have not yet replayed their journals. Until then nothing is sent. */
  readonly owing: readonly { readonly id: string; readonly beat_at: Date }[]
  /** Accounts that have not connected since the database server started: contacts of their pools wait for them. */
  readonly unconfirmed: readonly HoldingAccount[]
}

export async function readDispatch(db: Db): Promise<DispatchStatus> {
  const { on } = await db.one<{ on: boolean }>(
    sql`select coalesce(bool_or(value = 'true'::jsonb), false) as on from settings where name = 'dispatch'`,
  )
  return {
    dispatch: on,
    ...(await findStop(db)),
    owing: await listOwing(db),
    unconfirmed: await listHolding(db),
  }
}

/** Stops waiting for a worker whose disk is lost for good. The outcomes in its journals stay unknown. */
export async function dispatchWithout(app: App, actor: Actor, worker_id: string): Promise<void> {
  const forgiven = isUuid(worker_id) && (await forgiveWorker(app.db, worker_id))
  if (!forgiven) {
    throw new ApiError('not_found', { detail: `Parley is not waiting for the worker ${quote(worker_id)}.` })
  }
  await app.db.transaction((tx) => record(app, tx, actor, { action: 'dispatch.without', target: worker_id }))
}

/** `declined`: the operator declined a demo at the first start, so no later start creates one by itself. */
type DemoState = 'begun' | 'done' | 'declined'

/** Marks this instance as a demo, whose people keep writing after a restart. A half-made demo is rebuilt. */
export async function markDemo(app: App, state: DemoState): Promise<void> {
  await app.db.run(sql`
    insert into settings (name, value) values ('demo', to_jsonb(${state}::text))
    on conflict (name) do update set value = excluded.value`)
}

/** Stored only on an instance that has no demo state yet. */
export async function declineDemo(app: App): Promise<void> {
  await app.db.run(sql`
    insert into settings (name, value) values ('demo', to_jsonb('declined'::text)) on conflict (name) do nothing`)
}

export async function readDemo(db: Db): Promise<DemoState | undefined> {
  const row = await db.maybe<{ value: DemoState }>(sql`select value from settings where name = 'demo'`)
  return row?.value
}
