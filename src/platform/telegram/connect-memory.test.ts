/** When a login that Telegram does not know needs a person: by the monotonic clock, which the test moves. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ConnectMemory } from './connect-memory.ts'

const minutes = 60_000

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A memory that has just begun to doubt, and what comes of the next doubt. */
function openDoubt() {
  const memory = new ConnectMemory()
  const doubt = () => memory.doubt('AUTH_KEY_UNREGISTERED', { account_id: 'acc_one' }).kind
  const pass = (ms: number) => void vi.advanceTimersByTime(ms)
  expect(doubt()).toBe('not_written')
  return { memory, doubt, pass }
}

describe('a login that Telegram does not know', () => {
  test('is tried again for five minutes', () => {
    const { doubt, pass } = openDoubt()
    pass(5 * minutes - 1)
    expect(doubt()).toBe('not_written')
    pass(1)
    expect(doubt()).toBe('refused')
    // The next connect is a person's wish.
    expect(doubt()).toBe('not_written')
  })

  test('a second time is tried again if a session in between lasted, however soon after a reconnect', () => {
    const { memory, doubt, pass } = openDoubt()
    pass(20_000)
    memory.noteConnected()
    pass(600 * minutes)
    memory.noteEnded()
    memory.noteConnected()
    pass(5_000)
    expect(doubt()).toBe('not_written')
  })

  test('a second time needs a login if the session in between was cut at once, however long the account was away', () => {
    const { memory, doubt, pass } = openDoubt()
    memory.noteConnected()
    pass(1_000)
    memory.noteEnded()
    pass(5 * minutes)
    expect(doubt()).toBe('refused')
  })
})
