import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  chatId,
  chatNumber,
  chatPrefix,
  givenChatPattern,
  limit,
  parseTime,
  text,
  textSchema,
  time,
  timeOrDateSchema,
} from './shapes.ts'

const accepts = (schema: { safeParse(value: unknown): { success: boolean } }, value: unknown) =>
  schema.safeParse(value).success

describe('a chat id', () => {
  test('is a canonical int64 and nothing else', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }), (value) => {
        const inside = value >= -(2n ** 63n) && value < 2n ** 63n
        expect(accepts(chatId, `${chatPrefix}${value}`)).toBe(inside)
        expect(new RegExp(givenChatPattern, 'u').test(`${chatPrefix}${value}`)).toBe(inside)
      }),
    )
    for (const [digits, good] of [
      ['9223372036854775807', true],
      ['9223372036854775808', false],
      ['-9223372036854775808', true],
      ['-9223372036854775809', false],
      ['0', true],
      ['-0', false],
      ['+1', false],
      ['01', false],
      ['1e3', false],
      ['1.0', false],
      [' 1', false],
      ['1\n', false],
      ['', false],
      ['-', false],
      ['٤٢', false],
      ['１', false],
      ['1'.repeat(400), false],
    ] as const) {
      expect(accepts(chatId, `${chatPrefix}${digits}`), digits).toBe(good)
      expect(new RegExp(givenChatPattern, 'u').test(`${chatPrefix}${digits}`), digits).toBe(good)
    }
    for (const other of [42, 42n, null, undefined, {}, ['platform:chat:1'], 'chat:1', 'Platform:chat:1']) {
      expect(accepts(chatId, other)).toBe(false)
    }
  })

  test('returns its number as text, to the last digit', () => {
    expect(chatNumber('platform:chat:9223372036854775807')).toBe('9223372036854775807')
  })
})

describe('limit', () => {
  test('is a whole number in its range, in plain digits, or the default', () => {
    const schema = limit(100, 30)
    expect([schema.parse('1'), schema.parse('100'), schema.parse(undefined)]).toEqual([1, 100, 30])
    for (const wrong of [
      '0',
      '101',
      '-1',
      '1.5',
      '1e2',
      ' 5',
      '5 ',
      '5\n',
      '+5',
      '05',
      '',
      'x',
      '٥',
      5,
      ['5'],
      '9'.repeat(30),
    ]) {
      expect(accepts(schema, wrong), String(wrong)).toBe(false)
    }
  })
})

describe('text', () => {
  test('counts code points and is not blank', () => {
    const schema = text(4)
    for (const good of ['a', '😀😀😀😀', ' a ', '\u202eabc']) expect(accepts(schema, good)).toBe(true)
    for (const wrong of ['', '  ', '\u3000', '😀😀😀😀a', 1, null]) expect(accepts(schema, wrong)).toBe(false)
  })
})

