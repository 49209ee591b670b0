/** Workspaces: the tenants. Everything else belongs to exactly one. */
import type { App } from '../../app.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { emitted } from '../../events/emit.ts'
import { accountsChanged, revokeLeases } from '../../ledger/leases.ts'
import { readChange, type StoredChange, zoneChange } from '../../ledger/workspace-days.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid, newId } from '../../lib/ids.ts'
import { notFound, requireName } from '../../lib/names.ts'
import { quote } from '../../lib/text.ts'
import { formatWindow, parseWindow } from '../../rules/sending-window.ts'
import { changeOf } from '../../rules/zones.ts'
import { type Actor, record } from '../audit/audit.ts'
import { addStages, defaultStage } from '../pipeline/pipeline.ts'

interface Workspace {
  readonly id: string
  readonly name: string
  readonly timezone: string
  /** The zone that still holds, until `timezone_from`; null: `timezone` does. */
  readonly timezone_before: string | null
  readonly timezone_from: Date | null
  /** When campaigns and broadcasts may write, in its time zone. Null: always. */
  readonly sending_window: string | null
  readonly created_at: Date
  /** Null: it is enabled. */
  readonly disabled_at: Date | null
}

/** Until a new zone holds, the one that does, and until when. */
const fields = sql`id, name, timezone, case when timezone_from > domain_now() then timezone_before end as timezone_before,
  case when timezone_from > domain_now() then timezone_from end as timezone_from, sending_window, created_at, disabled_at`

export interface WorkspaceFields {
  readonly name?: string | undefined
  readonly timezone?: string | undefined
  /** Such as `mon-fri 09:00-18:00`; `none`: always. */
  readonly window?: string | undefined
}

/** Creates the workspace with the stage `new`, which every chat starts in. */
export async function createWorkspace(
  app: App,
  actor: Actor,
  { name = '', timezone = 'UTC' }: WorkspaceFields,
): Promise<Workspace> {
  await requireFields(app.db, { name, timezone })
  return app.db.transaction(async (tx) => {
    const id = newId()
    const workspace = await tx.one<Workspace>(sql`
      insert into workspaces (id, name, timezone) values (${id}, ${name}, ${timezone})
      returning ${fields}`)
    await addStages(tx, id, [defaultStage])
    await record(app, tx, actor, {
      action: 'workspace.created',
      target: id,
      workspace_id: id,
      detail: { name, timezone },
    })
    return workspace
  })
}

export async function updateWorkspace(
  app: App,
  actor: Actor,
  { id, name, timezone, window }: WorkspaceFields & { id: string },
): Promise<Workspace> {
  await requireFields(app.db, { name, timezone })
  const sending_window = window === undefined || window === 'none' ? null : readWindow(window)
  await requireWorkspace(app.db, id)
  return app.db.transaction(async (tx) => {
    if (timezone !== undefined) await changeZone(tx, id, timezone)
    const workspace = await tx.one<Workspace>(sql`
      update workspaces set name = coalesce(${name ?? null}, name),
        sending_window = case when ${window !== undefined} then ${sending_window} else sending_window end
      where id = ${id} returning ${fields}`)
    const { created_at: _, id: __, disabled_at: ___, timezone_before: ____, ...detail } = workspace
    await record(app, tx, actor, { action: 'workspace.updated', target: id, workspace_id: id, detail })
    return workspace
  })
}

/** The new zone holds from the end of the day that has begun: at once it would open another day's quota. */
async function changeZone(tx: Tx, id: string, timezone: string): Promise<void> {
  const known = await tx.one<{ timezone: string; zone_change: StoredChange | null; now: Date }>(sql`
    select w.timezone, ${zoneChange(sql`w`)} as zone_change, domain_now() as now from workspaces w
    where w.id = ${id} for no key update`)
  if (known.timezone === timezone) return
  const { before, from, floor } = changeOf(
    { timezone: known.timezone, change: readChange(known.zone_change) },
    known.now,
  )
  await tx.run(sql`
    update workspaces set timezone = ${timezone},
      timezone_before = ${before}, timezone_from = ${from}, day_floor = ${floor}::date -- guard: a change keeps the day that has begun
    where id = ${id}`)
}

/**
 * Disabling refuses its keys and members on every process within a second, and takes its accounts from their workers: once
 * this commits, nothing of the workspace crosses the boundary. Nothing is deleted, so enabling resumes at once.
 */
export async function setWorkspaceEnabled(
  app: App,
  actor: Actor,
  { id, enabled }: { id: string; enabled: boolean },
): Promise<Workspace> {
  await requireWorkspace(app.db, id)
  await app.db.transaction(async (tx) => {
    const changed = await tx.run(sql`
      update workspaces set disabled_at = ${enabled ? sql`null` : sql`domain_now()`}
      where id = ${id} and (disabled_at is null) <> ${enabled}`)
    if (!enabled) await revokeLeases(tx, id) // guard: disabling takes the accounts from their workers
    const action = enabled ? 'workspace.enabled' : 'workspace.disabled'
    if (changed > 0) await record(app, tx, actor, { action, target: id, workspace_id: id })
  })
  app.wake.signal(accountsChanged)
  app.wake.signal(emitted)
  await app.settings.refresh()
  return requireWorkspace(app.db, id)
}

function readWindow(given: string): string {
  const window = parseWindow(given)
  if (window) return formatWindow(window)
  throw new ApiError('invalid_request', {
    detail: `${quote(given)} is not a sending window. Give days, a start time and a later end time, such as "mon-fri 09:00-18:00", or "none" for no window.`,
  })
}

export function listWorkspaces(db: Db): Promise<Workspace[]> {
  return db.rows<Workspace>(sql`select ${fields} from workspaces order by created_at, id`)
}

export async function hasWorkspace(db: Db): Promise<boolean> {
  const { found } = await db.one<{ found: boolean }>(sql`select exists (select from workspaces) as found`)
  return found
}

export async function requireWorkspace(db: Db, id: string): Promise<Workspace> {
  const workspace =
    isUuid(id) && (await db.maybe<Workspace>(sql`select ${fields} from workspaces where id = ${id}`))
  if (!workspace) throw notFound('workspace', id)
  return workspace
}

async function requireFields(db: Db, { name, timezone }: WorkspaceFields): Promise<void> {
  if (name !== undefined) requireName('A workspace needs a name', name)
  if (timezone !== undefined && !(await isTimezone(db, timezone))) {
    throw new ApiError('invalid_request', {
      detail: `${quote(timezone)} is not an IANA time zone, such as Europe/Berlin.`,
    })
  }
}

/** Names that PostgreSQL knows. Its view opens a file for each zone, so every name is looked up once. */
const knownTimezones = new Set<string>()

/** Node and PostgreSQL must both know the name, which excludes abbreviations: IST is India to one, Israel to the other. */
export async function isTimezone(db: Db, name: string): Promise<boolean> {
  if (knownTimezones.has(name)) return true
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
  } catch {
    return false
  }
  const known = await db.maybe(sql`select 1 from pg_timezone_names where lower(name) = ${name.toLowerCase()}`)
  if (known) knownTimezones.add(name)
  return known !== undefined
}
