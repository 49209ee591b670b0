import { expect, test } from 'vitest'
import { repliedRate } from '../../data/analytics.ts'
import { partsOf } from './recipient-parts.ts'

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)

test('a recipient who asked to stop has not replied, in the words and in the figures', async () => {
  const { stateOf } = await load('../../ui/recipient-states.ts')
  expect(stateOf({ status: 'replied', opted_out: false })).toEqual(['good', 'Replied'])
  expect(stateOf({ status: 'replied', opted_out: true })).toEqual(['warn', 'Asked to stop'])
  expect(stateOf({ status: 'waiting', opted_out: false })).toEqual(['plain', 'Waiting'])
  const totals = {
    ...{ queued: 0, submitting: 0, waiting: 0, completed: 5, replied: 4 },
    ...{ failed: 0, ambiguous: 0, cancelled: 0, suppressed: 0 },
  }
  const parts = new Map(partsOf(totals, [{ opted_out: 1 }]).map(({ label, count }) => [label, count]))
  expect([parts.get('Replied'), parts.get('Asked to stop')]).toEqual([3, 1])
  expect(repliedRate({ replies: 4, opt_outs: 1, reply_rate: 0.4 })).toBeCloseTo(0.3)
  expect(repliedRate({ replies: 0, opt_outs: 0, reply_rate: 0 })).toBe(0)
})
