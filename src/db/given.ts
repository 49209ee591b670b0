/** Rows as parameters of a statement: one array for each column. */
import { type Sql, sql } from './sql.ts'

type Type =
  | 'bigint'
  | 'boolean'
  | 'bytea'
  | 'date'
  | 'float8'
  | 'int'
  | 'json'
  | 'jsonb'
  | 'smallint'
  | 'text'
  | 'timestamptz'
  | 'uuid'

type ValueOf<Row> = (row: Row, at: number) => unknown

/** A type alone reads the property of the column's name. `ordinality` numbers the rows from 1. */
type Column<Row, Name> =
  | (Name extends keyof Row ? Type : never)
  | readonly [type: Type, of: ValueOf<Row>]
  | 'ordinality'

type AnyColumn<Row> = Type | 'ordinality' | readonly [type: Type, of: ValueOf<Row>]

/**
 * The rows as a table in parentheses: `from ${given(rows, { id: 'uuid', … })} as g`, or `with g as ${given(…)}`. The planner
 * pulls the `unnest` up out of its parentheses, so plans are those of a bare `unnest`. `json` and `jsonb` are serialised here.
 */
export function given<Row, Name extends string>(
  rows: readonly Row[],
  columns: { readonly [N in Name]: Column<Row, N> },
): Sql {
  let step = root
  const values: unknown[] = []
  for (const name in columns) {
    const column: AnyColumn<Row> = columns[name]
    const type = typeOf(column)
    step = stepOf(stepOf(step, name), type)
    if (type === 'ordinality') continue
    const list = typeof column === 'string' ? listProperty(rows, name) : rows.map(column[1])
    values.push(type === 'json' || type === 'jsonb' ? list.map((value) => JSON.stringify(value)) : list)
  }
  step.template ??= templateOf(Object.entries<AnyColumn<Row>>(columns))
  return sql(step.template, ...values)
}

function typeOf<Row>(column: AnyColumn<Row>): Type | 'ordinality' {
  return typeof column === 'string' ? column : column[0]
}

/** A loop, because `map` with a closure over the name is slower here, where rows of every shape pass. */
function listProperty(rows: readonly unknown[], name: string): unknown[] {
  const list = new Array<unknown>(rows.length)
  for (let at = 0; at < rows.length; at++) list[at] = (rows[at] as Readonly<Record<string, unknown>>)[name]
  return list
}

/** Finds the template of a list of columns by its names and types in turn: a key string for each call would cost more. */
interface Step {
  template: TemplateStringsArray | undefined
  readonly next: Map<string, Step>
}

const root: Step = { template: undefined, next: new Map() }

function stepOf({ next }: Step, word: string): Step {
  let step = next.get(word)
  if (!step) {
    step = { template: undefined, next: new Map() }
    next.set(word, step)
  }
  return step
}

/** Made once for each list of columns. Only names and types in our own code get into its text. */
function templateOf<Row>(
  columns: readonly (readonly [name: string, column: AnyColumn<Row>])[],
): TemplateStringsArray {
  const arrays = columns.filter(([, column]) => column !== 'ordinality')
  const places = columns.filter(([, column]) => column === 'ordinality')
  const names = [...arrays, ...places].map(([name]) => name).join(', ')
  const types = arrays.map(([, column]) => `::${typeOf(column)}[]`).join(', \0')
  const ordinality = places.length > 0 ? ' with ordinality' : ''
  const strings = `(select * from unnest(\0${types})${ordinality} as given (${names}))`.split('\0')
  return Object.assign(strings, { raw: strings })
}
