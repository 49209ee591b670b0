/** The options of select columns: added, renamed, recoloured, reordered, and deleted without touching values. */
import type { App } from '../../app.ts'
import { moveItem } from '../../db/places.ts'
import { type Database, type Sql, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { notFound, requireColor, requireName } from '../../lib/names.ts'
import { quote } from '../../lib/text.ts'
import { type Actor, record } from '../audit/audit.ts'
import type { ColumnType } from './value-rules.ts'

interface Option {
  readonly value: string
  readonly color?: string | null | undefined
}

interface OptionRow {
  readonly value: string
  readonly color: string | null
  readonly deleted: boolean
}

/** Which column, of which workspace. */
interface ColumnRef {
  readonly workspace_id: string
  readonly column_id: string
}

const optionsMax = 200
const selects: readonly ColumnType[] = ['select', 'multi_select']
const onlySelects = `Only columns of the types ${selects.join(' and ')} have options.`
const tooMany = `A column can have at most ${optionsMax} options.`

export function requireOptions(type: ColumnType, options: readonly Option[]): void {
  if (options.length > 0 && !selects.includes(type)) {
    throw new ApiError('invalid_request', { detail: onlySelects })
  }
  if (options.length > optionsMax) throw new ApiError('invalid_request', { detail: tooMany })
  for (const option of options) requireOption(option)
  const values = options.map(({ value }) => value)
  const twice = values.find((value, at) => values.indexOf(value) !== at)
  if (twice !== undefined) {
    throw new ApiError('invalid_request', { detail: `The option ${quote(twice)} is given twice.` })
  }
}

function requireOption({ value, color }: Option): void {
  requireName('An option needs a text', value)
  if (color !== undefined && color !== null) requireColor(color)
}

/** Adds the option at the end. A deleted option is restored, also at the end. */
export async function putOption(
  tx: Tx,
  { workspace_id, column_id, value, color = null }: Option & ColumnRef,
): Promise<void> {
  await tx.run(sql`
    insert into column_options (workspace_id, column_id, value, color, position)
    select ${workspace_id}, ${column_id}, ${value}, ${color},
      coalesce((select max(position) + 1 from column_options where column_id = ${column_id}), 0)
    on conflict (column_id, value) do update
      set deleted_at = null, color = excluded.color, position = excluded.position`)
}

export async function addOption(
  app: App,
  actor: Actor,
  { value, color, ...column }: Option & ColumnRef,
): Promise<Option> {
  requireOption({ value, color })
  return app.db.transaction(async (tx) => {
    const known = (await lockOptions(tx, column)).filter(({ deleted }) => !deleted)
    if (known.some((option) => option.value === value)) throw takenOption(value)
    if (known.length >= optionsMax) throw new ApiError('conflict', { detail: tooMany })
    await putOption(tx, { ...column, value, color })
    await note(app, tx, actor, { ...column, action: 'added', detail: { value, color: color ?? null } })
    return { value, color: color ?? null }
  })
}

interface OptionChange extends ColumnRef {
  readonly value: string
  readonly name?: string | undefined
  /** Null removes the colour. */
  readonly color?: string | null | undefined
  /** Its position among the options, from 1. */
  readonly place?: number | undefined
}

/**
 * Renaming inserts a new option in the old one's place and moves the values to it in batches. Until the last one is moved,
 * the old name can be read but not set. After an interruption, repeating the call continues where it stopped.
 */
export async function updateOption(app: App, actor: Actor, change: OptionChange): Promise<Option> {
  const { value, name = value, color, place, ...column } = change
  requireOption({ value: name, color })
  const renamed = name !== value
  const option = await app.db.transaction(async (tx) => {
    const known = await lockOptions(tx, column)
    const old = known.find((each) => each.value === value)
    const target = known.find((each) => each.value === name && !each.deleted)
    // A deleted option can only be the source of an interrupted rename.
    if (!old || (old.deleted && !(renamed && target))) throw unknownOption(value)
    if (renamed && target && !old.deleted) throw takenOption(name)
    if (renamed && !target) await replace(tx, column, { old, name })
    await tx.run(sql`
      update column_options set color = case when ${color === undefined} then color else ${color ?? null} end
      where column_id = ${column.column_id} and value = ${name}`)
    if (place !== undefined) await moveItem(tx, orderedOptions(column.column_id), { item: name, place })
    const detail = { value, name, color: color ?? null, place: place ?? null }
    await note(app, tx, actor, { ...column, action: 'updated', detail })
    return { value: name, color: color === undefined ? (target ?? old).color : color }
  })
  if (renamed) await renameValues(app.db, column.column_id, { value, name })
  return option
}

async function replace(
  tx: Tx,
  { workspace_id, column_id }: ColumnRef,
  { old, name }: { old: OptionRow; name: string },
): Promise<void> {
  await tx.run(sql`
    insert into column_options (workspace_id, column_id, value, color, position)
    select ${workspace_id}, ${column_id}, ${name}, color, position
    from column_options where column_id = ${column_id} and value = ${old.value}
    on conflict (column_id, value) do update
      set deleted_at = null, color = excluded.color, position = excluded.position`)
  await tx.run(sql`
    update column_options set deleted_at = domain_now() where column_id = ${column_id} and value = ${old.value}`)
}

/** A value that has both options keeps only the new one. */
async function renameValues(
  db: Database,
  column_id: string,
  { value, name }: { value: string; name: string },
): Promise<void> {
  await revalue(
    db,
    (keys) => sql`
      update column_values v set value = case when v.value @> array[${name}::text]
        then array_remove(v.value, ${value}) else array_replace(v.value, ${value}, ${name}) end
      from (${keys(column_id, sql`and value @> array[${value}::text]`)}) chosen
      where v.column_id = ${column_id} and v.account_id = chosen.account_id and v.chat_id = chosen.chat_id`,
  )
  await db.run(sql`
    delete from column_options o where o.column_id = ${column_id} and o.value = ${value} and o.deleted_at is not null
      and not exists (select from column_values v where v.column_id = o.column_id and v.value @> array[o.value])`)
}

const revaluedMax = 2_000

/** Changes values in batches, each in its own transaction, so that no row is locked for long. Returns how many. */
export async function revalue(
  db: Database,
  change: (keys: (column_id: string, where?: Sql) => Sql) => Sql,
): Promise<number> {
  const keys = (column_id: string, where = sql``) => sql`
    select account_id, chat_id from column_values where column_id = ${column_id} ${where}
    order by account_id, chat_id limit ${revaluedMax} for update`
  let total = 0
  for (let some = revaluedMax; some === revaluedMax; total += some) some = await db.run(change(keys))
  return total
}

const orderedOptions = (column_id: string) => ({
  update: sql`update column_options`,
  table: sql`column_options`,
  key: sql`value`,
  rows: sql`column_id = ${column_id} and deleted_at is null`,
})

/** Existing values keep it; no value can be set to it any more. */
export async function deleteOption(
  app: App,
  actor: Actor,
  { value, ...column }: ColumnRef & { value: string },
): Promise<{ value: string }> {
  return app.db.transaction(async (tx) => {
    await lockOptions(tx, column)
    const gone = await tx.run(sql`
      update column_options set deleted_at = domain_now()
      where column_id = ${column.column_id} and value = ${value} and deleted_at is null`)
    if (gone === 0) throw unknownOption(value)
    await note(app, tx, actor, { ...column, action: 'deleted', detail: { value } })
    return { value }
  })
}

/** Setting a value locks the column's row too, so no value gets an option that is being renamed or deleted. */
async function lockOptions(tx: Tx, { workspace_id, column_id }: ColumnRef): Promise<OptionRow[]> {
  const column = isUuid(column_id)
    ? await tx.maybe<{ type: ColumnType }>(sql`
        select type from columns where id = ${column_id}
          and workspace_id = ${workspace_id} -- guard: options of a column of the workspace
        for update`)
    : undefined
  if (!column) throw notFound('column', column_id, 'column_not_found')
  if (!selects.includes(column.type)) throw new ApiError('conflict', { detail: onlySelects })
  return tx.rows<OptionRow>(sql`
    select value, color, deleted_at is not null as deleted from column_options where column_id = ${column_id}`)
}

function note(
  app: App,
  tx: Tx,
  actor: Actor,
  {
    workspace_id,
    column_id,
    action,
    detail,
  }: ColumnRef & { action: string; detail: Readonly<Record<string, unknown>> },
): Promise<void> {
  return record(app, tx, actor, { action: `option.${action}`, target: column_id, workspace_id, detail })
}

function takenOption(value: string): ApiError {
  return new ApiError('conflict', { detail: `The column already has an option ${quote(value)}.` })
}

function unknownOption(value: string): ApiError {
  return new ApiError('not_found', {
    detail: `The column has no option ${quote(value)}.`,
    missing: 'option',
  })
}
