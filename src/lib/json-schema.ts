/** Converts schemas to JSON Schema: a named schema becomes a component that others refer to. */
import { z } from 'zod'

export type Json = Record<string, unknown>

/** Where a document holds its components. */
const place = '#/components/schemas/'

/** If a schema transforms, its `openapi` describes what goes over the wire. Adds named parts to `components`. */
export function schemaOf(schema: z.ZodType, io: 'input' | 'output', components: Json): Json {
  const made = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const { openapi, description } = (z.globalRegistry.get(zodSchema) ?? {}) as Meta
      if (openapi) replace(jsonSchema, { ...openapi, ...(description && { description }) })
      // Answers may gain properties later. A record's value type stays.
      if (io === 'output' && jsonSchema.additionalProperties === false) {
        Reflect.deleteProperty(jsonSchema, 'additionalProperties')
      }
      // Every key of JSON is a string.
      Reflect.deleteProperty(jsonSchema, 'propertyNames')
      dropBounds(jsonSchema)
    },
  })
  const { $schema: _, $defs = {}, ...rest } = rebased(made) as Json & { $defs?: Json }
  Object.assign(components, $defs)
  return rest
}

/**
 * Which properties a body must not have together or leave out together, as validators read it: below `not`, which client
 * generators skip. They do not skip `oneOf`, and linters expect the properties that `required` names beside it.
 */
export function absent(...names: readonly string[]): Json {
  return { properties: Object.fromEntries(names.map((name) => [name, false])) }
}

export function present(...names: readonly string[]): Json {
  const each = names.map((name) => ({ not: absent(name) }))
  return each.length === 1 ? { ...each[0] } : { allOf: each }
}

/**
 * The same schema of a request body, with defaults in words: generators take a property with a `default` for one that is always
 * there, and require it of the caller.
 */
export function withDefaultsInWords(schema: Json): Json {
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => {
      if (key === 'properties') {
        const fields = Object.entries(value as Record<string, unknown>)
        return [key, Object.fromEntries(fields.map(([name, field]) => [name, sayDefault(field)]))]
      }
      const isSchema = typeof value === 'object' && value !== null && !Array.isArray(value)
      return [key, isSchema ? withDefaultsInWords(value as Json) : value]
    }),
  )
}

function sayDefault(field: unknown): unknown {
  if (typeof field !== 'object' || field === null) return field
  const { default: standard, ...rest } = withDefaultsInWords(field as Json)
  if (standard === undefined || standard === '') return rest
  const said = `Default: \`${typeof standard === 'string' ? standard : JSON.stringify(standard)}\`.`
  return { ...rest, description: [rest.description, said].filter(Boolean).join(' ') }
}

interface Meta {
  readonly openapi?: Json
  readonly description?: string
}

function replace(schema: Json, by: Json): void {
  for (const key of Object.keys(schema)) Reflect.deleteProperty(schema, key)
  Object.assign(schema, by)
}

/** Integers are those that JavaScript can hold; the document need not say so for each of them. */
function dropBounds(schema: Json): void {
  if (schema.maximum === Number.MAX_SAFE_INTEGER) Reflect.deleteProperty(schema, 'maximum')
  if (schema.minimum === Number.MIN_SAFE_INTEGER) Reflect.deleteProperty(schema, 'minimum')
}

/** The same with every `#/$defs/Name` pointing to the components. */
function rebased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(rebased)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      key === '$ref' ? String(each).replace('#/$defs/', place) : rebased(each),
    ]),
  )
}
