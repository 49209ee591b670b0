/** The columns that a team defines for its chats, and their values. */
import type { App } from '../../app.ts'
import type { Account, Caller } from '../../contract.ts'
import { moveItem } from '../../db/places.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid, newId } from '../../lib/ids.ts'
import { notFound, requireName } from '../../lib/names.ts'
import { type ChatId, chatNumber } from '../../lib/shapes.ts'
import { type Actor, record } from '../audit/audit.ts'
import { columnNotFound, requireChat } from '../chats/chats.ts'
import { putOption, requireOptions, revalue } from './options.ts'
import { type ColumnType, columnTypes, findProblem } from './value-rules.ts'

export { addOption, deleteOption, updateOption } from './options.ts'
export { type ColumnType, columnTypes } from './value-rules.ts'

export interface NewColumn {
  readonly name: string
  readonly type: ColumnType
  readonly options?: readonly Option[] | undefined
}

interface Option {
  readonly value: string
  readonly color?: string | null | undefined
}

interface Column {
  readonly id: string
  readonly name: string
  readonly type: ColumnType
  readonly options: readonly Option[]
}

const columnsMax = 100

interface NewValue {
  readonly chat_id: ChatId
  readonly column_id: string
  readonly value: readonly string[]
}

/** Sets or clears a chat's value in a column. */
export async function setValue(
  tx: Tx,
  caller: Caller,
  accounts: readonly Account[],
  { chat_id, column_id, value }: NewValue,
): Promise<NewValue & { account_id: string }> {
  const { id } = await requireChat({ db: tx }, accounts, { chat_id, missing: 'chat_not_found' })
  const { workspace_id } = caller
  const column = await requireValue(tx, caller, { column_id, value })
  const chat = chatNumber(chat_id)
  await tx.run(
    value.length === 0
      ? sql`delete from column_values
          where account_id = ${id} and chat_id = ${chat} and column_id = ${column}`
      : sql`insert into column_values (account_id, chat_id, column_id, workspace_id, value)
          values (${id}, ${chat}, ${column}, ${workspace_id}, ${value})
          on conflict (account_id, chat_id, column_id)
            do update set value = excluded.value, updated_at = domain_now()`,
  )
  return { account_id: id, chat_id, column_id: column, value }
}

/**
 * Locks the column against deletion, and its options against renaming, until the value is committed. Returns the
 * column's id in its canonical form.
 */
async function requireValue(
  tx: Tx,
  caller: Caller,
  { column_id, value }: { column_id: string; value: readonly string[] },
): Promise<string> {
  const column = isUuid(column_id)
    ? await tx.maybe<{ id: string; type: ColumnType }>(sql`
        select id, type from columns where workspace_id = ${caller.workspace_id} and id = ${column_id} for share`)
    : undefined
  if (!column) throw await columnNotFound(tx, caller, column_id)
  const options = await tx.rows<{ value: string }>(sql`
    select value from column_options where column_id = ${column_id} and deleted_at is null
    order by position, value`)
  const known = options.map((option) => option.value)
  const problem = findProblem(column.type, value, known)
  if (problem) throw new ApiError('invalid_column_value', { detail: `value ${problem}.` })
  return column.id
}

/** Adds a column at the end, with its options in this order. */
export async function addColumn(
  tx: Tx,
  workspace_id: string,
  column: NewColumn,
  id: string = newId(),
): Promise<string> {
  const { name, type, options = [] } = column
  await tx.run(sql`
    insert into columns (id, workspace_id, name, type, position)
    select ${id}, ${workspace_id}, ${name}, ${type},
      coalesce((select max(position) + 1 from columns where workspace_id = ${workspace_id}), 0)`)
  for (const option of options) await putOption(tx, { workspace_id, column_id: id, ...option })
  return id
}

/** Without deleted options: existing values may still have them, but no new value can. */
export function listColumns(db: Db, workspace_id: string): Promise<Column[]> {
  return db.rows<Column>(sql`
    select c.id, c.name, c.type, coalesce((
      select json_agg(json_build_object('value', o.value, 'color', o.color) order by o.position, o.value)
      from column_options o where o.column_id = c.id and o.deleted_at is null), '[]') as options
    from columns c where c.workspace_id = ${workspace_id} order by c.position, c.id`)
}

