/** The OpenAPI 3.1 document, generated from the route list: what is listed is what is served. */
import type { z } from 'zod'
import { apiPrefix, contractVersion } from '../contract.ts'
import { type ErrorCode, errors, operatorCodes } from '../lib/errors.ts'
import { type Json, schemaOf, withDefaultsInWords } from '../lib/json-schema.ts'
import type { Route } from '../route.ts'
import { headings, introduction } from './openapi-texts.ts'
import { errorsOf } from './route-errors.ts'

/** Every code of the table, except operators' codes that no route lists. */
export function errorSchema(routes: readonly Route[]): Json {
  const listed = new Set(routes.flatMap(errorsOf).map(([code]) => code))
  const codes = (Object.keys(errors) as ErrorCode[]).filter(
    (code) => listed.has(code) || !operatorCodes.includes(code),
  )
  return {
    type: 'object',
    description: 'Why a request failed. Every response with a status of 400 or above has this form.',
    required: ['error', 'code'],
    additionalProperties: false,
    properties: {
      error: {
        type: 'string',
        description: 'What is wrong and what to do, as a sentence. It may change between versions.',
      },
      code: { type: 'string', enum: codes, description: 'Stable code for programs.' },
    },
  }
}

export function makeOpenApi(routes: readonly Route[]): Json {
  const paths: Record<string, Json> = {}
  const schemas: Json = { ApiError: errorSchema(routes) }
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route, schemas) }
  }
  const tags = [...new Set(routes.map(headingOf))]
  return {
    openapi: '3.1.0',
    info: {
      title: 'Parley',
      version: contractVersion,
      summary:
        'Outreach for messaging accounts: reading, sending without duplicates, a small CRM, campaigns.',
      description: introduction,
      contact: { name: 'The operator of this instance' },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: apiPrefix, description: 'This instance' }],
    security: [{ key: [] }],
    tags: tags.map((name) => ({ name, ...(headings[name] && { description: headings[name] }) })),
    paths,
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'An API key, svc_live_…, of one workspace.' },
      },
      headers: namedHeaders,
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
    },
  }
}

export const refusalSchema = { $ref: '#/components/schemas/ApiError' }

const integer = (description: string, required = true) => ({
  description,
  required,
  schema: { type: 'integer', minimum: 0 },
})
const onEvery = {
  'X-RateLimit-Limit': integer('Requests allowed in any 60 seconds.'),
  'X-RateLimit-Remaining': integer('Requests left in the window.'),
  'X-RateLimit-Reset': integer('Unix time in seconds when the oldest counted request leaves the window.'),
  'X-Request-Id': {
    description: 'Id of this request in the log.',
    required: true,
    schema: { type: 'string' },
  },
}
const onKeyed = {
  'Idempotent-Replayed': {
    description: '`true` if this is the stored response of an earlier request with this key.',
    schema: { type: 'string', enum: ['true'] },
  },
  'X-Operation-Id': {
    description: 'Id of the operation in the ledger, if there is one.',
    schema: { type: 'string', format: 'uuid' },
  },
}
const namedHeaders = {
  ...onEvery,
  ...onKeyed,
  'Retry-After': integer('Seconds to wait before the next attempt.', false),
  Allow: { description: 'The methods that this address supports.', schema: { type: 'string' } },
}

type HeaderName = keyof typeof namedHeaders

