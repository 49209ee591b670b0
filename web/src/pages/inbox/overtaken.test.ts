import { expect, test } from 'vitest'
import type { TimelineItem } from '../../data/chats.ts'
import { noteServiceTime, serviceTimeOf } from '../../data/service-clock.ts'
import { overtakenBy } from './overtaken.ts'

const answer = (id: string, at: string, user_id: string, name = 'Ana'): TimelineItem => ({
  ...{ type: 'message', id, at, is_sender: true, text: 'Yes.', edited_at: null, attachments: [] },
  ...{ state: 'accepted', read_at: null, campaign: null, operation_id: null },
  by: { kind: 'user', user_id, name },
})
const since = '2026-11-15T09:30:00.000Z'
const later = '2026-11-15T09:31:00.000Z'

test('another user has answered since, also one with the same name; oneself has not, under any name', () => {
  expect(overtakenBy([answer('1', later, 'other')], { user_id: 'own', since })).toEqual({
    id: '1',
    name: 'Ana',
  })
  expect(overtakenBy([answer('1', later, 'own', 'Renamed')], { user_id: 'own', since })).toBeUndefined()
  expect(overtakenBy([answer('1', since, 'other')], { user_id: 'own', since })).toBeUndefined()
})

test('a browser whose clock is an hour ahead or behind knows when the draft was begun', () => {
  for (const offMs of [3_600_000, -3_600_000]) {
    noteServiceTime(new Headers({ date: 'Sun, 15 Nov 2026 09:30:00 GMT' }), Date.parse(since) + offMs)
    const begun_at = new Date(Date.parse(since) + offMs).toISOString()
    const begun = { user_id: 'own', since: serviceTimeOf(begun_at) }
    expect(overtakenBy([answer('1', '2026-11-15T09:29:00.000Z', 'other')], begun)).toBeUndefined()
    expect(overtakenBy([answer('2', later, 'other')], begun)).toMatchObject({ id: '2' })
  }
  const known = serviceTimeOf(since)
  noteServiceTime(new Headers())
  expect(serviceTimeOf(since)).toBe(known)
})
