/** Generates the dashboard's request and response types (`web/src/data/api-types.ts`) from the route lists. */
import type { z } from 'zod'
import { ownPrefix, workspacePrefix } from '../contract.ts'
import { type Json, schemaOf } from '../lib/json-schema.ts'
import type { Route } from '../route.ts'

interface Lists {
  /** Routes within a workspace: the contract's, and the dashboard's own. */
  readonly workspaceRoutes: readonly Route[]
  /** Routes about the signed-in user. */
  readonly ownRoutes: readonly Route[]
}

export function makeBrowserTypes({ workspaceRoutes, ownRoutes }: Lists): string {
  const components: Json = {}
  const below = workspacePrefix.slice(ownPrefix.length)
  const entries = [
    ...ownRoutes.map((route) => entryOf(route, { prefix: '', components })),
    ...workspaceRoutes.map((route) => entryOf(route, { prefix: below, components })),
  ]
  const reading = [
    ...ownRoutes.filter(readsByBody).map((route) => nameIn('', route)),
    ...workspaceRoutes.filter(readsByBody).map((route) => nameIn(below, route)),
  ]
  const named = Object.entries(components).sort(([one], [other]) => (one < other ? -1 : 1))
  return [
    '// Made from the route lists by `npm run generated`. What is asked for is keyed by method and path.',
    '',
    ...named.map(([name, schema]) => `export type ${nameOf(name)} = ${typeOf(schema as Json)}\n`),
    'export interface Routes {',
    ...entries,
    '}',
    '',
    '/** Routes that change nothing although they are no GET. */',
    `export const readingRoutes: ReadonlySet<string> = new Set([${reading.map(literal).join(', ')}])`,
    '',
  ].join('\n')
}

const readsByBody = ({ method, effect }: Route) => method !== 'GET' && effect === 'read'
const nameIn = (prefix: string, { method, path }: Route) => `${method} ${prefix}${path}`

function entryOf(route: Route, { prefix, components }: { prefix: string; components: Json }): string {
  const path = prefix + route.path
  const input = (schema: z.ZodType | undefined) => schema && schemaOf(schema, 'input', components)
  const query = input(route.query)
  const body = route.text ? undefined : input(route.body)
  const params = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => `${name}: string`)
  // A query without required parameters is optional as a whole.
  const mark = (query?.required as readonly string[] | undefined)?.length ? '' : '?'
  return [
    `  ${literal(nameIn(prefix, route))}: {`,
    ...(params.length > 0 ? [`    params: { ${params.join('; ')} }`] : []),
    ...(query ? [`    query${mark}: ${typeOf(query)}`] : []),
    ...(body ? [`    body: ${typeOf(body)}`] : []),
    ...(route.text ? ['    body: Blob'] : []),
    `    answer: ${typeOf(schemaOf(route.response, 'output', components))}`,
    '  }',
  ].join('\n')
}

type Schema = Json & {
  readonly $ref?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Json[]
  readonly oneOf?: readonly Json[]
  readonly allOf?: readonly Json[]
  readonly type?: string | readonly string[]
}

function typeOf(schema: Schema): string {
  const { $ref, anyOf, oneOf, allOf, type } = schema
  if ($ref) return nameOf($ref.split('/').at(-1) ?? '')
  if ('const' in schema) return literal(schema.const)
  if (schema.enum) return union(schema.enum.map(literal))
  const either = anyOf ?? oneOf
  if (either) return union(either.map((each) => typeOf(type ? { type, ...each } : each)))
  if (allOf) return allOf.map(typeOf).join(' & ')
  if (Array.isArray(type)) return union(type.map((each: string) => typeOf({ ...schema, type: each })))
  if (type === 'object') return objectType(schema)
  if (type === 'array') return arrayType(schema)
  return plain[type as string] ?? 'unknown'
}

const plain: Readonly<Record<string, string>> = {
  string: 'string',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
  null: 'null',
}

function objectType({ properties = {}, required = [], additionalProperties }: Json): string {
  const fields = Object.entries(properties as Record<string, Json>).map(([name, field]) => {
    const mark = (required as readonly string[]).includes(name) ? '' : '?'
    return `${/^\w+$/.test(name) ? name : literal(name)}${mark}: ${typeOf(field)}`
  })
  if (fields.length > 0) return `{ ${fields.join('; ')} }`
  const values = typeof additionalProperties === 'object' ? typeOf(additionalProperties as Json) : 'unknown'
  return `Record<string, ${values}>`
}

function arrayType({ items, prefixItems }: Json): string {
  if (Array.isArray(prefixItems)) return `[${prefixItems.map((each: Json) => typeOf(each)).join(', ')}]`
  return `(${typeOf((items ?? {}) as Json)})[]`
}

function union(types: readonly string[]): string {
  return [...new Set(types)].join(' | ')
}

function nameOf(component: string): string {
  return component.replaceAll(/\W/g, '_')
}

function literal(value: unknown): string {
  return typeof value === 'string'
    ? `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
    : JSON.stringify(value)
}
