/** The one way to the database: tagged statements, and the interfaces that run them. `pool.ts` opens it. */
import { createHash } from 'node:crypto'
import type pg from 'pg'

/** A statement with its parameters. Fragments nest; nothing is ever built from strings. */
export interface Sql {
  readonly text: string
  readonly values: readonly unknown[]
  readonly name: string
}

const fragment = Symbol('sql')
interface Fragment extends Sql {
  readonly [fragment]: Shape
}

/** A statement without its values. Each text has one, and so one plan. */
interface Shape {
  readonly strings: readonly string[]
  readonly text: string
  readonly name: string
}

/** A template's shape so far, by the shape of its next fragment; undefined stands for a plain value. */
interface Step {
  shape: Shape | undefined
  readonly next: Map<Shape | undefined, Step>
}

const templates = new WeakMap<TemplateStringsArray, Step>()
const shapes = new Map<string, Shape>()

/** Builds the text only once: a template with the same kinds of fragments has the same shape. */
export function sql(strings: TemplateStringsArray, ...values: readonly unknown[]): Sql {
  let step = templates.get(strings)
  if (!step) {
    step = { shape: undefined, next: new Map() }
    templates.set(strings, step)
  }
  const nested = values.some(isFragment)
  if (nested) for (const value of values) step = stepOf(step, isFragment(value) ? value[fragment] : undefined)
  step.shape ??= shapeOf(nested ? flatten(strings, values) : strings)
  const { text, name } = step.shape
  const flat = nested ? values.flatMap((value) => (isFragment(value) ? value.values : [value])) : values
  const statement: Fragment = { text, name, values: flat, [fragment]: step.shape }
  return statement
}

function stepOf({ next }: Step, shape: Shape | undefined): Step {
  let step = next.get(shape)
  if (!step) {
    step = { shape: undefined, next: new Map() }
    next.set(shape, step)
  }
  return step
}

/** The strings between the values, including those inside fragments. */
function flatten(strings: readonly string[], values: readonly unknown[]): string[] {
  const flat = [strings[0] ?? '']
  for (const [at, value] of values.entries()) {
    const [first = '', ...rest] = isFragment(value) ? value[fragment].strings : ['', '']
    flat[flat.length - 1] += first
    flat.push(...rest)
    flat[flat.length - 1] += strings[at + 1] ?? ''
  }
  return flat
}

function isFragment(value: unknown): value is Fragment {
  return typeof value === 'object' && value !== null && fragment in value
}

function shapeOf(strings: readonly string[]): Shape {
  const key = strings.join('\0')
  let shape = shapes.get(key)
  if (!shape) {
    const text = strings.reduce((joined, part, at) => `${joined}$${at}${part}`)
    shape = { strings, text, name: createHash('sha1').update(text).digest('base64url') }
    shapes.set(key, shape)
  }
  return shape
}

/** Reads, and writes that stand alone. */
export interface Db {
  rows<T>(statement: Sql): Promise<T[]>
  maybe<T>(statement: Sql): Promise<T | undefined>
  one<T>(statement: Sql): Promise<T>
  /** Rows as arrays of their columns: cheaper than an object for each row of a page. */
  lists<T extends readonly unknown[]>(statement: Sql): Promise<T[]>
  /** Returns how many rows it touched. */
  run(statement: Sql): Promise<number>
}

declare const inTransaction: unique symbol
/** A parameter of this type means "my work commits with yours". */
export interface Tx extends Db {
  readonly [inTransaction]: true
  /** A statement whose result is not needed, sent together with COMMIT. If it fails, nothing is committed. */
  atCommit(statement: Sql): void
  /** Called once everything is committed, and not at all otherwise: for signals to those who would read it. */
  afterCommit(act: () => void): void
  /** A `copy … to stdout` in pieces, each valid during its call. It takes no parameters, but may read settings. */
  copyOut(statement: Sql, take: (bytes: Buffer) => void): Promise<void>
}

export interface Database extends Db {
  transaction<T>(work: (tx: Tx) => Promise<T> | T): Promise<T>
  /** `work` reads everything as of one moment. */
  snapshot<T>(work: (db: Db) => Promise<T>): Promise<T>
  /** A `copy … from stdin`. The bytes are sent without a copy, and may be reused once it resolves. */
  copyIn(statement: Sql, bytes: readonly Buffer[]): Promise<void>
  /** A connection of its own, for locks and notifications. */
  client(): Promise<pg.Client>
  readonly pool: pg.Pool
  /** How many callers wait for a connection, requests and background together. */
  countWaiting(): number
  /** How many connections requests have together. */
  readonly requestsMax: number
  close(): Promise<void>
}

/** For requests. The ledger, leases and loops use `background`, so that no request can take their connections. */
export interface OpenDatabase extends Database {
  readonly background: Database
}

/**
 * For a transaction whose statements find every row by its key: plans them once per connection. By default the server plans
 * a statement again whenever its lists are short, which costs more here than running it.
 */
export const planOnce: Sql = sql`set local plan_cache_mode = force_generic_plan`
