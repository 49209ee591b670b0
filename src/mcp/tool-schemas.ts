/** The inputs and outputs of tools as JSON Schema, generated from their routes' schemas like the OpenAPI document. */
import type { JSONObject } from '@modelcontextprotocol/server'
import { type Json, schemaOf } from '../lib/json-schema.ts'
import type { Route } from '../route.ts'

/** The protocol requires an object at the top. */
interface ObjectSchema extends Json {
  readonly type: 'object'
  readonly properties: Record<string, JSONObject>
}

interface Fields {
  readonly properties?: Json
  readonly required?: readonly string[]
}

const approvalToken = {
  type: 'string',
  description:
    'What your user was shown when they approved exactly this call. Leave it out in the first call; never make one up.',
}

/** The route's path, query and body in one object. */
export function inputSchemaOf(route: Route, { approved }: { approved: boolean }): ObjectSchema {
  const parts = [route.params, route.query, route.body].map((schema): Fields => {
    const components: Json = {}
    return schema ? inlined(schemaOf(schema, 'input', components), components) : {}
  })
  return {
    type: 'object',
    properties: Object.assign(
      {},
      ...parts.map(({ properties }) => properties),
      approved && { approval_token: approvalToken },
    ),
    required: parts.flatMap(({ required = [] }) => required),
    additionalProperties: false,
  }
}

/** The route's answer, or a refusal: some clients validate both against the schema. */
export function outputSchemaOf(route: Route, { approved }: { approved: boolean }): ObjectSchema {
  const components: Json = {}
  const answer = inlined(schemaOf(route.response, 'output', components), components)
  return {
    type: 'object',
    properties: {
      truncated: {
        type: 'boolean',
        description:
          'Only there, and true, where the answer was too long and the ends of texts or lists are missing.',
      },
    },
    anyOf: [answer, approved ? approvalRefusal : refusal],
  }
}

const refusalFields = {
  ok: { type: 'boolean', const: false, description: 'Always false: nothing was done.' },
  code: { type: 'string', description: 'Why it was refused; made for programs.' },
  error: { type: 'string', description: 'Why it was refused, and what can be done about it.' },
  operation_id: { type: 'string', description: 'The row of the ledger, where there is one.' },
  retry_after: { type: 'integer', description: 'Seconds to wait before asking again, where waiting helps.' },
}

const refusal = {
  type: 'object',
  description: 'Why the call was refused.',
  properties: refusalFields,
  required: ['ok', 'code', 'error'],
}

const approvalRefusal = {
  ...refusal,
  properties: {
    ...refusalFields,
    request_id: { type: 'string', description: 'The request that a person has to decide on.' },
    approval_url: { type: 'string', description: 'Where your user decides; give it to them.' },
    payload: { type: 'object', description: 'Exactly what will be done once it is approved.' },
    expires_at: { type: 'string', format: 'date-time', description: 'Until when the request waits.' },
    state: { type: 'string', description: 'What an operation that was approved before has come to.' },
    answer: { type: ['object', 'null'], description: 'What that operation answered.' },
  },
}

/** Arguments that are text in a query string and numbers in JSON. */
export function numbersOf(route: Route): ReadonlySet<string> {
  if (!route.query) return new Set()
  const { properties = {} } = schemaOf(route.query, 'input', {}) as Fields
  return new Set(Object.keys(properties).filter((name) => (properties[name] as Json).type === 'integer'))
}

/** Inlines references: clients pass schemas to models as they are, and not all models resolve references. */
function inlined(schema: unknown, components: Json): Json {
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk)
    if (typeof value !== 'object' || value === null) return value
    const { $ref, ...rest } = value as Json & { $ref?: string }
    if ($ref !== undefined) return walk({ ...(components[$ref.split('/').at(-1) ?? ''] as Json), ...rest })
    return Object.fromEntries(Object.entries(rest).map(([key, each]) => [key, walk(each)]))
  }
  return walk(schema) as Json
}
