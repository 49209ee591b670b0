import { describe, expect, test } from 'vitest'
import { encodeList } from '../../lib/postings.ts'
import { evaluate, evaluateWhole, nameOf } from './evaluate.ts'
import { lookForWord } from './listing.ts'
import type { Piece } from './pack.ts'

function listOf(...ranks: number[]): Piece {
  const bytes = encodeList({ ranks })
  return { bytes, length: bytes.length }
}

describe('evaluate', () => {
  test('takes as many words as begin alike', () => {
    const look = lookForWord({ word: '20260', prefix: true })
    const many = Array.from({ length: 200_000 }, (_, at) => listOf(at))
    const pieces = new Map([[nameOf(look), many]])
    const plan = { groups: [[[look]]], none: [], check: false }
    const { ranks, horizon } = evaluate(plan, pieces)
    expect([ranks.length, ranks.at(-1), horizon]).toEqual([200_000, 199_999, Infinity])
    expect(evaluateWhole(plan, pieces)).toHaveLength(200_000)
  })
})