export async function requireColumn(db: Db, workspace_id: string, id: string): Promise<Column> {
  return requireKnown(await listColumns(db, workspace_id), id)
}

export async function createColumn(
  app: App,
  actor: Actor,
  { workspace_id, ...column }: NewColumn & { workspace_id: string },
): Promise<Column> {
  const { name, type, options = [] } = column
  requireName('A column needs a name', name)
  if (!columnTypes.includes(type)) {
    throw new ApiError('invalid_request', {
      detail: `The type of a column must be one of ${columnTypes.join(', ')}.`,
    })
  }
  requireOptions(type, options)
  return app.db.transaction(async (tx) => {
    const known = await lockColumns(tx, workspace_id)
    if (known.length >= columnsMax) {
      throw new ApiError('conflict', { detail: `A workspace can have at most ${columnsMax} columns.` })
    }
    const id = await addColumn(tx, workspace_id, column)
    const detail = { name, type, options: options.map(({ value }) => value) }
    await record(app, tx, actor, { action: 'column.created', target: id, workspace_id, detail })
    return requireColumn(tx, workspace_id, id)
  })
}

interface ColumnChange {
  readonly workspace_id: string
  readonly id: string
  readonly name?: string | undefined
  /** Its position among the columns, from 1. */
  readonly place?: number | undefined
}

/** A column's type cannot change: its values would not fit another. */
export async function updateColumn(app: App, actor: Actor, change: ColumnChange): Promise<Column> {
  const { workspace_id, id, name, place } = change
  if (name !== undefined) requireName('A column needs a name', name)
  return app.db.transaction(async (tx) => {
    requireKnown(await lockColumns(tx, workspace_id), id)
    await tx.run(sql`
      update columns set name = coalesce(${name ?? null}, name) where workspace_id = ${workspace_id} and id = ${id}`)
    if (place !== undefined) await moveItem(tx, orderedColumns(workspace_id), { item: id, place })
    const detail = { ...(name !== undefined && { name }), ...(place !== undefined && { place }) }
    await record(app, tx, actor, { action: 'column.updated', target: id, workspace_id, detail })
    return requireColumn(tx, workspace_id, id)
  })
}

const orderedColumns = (workspace_id: string) => ({
  update: sql`update columns`,
  table: sql`columns`,
  key: sql`id`,
  rows: sql`workspace_id = ${workspace_id}`,
})

/** Deletes the values in batches, then the column together with values that were set meanwhile. */
export async function deleteColumn(
  app: App,
  actor: Actor,
  { workspace_id, id }: { workspace_id: string; id: string },
): Promise<{ id: string; values: number }> {
  await requireColumn(app.db, workspace_id, id) // guard: values of a column of the workspace are deleted
  const values = await revalue(
    app.db,
    (keys) => sql`
    delete from column_values v using (${keys(id)}) chosen
    where v.column_id = ${id} and v.account_id = chosen.account_id and v.chat_id = chosen.chat_id`,
  )
  await app.db.transaction(async (tx) => {
    const gone = await tx.run(sql`delete from columns where workspace_id = ${workspace_id} and id = ${id}`)
    if (gone === 0) throw notFound('column', id, 'column_not_found')
    await record(app, tx, actor, { action: 'column.deleted', target: id, workspace_id, detail: { values } })
  })
  return { id, values }
}

/** Locks the workspace's columns: one change at a time. */
async function lockColumns(tx: Tx, workspace_id: string): Promise<Column[]> {
  await tx.run(sql`select 1 from workspaces where id = ${workspace_id} for no key update`)
  return listColumns(tx, workspace_id)
}

function requireKnown(columns: readonly Column[], id: string): Column {
  const column = columns.find((each) => each.id === id)
  if (!column) throw notFound('column', id, 'column_not_found')
  return column
}
