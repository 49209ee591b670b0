/** The document as generators read it: everything has a name, a description and its limits. */
import { describe, expect, test } from 'vitest'
import { routes } from '../src/lists/routes.ts'
import { makeOpenApi } from '../src/openapi/openapi.ts'
import { findUndocumented } from './harness/documented.ts'

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly additionalProperties?: unknown
  readonly oneOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly discriminator?: { readonly propertyName: string; readonly mapping: Record<string, string> }
  readonly format?: string
  readonly pattern?: string
  readonly maximum?: number
  readonly maxLength?: number
  readonly maxItems?: number
  readonly minProperties?: number
  readonly const?: unknown
  readonly not?: Schema
  readonly allOf?: readonly Schema[]
}

interface Response {
  readonly headers: Readonly<Record<string, unknown>>
  readonly content: {
    readonly 'application/json'?: {
      readonly schema: Schema
      readonly examples?: Readonly<Record<string, unknown>>
    }
  }
}

interface Operation {
  readonly operationId: string
  readonly description: string
  readonly tags: readonly string[]
  readonly parameters: readonly {
    readonly name: string
    readonly description?: string
    readonly required?: boolean
    readonly schema: Schema
  }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
  readonly responses: Readonly<Record<string, Response>>
}

const document = makeOpenApi(routes) as unknown as {
  readonly tags: readonly { readonly name: string; readonly description?: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}
const operations = Object.values(document.paths).flatMap((path) => Object.values(path))
const { schemas } = document.components
const named = (name: string): Operation =>
  operations.find(({ operationId }) => operationId === name) as Operation

/** Whether the document allows these properties to be missing, and those to be given: ignores formats and types. */
function fits(schema: Schema | boolean, value: unknown): boolean {
  if (typeof schema === 'boolean') return schema
  const { required = [], properties = {}, not, allOf = [], anyOf } = schema
  if (schema.const !== undefined && schema.const !== value) return false
  if (Array.isArray(value)) return value.length <= (schema.maxItems ?? value.length)
  const given = Object(value) as Record<string, unknown>
  if (required.some((name) => !(name in given))) return false
  for (const [name, each] of Object.entries(properties)) {
    if (name in given && !fits(each, given[name])) return false
  }
  if (not && fits(not, value)) return false
  return allOf.every((each) => fits(each, value)) && (anyOf?.some((each) => fits(each, value)) ?? true)
}

/** Every schema, and its path. */
function* walk(schema: Schema, where: string): Generator<[where: string, schema: Schema]> {
  yield [where, schema]
  for (const [name, each] of Object.entries(schema.properties ?? {})) yield* walk(each, `${where}.${name}`)
  if (schema.items) yield* walk(schema.items, `${where}[]`)
  for (const each of [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])]) yield* walk(each, where)
}

/** The answers that are not JSON. */
function isFile(operationId: string, status: string): boolean {
  return ['download_attachment', 'export_person'].includes(operationId) && Number(status) < 400
}

function* everySchema(): Generator<[where: string, schema: Schema]> {
  for (const [name, schema] of Object.entries(schemas)) yield* walk(schema, name)
  for (const { operationId, requestBody, responses } of operations) {
    for (const { schema } of Object.values(requestBody?.content ?? {})) yield* walk(schema, operationId)
    for (const [status, response] of Object.entries(responses)) {
      const { schema } = response.content['application/json'] ?? {}
      if (schema) yield* walk(schema, `${operationId} ${status}`)
    }
  }
}

describe('an answer in a test', () => {
  const headers = { 'x-request-id': 'r', 'content-type': 'application/json' }
  const always = { 'x-ratelimit-limit': '9', 'x-ratelimit-remaining': '8', 'x-ratelimit-reset': '7' }
  const find = (path: string, status: number, { code, ...more }: Record<string, string> = {}) =>
    findUndocumented('GET', path, {
      status,
      headers: new Headers({ ...headers, ...always, 'cache-control': 'no-store', ...more }),
      body: { code, error: 'A sentence.' } as { code?: unknown },
    })

  test('is refused with a status, a code, a header or a property that the document does not name', () => {
    const page = { chats: [], next_cursor: null, has_more: false }
    const answer = (body: object) =>
      findUndocumented('GET', '/chats?limit=1', { status: 200, headers: new Headers(headers), body })
    expect(answer(page)).toBeUndefined()
    expect(answer({ ...page, surprise: 1 })).toContain('property')
    expect(answer({ chats: [] })).toContain('shape')
    expect(find('/chats', 400, { code: 'invalid_cursor' })).toBeUndefined()
    expect(find('/chats', 418)).toContain('status')
    expect(find('/chats', 400, { code: 'branching_disabled' })).toContain('branching_disabled')
    expect(find('/chats', 200, { 'x-surprise': '1' })).toContain('x-surprise')
    expect(find('/chats/platform:chat:1/messages', 200, { 'retry-after': '1' })).toContain('retry-after')
    expect(find('/nothing', 418)).toBeUndefined()
  })
})

