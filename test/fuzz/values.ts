/** Values made from the document's schemas: most are valid, some are just invalid, a few are hostile. */
import type { Random } from '../faults/random.ts'

export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly format?: string
  readonly pattern?: string
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxItems?: number
  readonly examples?: readonly unknown[]
}

/** What is known to exist, by the name of the property or parameter that takes it. */
export type Known = ReadonlyMap<string, readonly unknown[]>

export interface Maker {
  readonly random: Random
  readonly schemas: Readonly<Record<string, Schema>>
  readonly known: Known
}

const words = [
  'proposal',
  'Ines García',
  'stop',
  '-not',
  '"a phrase"',
  'Straße',
  'ﬁne',
  'a',
  '0',
  'acc_',
  '日本',
  '😀',
]
const hostile: readonly unknown[] = [
  '',
  ' ',
  '\u0000',
  '\ud800',
  "'; drop table keys; --",
  '%00',
  '../../etc/passwd',
  'x'.repeat(5_000),
  '‮txet',
  'NaN',
  '1e999',
  null,
  true,
  -1,
  0.5,
  2 ** 53,
  1e308,
  [],
  {},
  [[[[[]]]]],
  { __proto__: null, constructor: { prototype: 1 } },
  ['a', 1, null],
]

/** A value for the schema; the name says which known values would be valid. */
export function makeValue(maker: Maker, schema: Schema, name = ''): unknown {
  const { random, known, schemas } = maker
  if (random.chance(0.04)) return random.pick(hostile)
  const fitting = known.get(name)
  if (fitting && fitting.length > 0 && random.chance(0.85)) return random.pick(fitting)
  if (schema.$ref) return makeValue(maker, schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}, name)
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return random.pick(schema.enum)
  const choices = schema.oneOf ?? schema.anyOf
  if (choices)
    return makeValue(
      maker,
      { ...schema, anyOf: undefined, oneOf: undefined, ...random.pick(choices) } as Schema,
      name,
    )
  if (schema.examples && random.chance(0.2)) return random.pick(schema.examples)
  return makeTyped(maker, schema)
}

function makeTyped(maker: Maker, schema: Schema): unknown {
  const { random } = maker
  const types = [schema.type ?? ['string', 'integer', 'boolean', 'null', 'array', 'object']].flat()
  switch (random.pick(types)) {
    case 'integer':
      return makeNumber(random, schema)
    case 'number':
      return random.chance(0.5) ? makeNumber(random, schema) : random.between(-1e6, 1e6)
    case 'boolean':
      return random.chance(0.5)
    case 'null':
      return null
    case 'array':
      return Array.from({ length: random.whole(Math.min(4, schema.maxItems ?? 4) + 1) }, () =>
        makeValue(maker, schema.items ?? {}),
      )
    case 'object':
      return makeObject(maker, schema)
    default:
      return makeText(random, schema)
  }
}

function makeNumber(random: Random, { minimum = -5, maximum = 1_000 }: Schema): number {
  const edges = [minimum, maximum, minimum - 1, maximum + 1, 0]
  return random.chance(0.3)
    ? random.pick(edges)
    : minimum + random.whole(Math.min(maximum - minimum, 1_000) + 1)
}

export function makeObject(
  maker: Maker,
  { properties = {}, required = [] }: Schema,
): Record<string, unknown> {
  const { random } = maker
  const made: Record<string, unknown> = {}
  for (const [name, schema] of Object.entries(properties)) {
    const share = required.includes(name)
      ? 0.97
      : name === 'account_id'
        ? 0.85
        : name === 'cursor'
          ? 0.1
          : 0.3
    if (random.chance(share)) made[name] = makeValue(maker, schema, name)
  }
  if (random.chance(0.03)) made[random.pick(['extra', '__proto__x', 'acount_id', ''])] = random.pick(hostile)
  return made
}

function makeText(random: Random, { format, pattern, minLength = 0, maxLength = 200 }: Schema): string {
  if (pattern?.includes('(?!0000)')) {
    const time = makeTime(random, random.chance(0.2) ? 'date' : 'date-time')
    return random.chance(0.3) ? time.replace(/z$/i, '') : time
  }
  if (format === 'date-time' || format === 'date') return makeTime(random, format)
  if (format === 'uuid')
    return '0199a1f0-0000-7000-8000-00000000000'.concat(random.pick([...'0123456789abcdefg']))
  const length = random.chance(0.1)
    ? random.pick([minLength, maxLength, maxLength + 1, minLength - 1])
    : undefined
  if (length !== undefined) return 'x'.repeat(Math.max(0, Math.min(length, 10_000)))
  return Array.from({ length: 1 + random.whole(3) }, () => random.pick(words)).join(
    random.pick([' ', ', ', '\n']),
  )
}

function makeTime(random: Random, format: string): string {
  const at = new Date(Date.UTC(2026, 10, 15) + random.between(-400, 30) * 86_400_000).toISOString()
  if (format === 'date') return at.slice(0, 10)
  const forms = [
    at,
    at.toLowerCase(),
    at.replace('Z', '+02:00'),
    at.replace(/\.\d+Z/, 'Z'),
    at.replace('Z', '123456Z'),
  ]
  return random.pick([
    ...forms,
    '2016-12-31T23:59:60Z',
    '0000-01-01T00:00:00Z',
    '9999-12-31T23:59:59.999Z',
    at.slice(0, 13),
  ])
}