function headersOf(route: Route, ...more: readonly HeaderName[]): Json {
  const names = [...Object.keys(onEvery), ...(route.idempotency ? Object.keys(onKeyed) : []), ...more]
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

function operation(route: Route, schemas: Json): Json {
  const { name, summary, description, example, idempotency, statuses = [200] } = route
  const files = route.bytes ?? (route.saved && [route.saved])
  const success = {
    description: route.response.description ?? summary,
    headers: headersOf(route),
    content: files
      ? Object.fromEntries(files.map((type) => [type, { schema: { type: 'string', format: 'binary' } }]))
      : {
          'application/json': {
            schema: schemaOf(route.response, 'output', schemas),
            example: example.response,
          },
        },
  }
  const replay = {
    ...success,
    description: statuses.includes(200)
      ? `${success.description} A repeat with the same key returns it again.`
      : 'The stored answer of a completed request with the same key.',
  }
  return {
    operationId: name,
    tags: [headingOf(route)],
    summary,
    description: [description, needsSentence(route)].filter(Boolean).join('\n\n'),
    parameters: parametersOf(route, schemas),
    ...(route.body && {
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: bodySchema(route.body, schemas), example: example.body },
          ...(route.form && { 'multipart/form-data': { schema: formSchema(route.form, schemas) } }),
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

function bodySchema(body: z.ZodType, schemas: Json): Json {
  const named: Json = {}
  const schema = schemaOf(body, 'input', named)
  for (const [name, each] of Object.entries(named)) schemas[name] = withDefaultsInWords(each as Json)
  return withDefaultsInWords(schema)
}

/** The field `attachments` carries the one file. */
function formSchema(form: z.ZodType, schemas: Json): Json {
  const schema = bodySchema(form, schemas)
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

/** Scopes, gates and allowlists in words, so that the reference explains refusals. */
function needsSentence({
  scopes,
  gates = [],
  allowlists = [],
  idempotency,
  errors: own = [],
}: Route): string {
  const varies = idempotency === 'optional' && own.includes('idempotency_key_required')
  return [
    `Scope: ${scopes.map((scope) => `\`${scope}\``).join(' or ')}.`,
    `Gates: ${['rest', ...gates].map((gate) => `\`${gate}\``).join(', ')}.`,
    allowlists.length > 0 && `Allowlists: ${allowlists.map((list) => `\`${list}\``).join(', ')}.`,
    idempotency &&
      `Idempotency-Key: ${varies ? 'required for some bodies, as described above' : idempotency}.`,
  ]
    .filter(Boolean)
    .join(' ')
}

export const exampleKey = 'order-4711-reminder'

function parametersOf(route: Route, schemas: Json): Json[] {
  const { example, idempotency } = route
  const key = {
    name: 'Idempotency-Key',
    in: 'header',
    required: idempotency === 'required',
    description:
      'Identifies one change. Repeating the key with the same request returns the first result and executes nothing.',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]+$' },
    example: exampleKey,
  }
  return [
    ...fieldsOf(route.params, { where: 'path', schemas, examples: example.params }),
    ...fieldsOf(route.query, { where: 'query', schemas, examples: example.query }),
    ...(idempotency ? [key] : []),
    ...(route.bytes ? [range] : []),
  ]
}

const range = {
  name: 'Range',
  in: 'header',
  required: false,
  description: 'One range of bytes, such as `bytes=0-99`, returns 206. Several ranges return the whole file.',
  schema: { type: 'string' },
}

interface Fields {
  readonly where: 'path' | 'query'
  readonly schemas: Json
  readonly examples?: Readonly<Record<string, string>> | undefined
}

export function fieldsOf(schema: z.ZodType | undefined, { where, schemas, examples = {} }: Fields): Json[] {
  if (!schema) return []
  const { properties = {}, required = [] } = schemaOf(schema, 'input', schemas) as {
    properties?: Record<string, Json>
    required?: readonly string[]
  }
  return Object.entries(properties).map(([name, { description, ...field }]) => ({
    name,
    in: where,
    ...(description !== undefined && { description }),
    required: where === 'path' || required.includes(name),
    schema: field,
    ...(name in examples && { example: field.type === 'integer' ? Number(examples[name]) : examples[name] }),
  }))
}

/** Every code the operation can answer, grouped by status. */
function errorResponses(route: Route): Json {
  const byStatus = new Map<number, ErrorCode[]>()
  for (const [code, status] of errorsOf(route)) {
    const codes = byStatus.get(status) ?? []
    if (!codes.includes(code)) byStatus.set(status, [...codes, code])
  }
  return Object.fromEntries(
    [...byStatus]
      .sort(([a], [b]) => a - b)
      .map(([status, codes]) => [status, errorResponse(route, status, codes)]),
  )
}

function errorResponse(route: Route, status: number, codes: readonly ErrorCode[]): Json {
  const waits = codes.some((code) => code === 'rate_limited' || code === 'flood_wait')
  const more: HeaderName[] = [
    ...(waits ? ['Retry-After' as const] : []),
    ...(status === 405 ? ['Allow' as const] : []),
  ]
  return {
    description: codes.map((code) => `\`${code}\`: ${errors[code][1]}`).join('\n\n'),
    headers: headersOf(route, ...more),
    content: {
      'application/json': {
        schema: refusalSchema,
        examples: Object.fromEntries(
          codes.map((code) => [code, { value: { error: errors[code][1], code } }]),
        ),
      },
    },
  }
}