describe('openapi.json', () => {
  test('every property and every parameter has a description', () => {
    const without = [...everySchema()].flatMap(([where, { properties = {} }]) =>
      Object.entries(properties)
        .filter(([, schema]) => !schema.description && !schema.$ref)
        .map(([name]) => `${where}.${name}`),
    )
    expect(without).toEqual([])
    const parameters = operations.flatMap(({ operationId, parameters }) =>
      parameters.filter(({ description }) => !description).map(({ name }) => `${operationId} ${name}`),
    )
    expect(parameters).toEqual([])
  })

  test('every component and every tag has a description, and every tag is listed', () => {
    expect(Object.entries(schemas).filter(([, { description }]) => !description)).toEqual([])
    expect(document.tags.filter(({ description }) => !description)).toEqual([])
    const used = new Set(operations.flatMap(({ tags }) => tags))
    expect([...used].sort()).toEqual(document.tags.map(({ name }) => name).sort())
  })

  test('every named object is a component: every object of every answer and every JSON body', () => {
    for (const { operationId, requestBody, responses } of operations) {
      const body = requestBody?.content['application/json']?.schema
      if (body) expect([operationId, body.$ref]).toEqual([operationId, expect.any(String)])
      for (const [status, response] of Object.entries(responses)) {
        if (isFile(operationId, status)) continue
        expect(response.content['application/json']?.schema.$ref).toMatch(/^#\/components\/schemas\/\w+$/)
      }
    }
    const inside = Object.entries(schemas).flatMap(([name, schema]) =>
      [...walk(schema, name)]
        .filter(([where, each]) => where !== name && each.properties)
        .map(([where]) => where),
    )
    expect(inside).toEqual([])
    expect(Object.keys(schemas)).toEqual(
      expect.arrayContaining(['ApiError', 'Chat', 'Message', 'Contact', 'Event', 'Stage', 'Column']),
    )
    expect(schemas).not.toHaveProperty('Error')
  })

  test('answers allow new fields, bodies do not', () => {
    for (const { operationId, requestBody, responses } of operations) {
      for (const [status, response] of Object.entries(responses)) {
        if (isFile(operationId, status)) continue
        const name = response.content['application/json']?.schema.$ref?.split('/').at(-1) ?? ''
        if (Number(status) >= 400) expect(name).toBe('ApiError')
        else expect(schemas[name]).not.toHaveProperty('additionalProperties', false)
      }
      const name = requestBody?.content['application/json']?.schema.$ref?.split('/').at(-1)
      if (name) expect(schemas[name]).toHaveProperty('additionalProperties', false)
    }
  })

  test('numbers that count are integers', () => {
    const numbers = [...everySchema()].filter(([, { type }]) => type === 'number').map(([where]) => where)
    expect([...new Set(numbers)].filter((where) => !/\.(reply_rate|wait_hours)$/.test(where))).toEqual([])
  })

  test('events are discriminated by their type', () => {
    const event = schemas.Event
    expect(event?.discriminator?.propertyName).toBe('type')
    const mapped = Object.values(event?.discriminator?.mapping ?? {})
    expect(event?.oneOf?.map(({ $ref }) => $ref)).toEqual(mapped)
    for (const ref of mapped) expect(schemas).toHaveProperty(ref.split('/').at(-1) ?? '')
  })

  test('moments have a format, and a description says where a bare date is accepted', () => {
    const moments = [...everySchema()].filter(([where]) => /(_at|timestamp|next_before)$/.test(where))
    expect(moments.length).toBeGreaterThan(10)
    const given = 'CampaignRequest.scheduled_at'
    for (const [where, { format }] of moments) {
      if (where !== given) expect([where, format]).toEqual([where, 'date-time'])
    }
    const before = named('list_messages').parameters.find(({ name }) => name === 'before')
    const scheduled = moments.find(([where]) => where === given)?.[1]
    const accepts = (schema: Schema | undefined, value: string) =>
      schema?.type === 'string' && new RegExp(schema.pattern ?? '', 'u').test(value)
    for (const schema of [before?.schema, scheduled]) {
      expect(accepts(schema, '2026-11-16T09:00:00+01:00')).toBe(true)
      expect(accepts(schema, '2026-11-16T09:00:00')).toBe(true)
      expect(accepts(schema, '2026-02-29T09:00:00')).toBe(false)
    }
    expect([accepts(before?.schema, '2026-11-16'), accepts(scheduled, '2026-11-16')]).toEqual([true, false])
  })

  test('no component has a name that generators give to parts of an operation', () => {
    const suffixes = ['Result', 'Response', 'Responses', 'Data', 'Error', 'Errors', 'Body', 'Params']
    const made = operations.flatMap(({ operationId }) => {
      const name = operationId.replaceAll(/(?:^|_)(\w)/g, (_, first: string) => first.toUpperCase())
      return suffixes.map((suffix) => name + suffix)
    })
    expect(Object.keys(schemas).filter((name) => made.includes(name))).toEqual([])
  })

  test('what a caller gives has a type, and no default that a generator would take for a given value', () => {
    const open = ['type', '$ref', 'const', 'enum', 'oneOf', 'anyOf'] as const
    const bodies = operations.flatMap(({ operationId, requestBody }) =>
      Object.values(requestBody?.content ?? {}).flatMap(({ schema }) => [...walk(schema, operationId)]),
    )
    const given = [...everySchema(), ...bodies].filter(
      ([where]) => /Request\b/.test(where) || /^[a-z_]+\./.test(where),
    )
    expect(given.length).toBeGreaterThan(30)
    for (const [where, schema] of given) {
      expect([where, 'default' in schema]).toEqual([where, false])
      expect([where, open.some((each) => each in schema)]).toEqual([where, true])
      // A choice with nothing but formats is `unknown` to generators.
      const choices = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]
      expect([where, choices.filter((each) => !open.some((one) => one in each))]).toEqual([where, []])
    }
    expect(schemas.Me?.properties?.capabilities?.additionalProperties).toEqual({ type: 'boolean' })
    expect(schemas.SearchRequest?.properties?.limit?.description).toContain('Default: `50`.')
  })

  test('an error is exactly a sentence and a code', () => {
    const { required, additionalProperties, properties = {} } = schemas.ApiError ?? {}
    expect([required, additionalProperties]).toEqual([['error', 'code'], false])
    expect(Object.keys(properties)).toEqual(['error', 'code'])
  })

  test('the key of a campaign is optional: the body decides', () => {
    const key = named('create_campaign').parameters.find(({ name }) => name === 'Idempotency-Key')
    expect(key?.required).toBe(false)
    expect(named('create_campaign').responses['400']?.content['application/json']?.examples).toHaveProperty(
      'idempotency_key_required',
    )
  })

  const recipients = [{ account_id: 'a', chat_id: 'platform:chat:1' }]
  const contacts = [{ identifier: '@ada' }]
  const audience = { account_id: 'a', audience_ref: 'new', message_text: 'Hi' }
  test.each([
    ['create_campaign', { message_text: 'Hi' }, false],
    ['create_campaign', { message_text: 'Hi', recipients }, true],
    ['create_campaign', { message_text: 'Hi', recipients, contacts, account_id: 'a' }, false],
    ['create_campaign', { message_text: 'Hi', recipients, account_id: 'a' }, false],
    ['create_campaign', { message_text: 'Hi', contacts }, false],
    ['create_campaign', { message_text: 'Hi', contacts, account_id: 'a' }, true],
    ['create_campaign', { message_text: 'Hi', contacts, account_pool: ['a'] }, true],
    ['create_campaign', { message_text: 'Hi', contacts, account_id: 'a', account_pool: ['a'] }, false],
    ['create_broadcast', { ...audience, audience_type: 'stage' }, true],
    ['create_broadcast', { ...audience, audience_type: 'stage', column_value: 'Red' }, false],
    ['create_broadcast', { ...audience, audience_type: 'column' }, false],
    ['create_broadcast', { ...audience, audience_type: 'column', column_value: 'Red' }, true],
    ['search_messages', {}, false],
    ['search_messages', { account_id: 'a', limit: 5 }, false],
    ['search_messages', { people: [], keywords: [] }, false],
    ['search_messages', { people: ['Ada'] }, true],
    ['search_messages', { time_after: '2026-11-15T09:30:00' }, true],
  ])('what is required together: %s %j is accepted: %s', (name, body, taken) => {
    const route = routes.find((each) => each.name === name)
    expect(route?.body?.safeParse(body).success).toBe(taken)
    const { $ref } = named(name).requestBody?.content['application/json']?.schema ?? {}
    expect(fits(schemas[$ref?.split('/').at(-1) ?? ''] ?? {}, body)).toBe(taken)
  })

  test('a webhook update requires a field to change', () => {
    expect(schemas.WebhookUpdate?.minProperties).toBe(1)
  })

  test('sends document unknown outcomes, with every header of a repeat', () => {
    for (const name of ['send_message', 'start_chat', 'set_read_state']) {
      const { responses } = named(name)
      for (const status of ['409', '503']) {
        expect(responses[status]?.content['application/json']?.examples).toHaveProperty('outcome_ambiguous')
        expect(Object.keys(responses[status]?.headers ?? {})).toEqual(
          expect.arrayContaining(['X-Operation-Id', 'Idempotent-Replayed']),
        )
      }
    }
    expect(named('send_message').responses['503']?.headers).toHaveProperty('Retry-After')
    expect(named('list_messages').responses['503']?.headers).toHaveProperty('Retry-After')
  })

  test('405 with Allow, 429 with Retry-After and 431 are on every operation', () => {
    for (const { responses } of operations) {
      expect(responses['405']?.headers).toHaveProperty('Allow')
      expect(responses['429']?.headers).toHaveProperty('Retry-After')
      expect(responses['431']).toBeDefined()
    }
  })

  test('an operationId never changes', () => {
    expect(operations.map(({ operationId }) => operationId).sort()).toEqual(
      routes.map(({ name }) => name).sort(),
    )
  })
})
