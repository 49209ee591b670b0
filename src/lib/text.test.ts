import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ApiError } from './errors.ts'
import {
  depthMax,
  isBlank,
  isWellFormed,
  lengthOf,
  parseJson,
  quote,
  requireWellFormed,
  toWellFormed,
} from './text.ts'

const sound = fc.string({ unit: 'binary' }).filter(isWellFormed)

function codeOf(work: () => unknown): string | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError)
    return (error as ApiError).code
  }
}

function parse(text: string): unknown {
  return parseJson(Buffer.from(text))
}

describe('length', () => {
  test('counts code points', () => {
    expect(lengthOf('')).toBe(0)
    expect(lengthOf('😀')).toBe(1)
    expect(lengthOf('e\u0301')).toBe(2)
    expect(lengthOf('👩‍👩‍👧')).toBe(5)
    fc.assert(
      fc.property(sound, (text) => {
        expect(lengthOf(text)).toBe([...text].length)
      }),
    )
  })
})

describe('isWellFormed', () => {
  test('refuses NUL and lone surrogates, wherever they are', () => {
    for (const bad of ['\0', 'a\0b', '\ud800', '\udc00', 'a\ud83d', '\udc00\ud800']) {
      expect(isWellFormed(bad)).toBe(false)
      for (const value of [bad, [bad], { a: bad }, { [bad]: 1 }, { a: [{ b: [bad] }] }]) {
        expect(codeOf(() => requireWellFormed(value))).toBe('invalid_text')
      }
    }
    for (const good of ['', '😀', '\u202e', '\u200b', '\x1b', '\ufffd', '\uffff'])
      expect(isWellFormed(good)).toBe(true)
  })

  test('blank means white space of any alphabet', () => {
    for (const blank of ['', ' ', '\t\r\n', '\u00a0', '\u3000', '\ufeff']) expect(isBlank(blank)).toBe(true)
    for (const text of ['a', ' a ', '\u200b', '😀']) expect(isBlank(text)).toBe(false)
  })
})

describe('JSON', () => {
  test('is parsed like JSON.parse whenever it is well-formed', () => {
    const value = fc
      .jsonValue({ maxDepth: 6 })
      .filter((each) => codeOf(() => requireWellFormed(each)) === undefined)
    fc.assert(
      fc.property(value, fc.constantFrom(undefined, 1, '\t'), (each, space) => {
        const text = JSON.stringify(each, null, space)
        if (text.includes('"__proto__"')) return
        expect(parse(text)).toEqual(JSON.parse(text))
      }),
      { numRuns: 1_000 },
    )
  })

  test('never throws anything but a refusal, for any input', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      '"',
      '\\',
      ':',
      ',',
      '\\u',
      'd800',
      '0',
      '1e400',
      'a',
      ' ',
      '\n',
      '\0',
      '__proto__',
    )
    const texts = fc.oneof(
      fc.array(pieces).map((all) => all.join('')),
      fc.string({ unit: 'binary' }),
    )
    fc.assert(
      fc.property(texts, (text) => {
        const code = codeOf(() => parse(text))
        if (code === undefined) expect(parse(text)).toEqual(JSON.parse(text))
        else expect(['invalid_request', 'invalid_text']).toContain(code)
      }),
      { numRuns: 5_000 },
    )
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        expect([undefined, 'invalid_request', 'invalid_text']).toContain(codeOf(() => parseJson(bytes)))
      }),
      { numRuns: 2_000 },
    )
  })

  test(`may be ${depthMax} levels deep and no deeper`, () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
    expect(codeOf(() => parse(nested(depthMax)))).toBeUndefined()
    expect(codeOf(() => parse(nested(depthMax + 1)))).toBe('invalid_request')
    expect(codeOf(() => parse(`"${'['.repeat(1000)}"`))).toBeUndefined()
    expect(codeOf(() => parse(`{"${'{'.repeat(1000)}":1}`))).toBeUndefined()
    expect(codeOf(() => parse(JSON.stringify(['"[', '\\', '\\"{'.repeat(100)])))).toBeUndefined()
  })

  test('names a property only once in one object, however it is spelled', () => {
    for (const twice of ['{"a":1,"a":1}', '{"a":1,"\\u0061":1}', '[{"b":{"a":1,"c":[],"a":2}}]']) {
      expect(codeOf(() => parse(twice))).toBe('invalid_request')
    }
    for (const once of ['{"a":{"a":1}}', '[{"a":1},{"a":1}]', '{"a":"a","b":"a"}', '{"a":["a","a"]}']) {
      expect(parse(once)).toEqual(JSON.parse(once))
    }
  })

  test('has no __proto__, and keeps constructor as an ordinary property', () => {
    for (const text of ['{"__proto__":1}', '{"\\u005f\\u005fproto__":1}', '[{"a":{"__proto__" : 1}}]']) {
      expect(codeOf(() => parse(text))).toBe('invalid_request')
    }
    expect(parse('["__proto__"]')).toEqual(['__proto__'])
    expect(Object.keys(parse('{"constructor":{"prototype":{"x":1}}}') as object)).toEqual(['constructor'])
    expect(Reflect.get({}, 'x')).toBeUndefined()
  })

  test('keeps numbers exactly', () => {
    for (const text of ['1e400', '-1e400', '[1,{"a":1e999}]']) {
      expect(codeOf(() => parse(text))).toBe('invalid_request')
    }
    expect(parse('[1e-400,0,-0,9007199254740993]')).toEqual(JSON.parse('[1e-400,0,-0,9007199254740993]'))
  })
})

