/** What the log says about a request that failed through no fault of the caller. */
import type { FastifyRequest } from 'fastify'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { ApiError } from '../lib/errors.ts'
import { logFailure } from './errors.ts'

function logFieldsOf(error: ApiError): Record<string, unknown> {
  const lines: string[] = []
  const log = pino({ base: null, timestamp: false }, { write: (line) => void lines.push(line) })
  logFailure(log, { id: 'r1' } as FastifyRequest, error)
  return lines[0] === undefined ? {} : JSON.parse(lines[0])
}

test('logs the cause if there is one, and no stack when the code says everything', () => {
  expect(logFieldsOf(new ApiError('session_unavailable'))).toMatchObject({
    level: 40,
    code: 'session_unavailable',
  })
  expect(logFieldsOf(new ApiError('session_unavailable'))).not.toHaveProperty('err')
  const cause = new Error('the disk is full')
  expect(logFieldsOf(new ApiError('store_unavailable', { cause }))).toMatchObject({
    err: { message: 'the disk is full' },
  })
})

test('logs the stack of an unexpected error', () => {
  expect(logFieldsOf(new ApiError('internal'))).toMatchObject({
    level: 50,
    err: { stack: expect.any(String) },
  })
  expect(logFieldsOf(new ApiError('not_found'))).toEqual({})
})
