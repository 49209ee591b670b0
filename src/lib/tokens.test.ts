import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { normalise, type Phrase, phraseOf, prefixPhrases, tokenise, tokensMax, toTsquery } from './tokens.ts'

const words = (text: string) => tokenise(text).map(({ word }) => word)

/** The meaning of `phrase`: its words stand one after another. */
function finds(text: string, phrase: Phrase): boolean {
  const tokens = words(text)
  return tokens.some((_, at) =>
    phrase.every(({ word, prefix }, next) => {
      const token = tokens[at + next]
      return prefix ? token?.startsWith(word) : token === word
    }),
  )
}

describe('normalise', () => {
  test.each([
    ['Straße STRASSE', 'strasse strasse'],
    ['İstanbul ısı', 'istanbul isi'],
    ['ΟΔΟΣ οδός', 'οδοσ οδοσ'],
    ['Žluťoučký kůň, Łódź, smørrebrød', 'zlutoucky kun, lodz, smorrebrod'],
    ['ЁЛКА ёлка', 'елка елка'],
    ['مُحَمَّد', 'محمد'],
    ['ﬁne ™ Ⅳ ｆｕｌｌ', 'fine tm iv full'],
    ['한국', '한국'],
    ['हिन्दी', 'हिन्दी'],
  ])('%s', (text, normal) => {
    expect(normalise(text)).toBe(normal)
  })

  test('ignores how the accents were typed', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(normalise(text.normalize('NFD'))).toBe(normalise(text.normalize('NFC')))
      }),
    )
  })
})

describe('tokenise', () => {
  test.each([
    ['Hello, World!', ['hello', 'world']],
    ["don't a_b 3.14", ['don', 't', 'a', 'b', '3', '14']],
    ['東京都', ['東京', '京都', '都']],
    ['iPhone手机', ['iphone', '手机', '机']],
    ['手', ['手']],
    ['ภาษา', ['ภา', 'าษ', 'ษา', 'า']],
    ['👍🏽 🇩🇪', ['👍', '🇩🇪', '🇪']],
    ['... -- !', []],
    ['', []],
  ])('%s', (text, expected) => {
    expect(words(text)).toEqual(expected)
  })

  test('returns where each token stands in the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (text) => {
        const whole = text.normalize('NFC')
        for (const { word, start, end } of tokenise(text)) {
          expect(normalise(whole.slice(start, end))).toContain(word.slice(0, 1))
          expect(start).toBeLessThan(end)
        }
      }),
    )
  })

  test('is the same whatever the case', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'aBcß éÅçИяΩσς 1-') }), (text) => {
        expect(words(text.toUpperCase())).toEqual(words(text.toLowerCase()))
      }),
    )
  })

  test('ends for any input', () => {
    expect(tokenise('a '.repeat(20_000))).toHaveLength(tokensMax)
    expect(words('x'.repeat(100_000))).toEqual(['x'.repeat(64)])
    // Anything worse than linear would exceed the test's time with these.
    for (const unit of ['"-', 'á', '̈', '漢', '- ', 'a"']) {
      const text = unit.repeat(500_000)
      expect(tokenise(text).length).toBeLessThanOrEqual(tokensMax)
    }
  })
})

describe('phraseOf', () => {
  const script = fc.constantFrom(...'漢字東京都手机がカ한국ไท')

  test('finds every part of a text without spaces, and nothing that is not in it', () => {
    const run = fc.array(script, { minLength: 1, maxLength: 12 }).map((characters) => characters.join(''))
    fc.assert(
      fc.property(run, run, (text, part) => {
        expect(finds(text, phraseOf(part, { prefix: false }))).toBe(normalise(text).includes(normalise(part)))
      }),
    )
    fc.assert(
      fc.property(run, fc.nat(11), fc.integer({ min: 1, max: 12 }), (text, from, length) => {
        const part = [...text].slice(from, from + length).join('')
        if (part) expect(finds(text, phraseOf(part, { prefix: false }))).toBe(true)
      }),
    )
  })

  test('finds a phrase in its order, across scripts', () => {
    expect(finds('buy 東京 tower now', phraseOf('京 tower', { prefix: false }))).toBe(true)
    expect(finds('buy 東京都 tower', phraseOf('東京 tower', { prefix: false }))).toBe(false)
    expect(finds('one two three', phraseOf('two three', { prefix: false }))).toBe(true)
    expect(finds('one two three', phraseOf('one three', { prefix: false }))).toBe(false)
    expect(finds('one two three', phraseOf('two thr', { prefix: false }))).toBe(false)
    expect(finds('one two three', phraseOf('two thr', { prefix: true }))).toBe(true)
  })
})

test('prefixPhrases treats every word as a prefix', () => {
  expect(prefixPhrases(' Anna  Lind ').map((phrase) => toTsquery(phrase))).toEqual(["'anna':*", "'lind':*"])
  expect(prefixPhrases('?!')).toEqual([])
})
