/**
 * Errors for a stage or a column that does not exist. They list the existing ones: an agent whose key works over MCP only
 * has no other way to look them up.
 */
import type { Caller } from '../../contract.ts'
import { type Db, type Sql, sql } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { quote } from '../../lib/text.ts'

/** How many names an error lists. */
const namedMax = 10

/** `sentence` says what is wrong with the requested stage. */
export async function invalidStage(db: Db, caller: Caller, sentence: string): Promise<ApiError> {
  const known = await listNames(
    db,
    caller,
    sql`select key from stages where workspace_id = ${caller.workspace_id} and not hidden
      order by position, key limit ${namedMax + 1}`,
  )
  const named =
    known &&
    nameFirst(
      'stages',
      known.map(({ key }) => quote(key)),
    )
  return new ApiError('invalid_stage', { detail: join(sentence, named), missing: 'stage' })
}

export async function columnNotFound(db: Db, caller: Caller, column_id: string): Promise<ApiError> {
  const known = await listNames(
    db,
    caller,
    sql`select id as key, name from columns where workspace_id = ${caller.workspace_id}
      order by position, id limit ${namedMax + 1}`,
  )
  const named =
    known &&
    nameFirst(
      'columns',
      known.map(({ key, name = '' }) => `${key} ${quote(name)}`),
    )
  const sentence = `There is no column ${quote(column_id)} in this workspace.`
  return new ApiError('column_not_found', { detail: join(sentence, named), missing: 'column' })
}

interface NamedRow {
  readonly key: string
  readonly name?: string
}

/** Undefined for a caller that may not read them, such as a key with the scope `send` alone. */
async function listNames(db: Db, { scopes }: Caller, rows: Sql): Promise<NamedRow[] | undefined> {
  if (!scopes.includes('read') && !scopes.includes('write')) return undefined // guard: names for who may read them
  return db.rows<NamedRow>(rows)
}

function nameFirst(what: string, names: readonly string[]): string {
  if (names.length === 0) return `It has no ${what}.`
  const which = names.length > namedMax ? `first ten ${what}` : what
  return `The ${which} are ${names.slice(0, namedMax).join(', ')}.`
}

function join(sentence: string, named: string | undefined): string {
  return named === undefined ? sentence : `${sentence} ${named}`
}
