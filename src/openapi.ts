/** The OpenAPI 3.1 document, made from the route list: what is listed is what is served. */
import { z } from 'zod'
import { apiPrefix, contractVersion } from './contract.ts'
import { type ErrorCode, errors, operatorCodes } from './lib/errors.ts'
import { depthMax, itemsMax, propertiesMax } from './lib/text.ts'
import type { Route } from './route.ts'

export type Json = Record<string, unknown>

/** Every code of the table, except those of operators that no route lists. */
export function errorSchema(routes: readonly Route[]): Json {
  const listed = new Set(routes.flatMap(errorsOf).map(([code]) => code))
  const codes = (Object.keys(errors) as ErrorCode[]).filter(
    (code) => listed.has(code) || !operatorCodes.includes(code),
  )
  return {
    type: 'object',
    required: ['error'],
    properties: {
      error: { type: 'string', description: 'A sentence a person can act on.' },
      code: { type: 'string', enum: codes, description: 'Stable; made for programs.' },
    },
  }
}

const bodyLimits = [
  '1 MiB',
  `${depthMax} levels`,
  `${propertiesMax} properties in an object and ${itemsMax.toLocaleString('en')} items in an array`,
].join(', ')

const description = `Every request carries \`Authorization: Bearer svc_live_…\`. A key belongs to one workspace and has scopes.

Failures are \`{"error": "<a sentence>", "code": "<stable>"}\` with the status that each operation lists.

A key may make 120 requests in any 60 seconds. \`X-RateLimit-Limit\`, \`-Remaining\` and \`-Reset\` are on every
response; a 429 says in \`Retry-After\` how many seconds to wait.

A JSON body has at most ${bodyLimits}.

Where \`Idempotency-Key\` is taken, a repeat of the same request is answered with what the first one came to
(\`Idempotent-Replayed: true\`) and never executed again. The same key with another payload is refused.`

export function makeOpenApi(routes: readonly Route[]): Json {
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Parley',
      version: contractVersion,
      summary:
        'Outreach for messaging accounts: reads, sends that never happen twice, a small CRM, campaigns.',
      description,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: apiPrefix }],
    security: [{ key: [] }],
    paths,
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'An API key, svc_live_…, of one workspace.' },
      },
      headers: rateHeaders,
      schemas: {
        Error: errorSchema(routes),
      },
    },
  }
}

const integer = (description: string) => ({ description, required: true, schema: { type: 'integer' } })
const rateHeaders = {
  'X-RateLimit-Limit': integer('Requests allowed in any 60 seconds.'),
  'X-RateLimit-Remaining': integer('Requests left in the window.'),
  'X-RateLimit-Reset': integer('Unix time in seconds when the oldest counted request leaves the window.'),
  'X-Request-Id': {
    description: 'Names this request in the log.',
    required: true,
    schema: { type: 'string' },
  },
}
const replayHeaders = {
  'Idempotent-Replayed': { description: '`true` on a replay.', schema: { type: 'string' } },
  'X-Operation-Id': { description: 'The row of the ledger.', schema: { type: 'string', format: 'uuid' } },
}
const headers = Object.fromEntries(
  Object.keys(rateHeaders).map((name) => [name, { $ref: `#/components/headers/${name}` }]),
)

function operation(route: Route): Json {
  const { name, summary, description, example, idempotency, statuses = [200] } = route
  const success = {
    description: summary,
    headers,
    content: {
      'application/json': { schema: schemaOf(route.response, 'output'), example: example.response },
    },
  }
  const replay = {
    ...success,
    description: statuses.includes(200)
      ? `${summary}, or the replay of it`
      : 'The replay of a completed request',
    headers: { ...headers, ...replayHeaders },
  }
  return {
    operationId: name,
    tags: [headingOf(route)],
    summary,
    description: [description, needsSentence(route)].filter(Boolean).join('\n\n'),
    parameters: parametersOf(route),
    ...(route.body && {
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: schemaOf(route.body, 'input'), example: example.body },
          ...(route.form && { 'multipart/form-data': { schema: formSchema(route.form) } }),
        },
      },
    }),
    responses: {
      ...Object.fromEntries(statuses.map((status) => [status, success])),
      ...(idempotency && { 200: replay }),
      ...errorResponses(route),
    },
  }
}

/** The one file arrives in the field `attachments`. */
function formSchema(form: z.ZodType): Json {
  const schema = schemaOf(form, 'input')
  const { attachment: _, ...fields } = schema.properties as Json
  const required = (schema.required as string[]).filter((name) => name !== 'attachment')
  const attachments = { type: 'string', format: 'binary', description: 'Exactly one file, at most 25 MiB.' }
  return { ...schema, properties: { ...fields, attachments }, required: [...required, 'attachments'] }
}