describe('a time', () => {
  test.each([
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['2024-01-01T10:00:00', '2024-01-01T10:00:00.000Z'],
    ['2024-01-01T10:00:00Z', '2024-01-01T10:00:00.000Z'],
    ['2024-01-01t10:00:00z', '2024-01-01T10:00:00.000Z'],
    ['2024-01-01 10:00:00Z', '2024-01-01T10:00:00.000Z'],
    ['2024-01-01T10:00:00+05:30', '2024-01-01T04:30:00.000Z'],
    ['2024-01-01T10:00:00 05:30', '2024-01-01T04:30:00.000Z'],
    ['2024-01-01T10:00:00-23:59', '2024-01-02T09:59:00.000Z'],
    ['2024-01-01T10:00:00-00:00', '2024-01-01T10:00:00.000Z'],
    ['2024-01-01T10:00:00.1Z', '2024-01-01T10:00:00.100Z'],
    ['2024-01-01T10:00:00.123456789Z', '2024-01-01T10:00:00.123Z'],
    ['2024-01-01T23:59:59.999999Z', '2024-01-01T23:59:59.999Z'],
    ['0001-01-01', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59.000Z'],
    ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
    ['2017-01-01t00:59:60.5+01:00', '2017-01-01T00:00:00.500Z'],
    [`2024-01-01T10:00:00.1230${'0'.repeat(500)}z`, '2024-01-01T10:00:00.123Z'],
    [`2024-01-01T10:00:00.123${'9'.repeat(500)}z`, '2024-01-01T10:00:00.123Z'],
  ])('%s is %s (V4)', (given, meant) => {
    expect(parseTime(given)?.toISOString()).toBe(meant)
  })

  test.each([
    ['2024-01-01', '2024-01-01T00:00:00.000Z'],
    ['2024-01-01T10:00:00.123000Z', '2024-01-01T10:00:00.123Z'],
    ['2024-01-01T10:00:00.1230001Z', '2024-01-01T10:00:00.124Z'],
    ['2024-01-01T23:59:59.9995Z', '2024-01-02T00:00:00.000Z'],
  ])('a bound of %s is the millisecond %s: none lies between (V3)', (given, meant) => {
    expect(time.parse(given).toISOString()).toBe(meant)
  })

  test.each([
    '',
    'now',
    '2024',
    '2024-01',
    '2024-1-1',
    '2024-00-01',
    '2024-13-01',
    '2024-01-00',
    '2024-01-32',
    '2023-02-29',
    '2024-02-30',
    '2024-04-31',
    '0000-01-01',
    '-0001-01-01',
    '+10000-01-01',
    '10000-01-01',
    '2024-01-01T24:00:00Z',
    '2024-01-01T25:00:00Z',
    '2024-01-01T10:60:00Z',
    '2016-12-31T23:59:61Z',
    '9999-12-31T23:59:60Z',
    '2024-01-01T10:00:61Z',
    '2024-01-01T10:00Z',
    '2024-01-01T10Z',
    '2024-01-01T10:00:00+99:99',
    '2024-01-01T10:00:00+24:00',
    '2024-01-01T10:00:00+05:60',
    '2024-01-01T10:00:00+0530',
    '2024-01-01T10:00:00.Z',
    '2024-01-01T10:00:00 Europe/Berlin',
    '2024-01-01Z',
    ' 2024-01-01',
    '2024-01-01\n',
    '２０２４-01-01',
    '0001-01-01T00:00:00+00:01',
    '9999-12-31T23:59:59-00:01',
    '1704103200',
  ])('%j is invalid', (given) => {
    expect(parseTime(given)).toBeUndefined()
    expect(accepts(time, given)).toBe(false)
  })

  test('is preserved for any moment of four-digit years', () => {
    const moments = fc.date({
      min: new Date('0001-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    })
    fc.assert(
      fc.property(moments, (at) => {
        expect(parseTime(at.toISOString())).toEqual(at)
      }),
    )
  })
})

describe('in the document', () => {
  test('a blank text is as invalid as in the service', () => {
    const documented = new RegExp(textSchema(9).pattern, 'u')
    for (const given of [
      '',
      ' ',
      '\t\n',
      '\u00a0',
      '\u3000',
      '\ufeff',
      '\u2028',
      'a',
      ' a',
      '\u200b',
      '\u0085',
      '0',
    ]) {
      const fits = documented.test(given) && given.length >= textSchema(9).minLength
      expect([given, fits]).toEqual([given, accepts(text(9), given)])
    }
  })

  test('every day that exists is one, and no other', () => {
    const documented = new RegExp(timeOrDateSchema.pattern, 'u')
    const two = (value: number) => String(value).padStart(2, '0')
    for (const year of ['0000', '0001', '0400', '1900', '2000', '2023', '2024', '2100', '9999']) {
      for (let month = 0; month <= 13; month++) {
        for (let day = 0; day <= 32; day++) {
          const given = `${year}-${two(month)}-${two(day)}`
          expect([given, documented.test(given)]).toEqual([given, accepts(time, given)])
        }
      }
    }
  })

  test('a time that it allows is one for the service', () => {
    const documented = new RegExp(timeOrDateSchema.pattern, 'u')
    const clocks = [
      'T09:00:00',
      't23:59:60Z',
      'T24:00:00Z',
      'T09:60:00Z',
      'T09:00:61',
      'T09:00:00.123456789z',
    ]
    const offsets = [
      'T09:00:00+01:00',
      'T09:00:00-23:59',
      'T09:00:00+24:00',
      'T09:00:00+01:60',
      'T9:00:00',
      'T09:00',
    ]
    for (const clock of [...clocks, ...offsets]) {
      expect([clock, documented.test(`2026-11-16${clock}`)]).toEqual([
        clock,
        accepts(time, `2026-11-16${clock}`),
      ])
    }
  })
})
