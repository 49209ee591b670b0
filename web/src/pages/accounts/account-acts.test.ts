import { expect, test } from 'vitest'
import { offersEnable } from './account-acts.ts'

const ready = {
  status: 'READY',
  login_stored: true,
  first_messages_stopped_at: null,
  campaigns_held_at: null,
} as const
const at = '2026-11-18T09:00:00.000Z'

test.each([
  ['needs a login, and one is stored', { status: 'NEEDS_LOGIN' }, true],
  ['needs a login, and none is stored', { status: 'NEEDS_LOGIN', login_stored: false }, false],
  ['is restricted', { status: 'RESTRICTED' }, true],
  ['is disabled before its first login', { status: 'DISABLED', login_stored: false }, true],
  ['has its first messages stopped', { first_messages_stopped_at: at }, true],
  ['has its campaigns held', { campaigns_held_at: at }, true],
  ['is ready', {}, false],
  ['is connecting', { status: 'CONNECTING' }, false],
] as const)('an account that %s offers enabling or not', (_, state, isOffered) => {
  expect(offersEnable({ ...ready, ...state })).toBe(isOffered)
})
