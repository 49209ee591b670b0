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
    'The token that your user got when they approved exactly this call. Leave it out of the first call; never invent one.',
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
          'True if the result was too long and the ends of texts or lists were cut; otherwise absent.',
      },
    },
    anyOf: [answer, approved ? approvalRefusal : refusal],
  }
}

const refusalFields = {
  ok: { type: 'boolean', const: false, description: 'Always false: nothing was done.' },
  code: { type: 'string', description: 'Reason for the refusal, as a stable code.' },
  error: { type: 'string', description: 'Reason for the refusal and what to do, as a sentence.' },
  operation_id: { type: 'string', description: 'Id of the operation in the ledger, if there is one.' },
  retry_after: { type: 'integer', description: 'Seconds to wait before the next attempt, if waiting helps.' },
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
    request_id: { type: 'string', description: 'Id of the request that waits for a decision.' },
    approval_url: { type: 'string', description: 'Address where your user decides; give it to them.' },
    payload: { type: 'object', description: 'The exact payload that an approval would run.' },
    expires_at: { type: 'string', format: 'date-time', description: 'When the request expires.' },
    state: { type: 'string', description: 'State of the operation that was approved earlier.' },
    answer: { type: ['object', 'null'], description: 'Result of that operation.' },
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
