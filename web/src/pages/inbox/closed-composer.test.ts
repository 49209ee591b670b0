import { expect, test } from 'vitest'

test('the composer says once that sending is off, in the words of the service', async () => {
  // By a name that the compiler does not follow: the service's own types know no browser.
  const path = './closed-composer.tsx'
  const { closedBecause } = await import(path)
  const capabilities = { send: { open: true, closed_by: null } }
  const reason = 'Sending waits for the journals of 1 worker.'
  expect(closedBecause({ capabilities, dispatch: { on: false, reason } })).toBe(
    'Sending waits for the journals of 1 worker. Your draft is kept.',
  )
  expect(closedBecause({ capabilities, dispatch: { on: true, reason: null } })).toBeUndefined()
})
