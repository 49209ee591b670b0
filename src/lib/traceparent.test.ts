import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { passOn, readTraceparent, type Traceparent, traceFacts } from './traceparent.ts'

const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736'
const parent_id = '00f067aa0ba902b7'
const sampled: Traceparent = `00-${trace_id}-${parent_id}-01`
const unsampled: Traceparent = `00-${trace_id}-${parent_id}-00`

describe('a traceparent', () => {
  test.each([
    [sampled, sampled],
    [unsampled, unsampled],
    [`00-${trace_id}-${parent_id}-ff`, sampled],
    [`00-${trace_id}-${parent_id}-fe`, unsampled],
    [`01-${trace_id}-${parent_id}-01`, sampled],
    [`cc-${trace_id}-${parent_id}-01-what-the-future-will-be-like`, sampled],
    [`cc-${trace_id}-${parent_id}-01-`, sampled],
  ])('%s is read as version 00', (given, read) => {
    expect(readTraceparent([given])).toBe(read)
  })

  test.each([
    ['nothing', []],
    ['null', [null]],
    ['an empty one', ['']],
    ['two, even the same', [sampled, sampled]],
    ['two in one line', [`${sampled},${sampled}`]],
    ['version 00 with more', [`${sampled}-00`]],
    ['version 00 with a hyphen', [`${sampled}-`]],
    ['version 00 with a line break', [`${sampled}\n`]],
    ['version 01 that goes on without a hyphen', [`01-${trace_id}-${parent_id}-01.`]],
    ['version 01 with a line break', [`01-${trace_id}-${parent_id}-01\r\nx: y`]],
    ['version ff', [`ff-${trace_id}-${parent_id}-01`]],
    ['a version of one digit', [`0-${trace_id}-${parent_id}-01`]],
    ['capitals', [sampled.toUpperCase()]],
    ['a trace of zeros', [`00-${'0'.repeat(32)}-${parent_id}-01`]],
    ['a parent of zeros', [`00-${trace_id}-${'0'.repeat(16)}-01`]],
    ['a short trace', [`00-${trace_id.slice(1)}-${parent_id}-01`]],
    ['a long trace', [`00-${trace_id}0-${parent_id}-01`]],
    ['letters beyond f', [`00-${trace_id.replace('4', 'g')}-${parent_id}-01`]],
    ['spaces', [` ${sampled}`]],
    ['no flags', [`00-${trace_id}-${parent_id}`]],
  ])('is ignored: %s', (_, given) => {
    expect(readTraceparent(given)).toBeUndefined()
  })

  test('is passed on within the same trace, with a parent of its own', () => {
    const passed = [randomUUID(), randomUUID()].map((token) => passOn(sampled, token))
    expect(new Set([...passed, sampled]).size).toBe(3)
    for (const each of passed) {
      expect(readTraceparent([each])).toBe(each)
      expect(traceFacts(each).trace_id).toBe(trace_id)
      expect(each.endsWith('-01')).toBe(true)
    }
    expect(passOn(unsampled, randomUUID()).endsWith('-00')).toBe(true)
    expect(readTraceparent([passOn(sampled, '00000000-0000-4000-8000-000000000000')])).toBeDefined()
  })
})
