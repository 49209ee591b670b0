import { expect, test } from 'vitest'
import { findMeaning } from './errors.ts'
import { explainTrouble } from './trouble.ts'

test.each(['AUTH_KEY_UNREGISTERED', 'AUTH_KEY_INVALID'])(
  '%s asks for one more try, then for a login',
  (name) => {
    expect(findMeaning(name)).toBe('needs_login')
    const sentence = explainTrouble('needs_login', name, 'acc_1')
    expect(sentence).toMatch(
      /Run parley account enable acc_1 .*, run parley account login acc_1\. \([A-Z_]+\)$/,
    )
  },
)

test.each(['SESSION_REVOKED', 'SESSION_EXPIRED', 'AUTH_KEY_DUPLICATED'])('%s asks for a login', (name) => {
  expect(findMeaning(name)).toBe('needs_login')
  const sentence = explainTrouble('needs_login', name, 'acc_1')
  expect(sentence).toMatch(/\. Run parley account login acc_1\. \([A-Z_]+\)$/)
  expect(sentence).toContain(name)
})

test.each([
  'USER_DEACTIVATED',
  'USER_DEACTIVATED_BAN',
  'PHONE_NUMBER_BANNED',
  'FROZEN_METHOD_INVALID',
  'FROZEN_NEW',
])('%s is a restriction that a person lifts', (name) => {
  expect(findMeaning(name)).toBe('restricted')
  const sentence = explainTrouble('restricted', name, 'acc_1')
  expect(sentence).toMatch(/, then run parley account enable acc_1\. \([A-Z_]+\)$/)
  // A frozen account is still logged in: only an appeal helps.
  if (name.startsWith('FROZEN')) expect(sentence).toMatch(/has frozen the account.*Appeal/)
  expect(sentence).not.toContain('account login')
})

test('a login that is not there says how to log in, missed updates what to compare', () => {
  expect(explainTrouble('needs_login', 'no_session', 'acc_1')).toContain('Run parley account login acc_1.')
  expect(explainTrouble('restricted', 'updates_missed', 'acc_1')).toContain(
    'run parley account enable acc_1.',
  )
})
