/** Schemas as JSON Schema: what has a name becomes a component that others point to. */
import { z } from 'zod'

export type Json = Record<string, unknown>

/** Where components lie in a document. */
const place = '#/components/schemas/'

/** Where a schema transforms, its `openapi` says what goes over the wire. Named parts are added to `components`. */
export function schemaOf(schema: z.ZodType, io: 'input' | 'output', components: Json): Json {
  const made = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const { openapi, description } = (z.globalRegistry.get(zodSchema) ?? {}) as Meta
      if (openapi) replace(jsonSchema, { ...openapi, ...(description && { description }) })
      // Answers may have more tomorrow than today.
      if (io === 'output') Reflect.deleteProperty(jsonSchema, 'additionalProperties')
      dropBounds(jsonSchema)
    },
  })
  const { $schema: _, $defs = {}, ...rest } = rebased(made) as Json & { $defs?: Json }
  Object.assign(components, $defs)
  return rest
}

/**
 * Which properties a body must not have together or leave out together, as validators read it: below `not`, which generators
 * of clients skip. They do not skip `oneOf`, and linters expect beside `required` what it names.
 */
export function absent(...names: readonly string[]): Json {
  return { properties: Object.fromEntries(names.map((name) => [name, false])) }
}

export function present(...names: readonly string[]): Json {
  const each = names.map((name) => ({ not: absent(name) }))
  return each.length === 1 ? { ...each[0] } : { allOf: each }
}

interface Meta {
  readonly openapi?: Json
  readonly description?: string
}

function replace(schema: Json, by: Json): void {
  for (const key of Object.keys(schema)) Reflect.deleteProperty(schema, key)
  Object.assign(schema, by)
}

/** An integer is one that JavaScript can hold; nobody needs to be told so at each of them. */
function dropBounds(schema: Json): void {
  if (schema.maximum === Number.MAX_SAFE_INTEGER) Reflect.deleteProperty(schema, 'maximum')
  if (schema.minimum === Number.MIN_SAFE_INTEGER) Reflect.deleteProperty(schema, 'minimum')
}

/** The same with every `#/$defs/Name` pointing to where components lie. */
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
