import { describe, expect, test } from 'vitest'
import { base62, isUuid, namedId, newAccountId, newId, randomText, urlNamespace } from './ids.ts'

describe('an id', () => {
  test('is a UUIDv7; a hundred thousand of them are sorted and distinct', () => {
    const ids = Array.from({ length: 100_000 }, newId)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.every((id, at) => at === 0 || id > (ids[at - 1] ?? ''))).toBe(true)
    expect(
      ids.every((id) => /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id)),
    ).toBe(true)
    expect(isUuid(newId())).toBe(true)
  })

  test('starts with its creation time', () => {
    const before = Date.now()
    const at = Number.parseInt(newId().replaceAll('-', '').slice(0, 12), 16)
    expect(at).toBeGreaterThanOrEqual(before)
    // Ids made faster than the clock are ahead of it, by a little.
    expect(at).toBeLessThan(before + 1_000)
  })

  test('is distinguished from what only looks like one', () => {
    for (const wrong of [
      '',
      'x',
      `${newId()}0`,
      newId().replaceAll('-', ''),
      `{${newId()}}`,
      `${newId()}\n`,
      "' or 1=1",
    ]) {
      expect(isUuid(wrong)).toBe(false)
    }
  })
})

describe('a named id', () => {
  test('is the same UUIDv5 that other programs make', () => {
    // The example of RFC 9562, appendix A.4.
    const dns = '6ba7b810-9dad-11d1-80b4-00c04fd430c8'
    expect(namedId(dns, 'www.example.com')).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2')
    expect(namedId(urlNamespace, 'https://a.example')).not.toBe(namedId(urlNamespace, 'https://b.example'))
  })
})

describe('random text', () => {
  test('has the requested length, and every character', () => {
    expect([0, 1, 32, 1000].map((length) => randomText(length).length)).toEqual([0, 1, 32, 1000])
    expect(new Set(randomText(20_000)).size).toBe(62)
    expect(randomText(100)).toMatch(/^[0-9A-Za-z]{100}$/)
  })

  test('names accounts in the format of the database', () => {
    expect(newAccountId()).toMatch(/^acc_[0-9A-Za-z]{20}$/)
  })

  test('base62 encodes every number differently, in a fixed width', () => {
    expect([base62(0, 6), base62(61, 6), base62(62, 6), base62(2 ** 32 - 1, 6)]).toEqual([
      '000000',
      '00000z',
      '000010',
      '4gfFC3',
    ])
  })
})