describe('a quoted name', () => {
  test('is short, one line, and well-formed', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (name) => {
        const quoted = quote(name)
        expect(isWellFormed(quoted)).toBe(true)
        expect(quoted).not.toContain('\n')
        expect(lengthOf(JSON.parse(quoted))).toBeLessThanOrEqual(61)
      }),
    )
  })
})

test('contains no secret, and an id stays', () => {
  const random = 'aB3_-'.repeat(9)
  /** As long as the shortest session string. */
  const session = random.replaceAll('_', '+').repeat(8).slice(0, 351)
  const secrets = [
    `svc_live_${random}`,
    `apr_${random}`,
    `whsec_${random}+/=`,
    random.slice(0, 43),
    `${session}=`,
  ]
  for (const secret of secrets) {
    expect(quote(`a ${secret} b`)).not.toContain(random.slice(0, 8))
    expect(quote(`a ${secret} b`)).toMatch(/^"a (svc_live_|apr_|whsec_)?… b"$/)
  }
  for (const id of ['0199a1f0-0000-7000-8000-000000000001', 'acc_2Jk9vQ7wXb4LmN8pRt3Z', random]) {
    expect(quote(id)).toBe(`"${id}"`)
  }
})

describe('toWellFormed', () => {
  test('removes what PostgreSQL cannot store, wherever it is, and keeps the rest', () => {
    const whole = { text: 'a😀b', list: ['é'] }
    expect(toWellFormed(whole)).toBe(whole)
    const odd = { text: 'a\0b', deep: [{ name: '\ud800x' }], count: 3, none: null }
    expect(toWellFormed(odd)).toEqual({ text: 'ab', deep: [{ name: '\ufffdx' }], count: 3, none: null })
  })
})

describe('the size of a body, before it is parsed', () => {
  const read = (text: string) => parseJson(Buffer.from(text))
  const object = (count: number) =>
    `{${Array.from({ length: count }, (_, at) => `"p${at}":${at}`).join(', ')}}`
  /** An array of objects with ten property names each, `count` names in all. */
  const named = (count: number) =>
    Array.from({ length: Math.ceil(count / 10) }, (_, at) => {
      const names = Array.from({ length: 10 }, (_, n) => Math.min(at * 10 + n, count - 1))
      return `{${[...new Set(names)].map((n) => `"n${n}":0`).join(',')}}`
    })
  const array = (count: number) => `[${Array.from({ length: count }, () => '{"a":[1,2]}').join(', ')}]`

  test('may have the maximum of properties and items, wherever they are', () => {
    expect(Object.keys(read(object(200)) as object)).toHaveLength(200)
    expect(read(array(10_000))).toHaveLength(10_000)
    expect(read(`{"contacts":[${Array(5_000).fill(object(18)).join(',')}]}`)).toMatchObject({
      contacts: { length: 5_000 },
    })
    expect(read(`[${named(1_000).join(',')}]`)).toHaveLength(100)
  })

  test.each([
    ['an object', object(201), '200 properties'],
    ['an object in an object', `{"a":${object(201)}}`, '200 properties'],
    ['an array', array(10_001), '10,000 items'],
    ['an array in an array', `[1,${array(10_001)}]`, '10,000 items'],
    [
      'a body of small lists',
      `[${Array(5_001).fill('[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]').join(',')}]`,
      '100,000 values',
    ],
    ['a body of many names', `[${named(1_001).join(',')}]`, '1,000 different property names'],
    ['an object that never ends', object(50_000).slice(0, -1), '200 properties'],
  ])('400 for %s with one more', (_, text, named) => {
    expect(() => read(text)).toThrow(named)
  })
})
