import { expect, test } from 'vitest'

test('the share of those who replied leaves out those who asked to stop', async () => {
  // By a name that the compiler does not follow: the service's own types know no browser.
  const path = './analytics.ts'
  const { repliedRate } = await import(path)
  expect(repliedRate({ replies: 10, opt_outs: 4, reply_rate: 0.5 })).toBeCloseTo(0.3)
  expect(repliedRate({ replies: 0, opt_outs: 0, reply_rate: 0 })).toBe(0)
})
