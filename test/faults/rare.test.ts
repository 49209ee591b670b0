/** Tests of the counters that say whether a run reached the states it must reach. */
import { describe, expect, test } from 'vitest'
import type { Transition } from './oracle.ts'
import { countRare, listMissing } from './rare.ts'

describe('rare states', () => {
  const change = (to: Transition['to'], more: Partial<Transition> = {}): Transition => ({
    operation_id: 'a',
    from: 'submitting',
    to,
    reason: null,
    reconciled: false,
    by: 'work-0.1',
    at: 0,
    ...more,
  })
  const boundary = change('submitting', { from: 'queued' })
  test.each<[string, Transition[]]>([
    ['ambiguous_by_timeout', [boundary, change('ambiguous', { at: 4_000, reason: 'timeout' })]],
    ['ambiguous_by_answer', [boundary, change('ambiguous', { at: 4_000, reason: 'unknown' })]],
    ['ambiguous_by_lease', [boundary, change('ambiguous', { at: 61_000, by: 'work-1.1' })]],
    ['late_upgrade', [boundary, change('completed', { from: 'ambiguous' })]],
    ['never_written', [boundary, change('released', { reason: 'never_written' })]],
    ['flood_release', [boundary, change('released', { reason: 'platform_refused' })]],
    ['refused', [boundary, change('refused')]],
    ['withdrawn', [change('released', { from: 'queued', reason: 'withdrawn' })]],
    ['run_again', [change('queued', { from: 'released' })]],
    ['journal_replay', [boundary, change('completed', { by: 'work-0.2' })]],
  ])('%s is counted', (name, transitions) => {
    const rare = countRare({ journal: [], operations: [], history: [], transitions })
    expect(Object.entries(rare).filter(([, count]) => count > 0)).toEqual([[name, 1]])
  })

  test('a late upgrade by the platform itself is counted as proven by it', () => {
    const proof = change('completed', { from: 'ambiguous', reconciled: true })
    const rare = countRare({ journal: [], operations: [], history: [], transitions: [boundary, proof] })
    expect(rare).toMatchObject({ late_upgrade: 1, proven_by_platform: 1 })
  })

  test('an echo seen by another process is not a replay, and a state that never occurred is missing', () => {
    const echo = change('completed', { by: 'work-1.1', reconciled: true })
    const evidence = { journal: [], operations: [], history: [], transitions: [boundary, echo] }
    const rare = countRare(evidence, { before: 1, after: 0 })
    expect(listMissing(rare, ['journal_replay', 'commit_lost_undone', 'commit_lost_done'])).toEqual([
      'journal_replay',
      'commit_lost_done',
    ])
  })
})
