import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type CursorScope, makeCursor, readCursor } from './cursor.ts'
import { Secrets } from './secrets.ts'

const secrets = new Secrets('a secret for tests that is long enough')
const scope: CursorScope = {
  workspace_id: '0199a1f0-0000-7000-8000-000000000001',
  operation: 'list_chats',
  filters: { account_id: 'acc_1', stage_key: 'new' },
}
const position = fc.array(
  fc.oneof(fc.string({ unit: 'binary', maxLength: 50 }), fc.integer(), fc.constant(null)),
  { maxLength: 4 },
)
const refusal = expect.objectContaining({ code: 'invalid_cursor', status: 400 })

function refused(cursor: string, from: CursorScope = scope, by = secrets): void {
  let thrown: unknown
  try {
    readCursor(by, from, cursor)
  } catch (error) {
    thrown = error
  }
  expect(thrown).toEqual(refusal)
}

describe('a cursor', () => {
  test('decodes to its position, in whatever order the filters are given', () => {
    fc.assert(
      fc.property(position, (at) => {
        const cursor = makeCursor(secrets, scope, at)
        expect(cursor).toMatch(/^[\w-]+$/)
        const { account_id, stage_key } = scope.filters
        expect(readCursor(secrets, { ...scope, filters: { stage_key, account_id } }, cursor)).toEqual(at)
      }),
    )
  })

  test('is refused with any one bit changed', () => {
    fc.assert(
      fc.property(position, fc.nat(), (at, place) => {
        const bytes = Buffer.from(makeCursor(secrets, scope, at), 'base64url')
        const bit = place % (bytes.length * 8)
        bytes.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
        refused(bytes.toString('base64url'))
      }),
      { numRuns: 2_000 },
    )
  })

  test('is refused with any one character changed, added or removed', () => {
    const cursor = makeCursor(secrets, scope, ['2026-01-01T00:00:00Z', 7])
    for (let at = 0; at < cursor.length; at++) {
      for (const character of 'Aa0_-=+/ \n') {
        if (cursor[at] !== character) refused(cursor.slice(0, at) + character + cursor.slice(at + 1))
        refused(cursor.slice(0, at) + character + cursor.slice(at))
      }
      refused(cursor.slice(0, at) + cursor.slice(at + 1))
      refused(cursor.slice(0, at))
    }
    refused(`${cursor}=`)
    refused(cursor.repeat(2))
  })

  test('is refused when other bytes decode to the same text', () => {
    const bytes = Buffer.from(makeCursor(secrets, scope, ['\ufffd']), 'base64url')
    const at = bytes.indexOf('\ufffd')
    refused(
      Buffer.concat([bytes.subarray(0, at), Buffer.from([0xff]), bytes.subarray(at + 3)]).toString(
        'base64url',
      ),
    )
  })

  test('belongs to one workspace, one operation, one set of filters, one instance', () => {
    const cursor = makeCursor(secrets, scope, [1])
    refused(cursor, { ...scope, workspace_id: '0199a1f0-0000-7000-8000-000000000002' })
    refused(cursor, { ...scope, operation: 'list_contacts' })
    refused(cursor, { ...scope, filters: {} })
    refused(cursor, { ...scope, filters: { ...scope.filters, q: 'x' } })
    refused(cursor, { ...scope, filters: { ...scope.filters, stage_key: 'won' } })
    refused(cursor, scope, new Secrets('another secret that is long enough as well'))
  })

  test('is refused when it is not a cursor at all', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (cursor) => refused(cursor)))
    fc.assert(fc.property(fc.base64String({ maxLength: 300 }), (cursor) => refused(cursor)))
    refused('')
    refused('a'.repeat(10_240))
  })
})
