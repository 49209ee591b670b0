/** Requests made from the document: an operation, its parameters and body, any of the keys, and now and then a fault. */

import { routes } from '../../src/lists/routes.ts'
import { makeOpenApi } from '../../src/openapi/openapi.ts'
import type { Random } from '../faults/random.ts'
import { type Known, type Maker, makeObject, makeValue, type Schema } from './values.ts'

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly schema: Schema
}

interface Operation {
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

const document = makeOpenApi(routes) as unknown as Document

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
)

export interface FuzzRequest {
  readonly method: string
  /** With its query, below the API's prefix. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer | undefined
}

interface Chances {
  readonly random: Random
  readonly known: Known
  /** Undefined: none is sent. */
  readonly authorization: string | undefined
}

export function makeRequest({ random, known, authorization }: Chances): FuzzRequest {
  const maker: Maker = { random, known, schemas: document.components.schemas }
  const { path, method, operation } = random.pick(operations)
  const { parameters = [], requestBody } = operation
  const headers: Record<string, string> = {}
  if (authorization !== undefined) headers.authorization = authorization
  if (parameters.some(({ in: place }) => place === 'header') && random.chance(0.96)) {
    headers['idempotency-key'] = makeKey(random)
  }
  if (random.chance(0.03))
    headers[random.pick(['x-request-id', 'accept', 'range', 'if-none-match', 'expect'])] = random.pick([
      '*',
      '"x"',
      'text/html',
      'bytes=0-1',
      '100-continue',
    ])
  const address = `${fillPath(maker, path, parameters)}${makeQuery(maker, parameters)}`
  const given = random.chance(0.03)
    ? random.pick(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'PROPFIND'])
    : method
  const body = ['GET', 'HEAD'].includes(given) ? undefined : makeBody(maker, requestBody, headers)
  return { method: given, path: random.chance(0.02) ? bend(random, address) : address, headers, body }
}

function makeKey(random: Random): string {
  const odd = ['', '"quoted"', 'x'.repeat(256), 'ümlaut', 'a, b', ' ', '"open']
  if (random.chance(0.04)) return Buffer.from(random.pick(odd)).toString('latin1')
  return random.chance(0.3) ? `again-${random.whole(40)}` : `once-${random.whole(2 ** 30)}`
}

function fillPath(maker: Maker, path: string, parameters: readonly Parameter[]): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name) => {
    const schema = parameters.find((parameter) => parameter.name === name)?.schema ?? {}
    return encode(makeValue(maker, schema, name)) || '%20'
  })
}

/** A cursor is valid for one list, so most of them are refused. */
const shares: Readonly<Record<string, number>> = { account_id: 0.85, cursor: 0.12, column_value: 0.15 }

function makeQuery(maker: Maker, parameters: readonly Parameter[]): string {
  const { random } = maker
  const pairs = parameters
    .filter(
      ({ in: place, name, required }) =>
        place === 'query' && random.chance(required ? 0.97 : (shares[name] ?? 0.35)),
    )
    .flatMap(({ name, schema }) => {
      const pair = `${name}=${encode(makeValue(maker, schema, name))}`
      return random.chance(0.01) ? [pair, pair] : [pair]
    })
  if (random.chance(0.02))
    pairs.push(random.pick(['acount_id=x', 'key=svc_live_x', 'a[b]=1', '=', '%zz=1', '&&']))
  return pairs.length > 0 ? `?${pairs.join('&')}` : ''
}

function encode(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return encodeURIComponent(text.toWellFormed())
}

function bend(random: Random, address: string): string {
  return random.pick([
    `${address}/`,
    `/${address}`,
    address.toUpperCase(),
    `${address}%zz`,
    address.replace('/', '/%2e/'),
    '/nothing',
    '/',
  ])
}

function makeBody(
  maker: Maker,
  requestBody: Operation['requestBody'],
  headers: Record<string, string>,
): string | Buffer | undefined {
  const { random } = maker
  const content = requestBody?.content ?? {}
  const type = Object.keys(content).length > 0 ? random.pick(Object.keys(content)) : undefined
  if (type === undefined) return random.chance(0.9) ? undefined : '{}'
  const schema = content[type]?.schema ?? {}
  if (type === 'multipart/form-data') return makeForm(maker, schema, headers)
  headers['content-type'] = random.chance(0.97)
    ? type
    : random.pick(['text/plain', 'application/json; charset=latin1', 'application/xml', ''])
  const name = schema.$ref?.split('/').at(-1) ?? ''
  const value = random.chance(0.97) ? makeObject(maker, maker.schemas[name] ?? schema) : makeValue(maker, {})
  const text = JSON.stringify(value)
  return random.chance(0.03) ? spoil(random, text) : text
}

function spoil(random: Random, text: string): string | Buffer {
  const at = random.whole(text.length)
  return random.pick<string | Buffer>([
    text.slice(0, at),
    `${text}${text}`,
    `${text.slice(0, at)}\u0000${text.slice(at)}`,
    Buffer.from(`${text.slice(0, at)}\xff\xfe${text.slice(at)}`, 'latin1'),
    `${'['.repeat(40)}${']'.repeat(40)}`,
    '',
    '\ufeff{}',
    text.replace('{', '{"account_id":"a","account_id":"b",'),
  ])
}

function makeForm(maker: Maker, schema: Schema, headers: Record<string, string>): Buffer {
  const { random } = maker
  const boundary = random.pick(['b', 'a-longer-boundary', '----x'])
  headers['content-type'] = `multipart/form-data; boundary=${random.chance(0.97) ? boundary : 'another'}`
  const { attachments: _, ...fields } = makeObject(maker, schema)
  const parts = Object.entries(fields).map(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text.toWellFormed()}\r\n`
  })
  const type = random.pick([
    'text/plain',
    'image/png',
    'multipart/mixed',
    'nonsense',
    'text/plain; charset=utf-8',
  ])
  const file = `--${boundary}\r\nContent-Disposition: form-data; name="attachments"; filename="${random.pick(['a.txt', '', 'ü.png', '../x'])}"\r\nContent-Type: ${type}\r\n\r\n${'z'.repeat(random.whole(2_000))}\r\n`
  const files = random.chance(0.9) ? [file] : random.pick([[], [file, file]])
  const text = [...parts, ...files, `--${boundary}--\r\n`].join('')
  return Buffer.from(random.chance(0.03) ? text.slice(0, random.whole(text.length)) : text)
}
