import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { parse } from './parse.ts'

describe('a long list', () => {
  let looked = 0
  const item = z.strictObject({ identifier: z.string(), name: z.string().optional() }).transform((value) => {
    looked++
    return value
  })
  const schema = z.strictObject({
    text: z.string(),
    contacts: z.array(item).min(1).max(5_000).optional(),
    more: z.array(item).default([]),
  })
  const many = (count: number) => Array.from({ length: count }, (_, n) => ({ identifier: `@person_${n}` }))
  const read = (value: unknown) => {
    looked = 0
    return parse(schema, value)
  }

  test('is read whole if it has no fault, also where it is optional or has a default', () => {
    const value = { text: 'x', contacts: many(5_000), more: many(300) }
    expect(read(value)).toEqual(value)
    expect(read({ text: 'x', contacts: many(2) })).toEqual({ text: 'x', contacts: many(2), more: [] })
  })

  test('is not read beyond its first fault, which is named', () => {
    const contacts = [...many(200), { identifier: '@x', odd: 1 }, ...many(4_000)]
    expect(() => read({ text: 'x', contacts })).toThrow('Unknown property in contacts[200]: "odd".')
    expect(looked).toBeLessThan(500)
    const wrong = [...many(150), {}, ...many(4_000)]
    expect(() => read({ text: 'x', more: wrong })).toThrow('more[150].identifier is required.')
    expect(looked).toBeLessThan(400)
  })

  test('is refused in the words of a short one: a misspelling comes first, and then its length', () => {
    const odd = Array.from({ length: 4_000 }, () => ({ identifier: 7 }))
    expect(() => read({ text: 'x', contacts: odd, nmae: 1 })).toThrow('Unknown property: "nmae".')
    expect(() => read({ text: 'x', contacts: many(5_001) })).toThrow('contacts must have at most 5000 items.')
    expect(() => read({ contacts: odd })).toThrow('text is required.')
  })
})
