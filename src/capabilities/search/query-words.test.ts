import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Phrase, tokenise, toTsquery, toTsvector } from '../../lib/tokens.ts'
import { parseQuery } from './query-words.ts'

describe('parseQuery', () => {
  const spelled = (text: string) => {
    const spell = (phrase: Phrase) => phrase.map(({ word, prefix }) => word + (prefix ? '*' : '')).join(' ')
    const { all, none } = parseQuery(text)
    return [all.map(spell), none.map(spell)]
  }

  test.each([
    ['hello wor', [['hello', 'wor*'], []]],
    ['"blue one" price', [['blue one', 'price*'], []]],
    ['price "blue one"', [['price*', 'blue one'], []]],
    ['price -old -"very old"', [['price*'], ['old', 'very old']]],
    ['“blue one”', [['blue one'], []]],
    ['"never closed', [['never closed'], []]],
    ['e-mail', [['e mail*'], []]],
    ['-only', [[], ['only']]],
    ['" - " !?', [[], []]],
    ['Ünïcode', [['unicode*'], []]],
    ['a:* & b | !c <-> (d)', [['a', 'b', 'c', 'd*'], []]],
  ])('%s', (text, expected) => {
    expect(spelled(text)).toEqual(expected)
  })

  test('never passes on what PostgreSQL would read as syntax', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (text, more) => {
        const { all, none } = parseQuery(`${text} ${more}`)
        for (const phrase of [...all, ...none]) {
          expect(toTsquery(phrase)).toMatch(/^\(?'[^'\\]+'(:\*)?( <-> '[^'\\]+'(:\*)?)*\)?$/)
        }
        expect(toTsvector(tokenise(text))).toMatch(/^('[^'\\]+':[\d,]+( |$))*$/)
      }),
    )
  })

  test('ends for any input', () => {
    // Anything worse than linear would not get through these within the test's time.
    for (const unit of ['"-', 'á', '̈', '漢', '- ', 'a"']) {
      expect(() => parseQuery(unit.repeat(500_000))).not.toThrow()
    }
  })
})