/** The reference lists `/chats/start` under Chats. */
function headingOf({ path }: Route): string {
  const [, first = ''] = path.split('/')
  return first.charAt(0).toUpperCase() + first.slice(1)
}

/** Scopes, gates and allowlists in words, so that the reference answers "why may I not". */
function needsSentence({ scopes, gates = [], allowlists = [], idempotency }: Route): string {
  return [
    `Scope: ${scopes.map((scope) => `\`${scope}\``).join(' or ')}.`,
    `Gates: ${['rest', ...gates].map((gate) => `\`${gate}\``).join(', ')}.`,
    allowlists.length > 0 && `Allowlists: ${allowlists.map((list) => `\`${list}\``).join(', ')}.`,
    idempotency && `Idempotency-Key: ${idempotency}.`,
  ]
    .filter(Boolean)
    .join(' ')
}

function parametersOf(route: Route): Json[] {
  const { example, idempotency } = route
  const key = {
    name: 'Idempotency-Key',
    in: 'header',
    required: idempotency === 'required',
    description: 'Stable for one exact mutation; a repeat is answered, not executed.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
    example: 'order-4711-reminder',
  }
  return [
    ...fieldsOf(route.params, 'path', example.params),
    ...fieldsOf(route.query, 'query', example.query),
    ...(idempotency ? [key] : []),
  ]
}

export function fieldsOf(
  schema: z.ZodType | undefined,
  where: 'path' | 'query',
  examples: Json = {},
): Json[] {
  if (!schema) return []
  const { properties = {}, required = [] } = schemaOf(schema, 'input') as {
    properties?: Record<string, Json>
    required?: readonly string[]
  }
  return Object.entries(properties).map(([name, field]) => ({
    name,
    in: where,
    required: where === 'path' || required.includes(name),
    schema: field,
    ...(name in examples && { example: field.type === 'integer' ? Number(examples[name]) : examples[name] }),
  }))
}

/** Where a schema transforms, its `openapi` says what goes over the wire. */
export function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const made = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const { openapi } = (z.globalRegistry.get(zodSchema) ?? {}) as { openapi?: Json }
      if (!openapi) return
      for (const key of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, key)
      Object.assign(jsonSchema, openapi)
    },
  })
  const { $schema: _, ...rest } = made as Json
  return rest
}

/** Every code the operation can answer, grouped by status. */
function errorResponses(route: Route): Json {
  const byStatus = new Map<number, ErrorCode[]>()
  for (const [code, status] of errorsOf(route)) {
    const codes = byStatus.get(status) ?? []
    if (!codes.includes(code)) byStatus.set(status, [...codes, code])
  }
  return Object.fromEntries(
    [...byStatus].sort(([a], [b]) => a - b).map(([status, codes]) => [status, errorResponse(status, codes)]),
  )
}

function errorResponse(status: number, codes: readonly ErrorCode[]): Json {
  const retry = { 'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } } }
  return {
    description: codes.map((code) => `\`${code}\`: ${errors[code][1]}`).join('\n\n'),
    headers: status === 429 ? { ...headers, ...retry } : headers,
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/Error' },
        examples: Object.fromEntries(
          codes.map((code) => [code, { value: { error: errors[code][1], code } }]),
        ),
      },
    },
  }
}

/** What its needs imply, then what it adds itself. */
export function errorsOf(route: Route): [ErrorCode, number][] {
  const { gates = [], allowlists = [], idempotency, collision = 400, account, malformed } = route
  const implied: (ErrorCode | readonly [ErrorCode, number] | false | undefined)[] = [
    'invalid_request',
    (route.params || route.query || route.body) && 'invalid_text',
    account === 'extended' && 'account_scope_required',
    idempotency === 'required' && 'idempotency_key_required',
    idempotency && (['idempotency_collision', collision] as const),
    'invalid_key',
    'missing_scope',
    allowlists.length > 0 && 'not_allowlisted',
    account && account !== 'all' && 'account_unavailable',
    malformed,
    route.body && 'request_timeout',
    idempotency && 'operation_in_progress',
    route.body && 'payload_too_large',
    route.body && 'unsupported_media_type',
    'rate_limited',
    'internal',
    'rest_disabled',
    gates.length > 0 && 'feature_disabled',
    'schema_unavailable',
    'store_unavailable',
    route.effect === 'local' && 'outcome_ambiguous',
    ...(route.errors ?? []),
  ]
  return implied
    .filter((error) => error !== false && error !== undefined)
    .map((error) => (typeof error === 'string' ? [error, errors[error][0]] : [error[0], error[1]]))
}
