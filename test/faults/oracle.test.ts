/** Tests of the oracle itself: it accepts honest runs and names every lie it was built to find. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type CallRecord, type Evidence, judge, kindOf, type OperationRow, type Violation } from './oracle.ts'
import { makeEvidence, plots, type Scene } from './story.ts'

const scene: fc.Arbitrary<Scene> = fc.record({
  kind: fc.constantFrom('send', 'send', 'send', 'start', 'read_state'),
  plot: fc.constantFrom(...plots),
  account: fc.nat(2),
  chat: fc.nat(3),
})
const scenes = fc.array(scene, { minLength: 1, maxLength: 40 })

test('honest runs pass', () => {
  fc.assert(
    fc.property(scenes, (drawn) => {
      expect(judge(makeEvidence(drawn))).toEqual([])
    }),
    { numRuns: 500 },
  )
})

/** Changes one thing that matches a row or an answer; undefined: this run has none. */
interface Lie {
  readonly what: string
  readonly promise: Violation['promise']
  change(evidence: Evidence): Evidence | undefined
}

function isSend(row: OperationRow): boolean {
  return kindOf(row) === 'send'
}

function changeRow(
  fits: (row: OperationRow, evidence: Evidence) => boolean,
  change: (row: OperationRow) => Partial<OperationRow>,
): Lie['change'] {
  return (evidence) => {
    const at = evidence.operations.findIndex((row) => fits(row, evidence))
    const row = evidence.operations[at]
    if (!row) return undefined
    return { ...evidence, operations: evidence.operations.with(at, { ...row, ...change(row) }) }
  }
}

function changeAnswer(
  fits: (asked: CallRecord) => boolean,
  change: (asked: CallRecord) => Partial<CallRecord>,
): Lie['change'] {
  return (evidence) => {
    const at = evidence.history.findIndex(fits)
    const asked = evidence.history[at]
    if (!asked) return undefined
    return { ...evidence, history: evidence.history.with(at, { ...asked, ...change(asked) }) }
  }
}

/** One more request with the same key, long after. */
function addAnswer(
  fits: (asked: CallRecord) => boolean,
  later: (asked: CallRecord) => Partial<CallRecord>,
): Lie['change'] {
  return (evidence) => {
    const asked = evidence.history.find(fits)
    if (!asked) return undefined
    const times = { asked_at: asked.asked_at + 1e6, answered_at: asked.asked_at + 2e6 }
    return { ...evidence, history: [...evidence.history, { ...asked, ...times, ...later(asked) }] }
  }
}

function repeatEntry(change: { readonly random_id?: string }): Lie['change'] {
  return (evidence) => {
    const entry = evidence.journal.find(({ kind }) => kind === 'send')
    return entry && { ...evidence, journal: [...evidence.journal, { ...entry, ...change }] }
  }
}

function dropEntry(fits: (row: OperationRow) => boolean): Lie['change'] {
  return (evidence) => {
    const row = evidence.operations.find((one) => isSend(one) && fits(one))
    const at = evidence.journal.findIndex(
      ({ account_id, random_id }) => account_id === row?.account_id && random_id === row?.random_id,
    )
    return row && at >= 0 ? { ...evidence, journal: evidence.journal.toSpliced(at, 1) } : undefined
  }
}

function wasAccepted(row: OperationRow, { journal }: Evidence): boolean {
  return journal.some(
    ({ account_id, random_id }) => account_id === row.account_id && random_id === row.random_id,
  )
}

const isGood = (asked: CallRecord) => asked.status === 200
const isGoodSend = (asked: CallRecord) => isGood(asked) && asked.kind === 'send'
const inState = (state: OperationRow['state']) => (row: OperationRow) => row.state === state

const lies: readonly Lie[] = [
  { what: 'accepted twice under one random id', promise: 'P1', change: repeatEntry({}) },
  { what: 'accepted again, without an operation', promise: 'P2', change: repeatEntry({ random_id: '7' }) },
  { what: 'one text under two random ids', promise: 'P1', change: repeatEntry({ random_id: '7' }) },
  ...(['start', 'read_state'] as const).map(
    (kind): Lie => ({
      what: `a ${kind} more than any operation can have made`,
      promise: 'P1',
      change: (evidence) => {
        const entry = evidence.journal.find((one) => one.kind === kind)
        // If a row was refused or is unknown, one more may be its own: another check finds that, or it is no lie.
        const clear = evidence.operations.every((row) => kindOf(row) !== kind || row.state === 'completed')
        return entry && clear ? { ...evidence, journal: [...evidence.journal, entry] } : undefined
      },
    }),
  ),
  {
    what: 'a refused start that happened',
    promise: 'P2',
    change: (evidence) => {
      const clear = evidence.operations.every((row) => kindOf(row) !== 'start' || row.state === 'completed')
      const started = changeRow(
        (row) => clear && kindOf(row) === 'start' && row.state === 'completed',
        () => ({ state: 'refused', reason: 'platform_refused' }),
      )
      return started(evidence)
    },
  },
  {
    what: 'two operations of one key',
    promise: 'P1',
    change: (evidence) => {
      const row = evidence.operations[0]
      return row && { ...evidence, operations: [...evidence.operations, { ...row, id: 'another' }] }
    },
  },
  {
    what: 'two successes that differ',
    promise: 'P1',
    change: addAnswer(isGood, ({ body }) => ({ body: { ...body, message_id: 'another' } })),
  },
  {
    what: 'two payloads under one key',
    promise: 'P1',
    change: addAnswer(isGood, () => ({ payload: { text: 'something else' } })),
  },
  ...(['refused', 'released', 'queued', 'submitting'] as const).map(
    (state): Lie => ({
      what: `accepted, and ${state}`,
      promise: 'P2',
      change: changeRow(wasAccepted, () => ({ state, reason: 'platform_refused' })),
    }),
  ),
  {
    what: 'accepted, and the row is gone',
    promise: 'P2',
    change: (evidence) => {
      const at = evidence.operations.findIndex((row) => wasAccepted(row, evidence))
      return at < 0 ? undefined : { ...evidence, operations: evidence.operations.toSpliced(at, 1) }
    },
  },
  {
    what: 'accepted, and then denied',
    promise: 'P2',
    change: addAnswer(
      ({ kind, status, code }) => kind === 'send' && status === 409 && code === 'outcome_ambiguous',
      () => ({ status: 403, code: 'chat_unavailable' }),
    ),
  },
  { what: 'completed out of nothing', promise: 'P3', change: dropEntry(inState('completed')) },
  {
    what: 'a read state completed out of nothing',
    promise: 'P3',
    change: changeRow(
      // Counted, not matched: one that is unknown in the same chat may be the one that was accepted.
      (row, { operations }) =>
        kindOf(row) === 'read_state' &&
        row.state === 'refused' &&
        operations.every((other) => kindOf(other) === 'send' || other.state !== 'ambiguous'),
      () => ({ state: 'completed' }),
    ),
  },
  {
    what: '200 without an operation',
    promise: 'P3',
    change: changeAnswer(
      ({ status, code }) => status === null && code === null,
      () => ({ key: 'unheard of', status: 200, body: {}, answered_at: 1 }),
    ),
  },
  {
    what: '200 for a refused operation',
    promise: 'P3',
    change: changeAnswer(
      ({ code, replayed }) => code === 'chat_unavailable' && replayed,
      () => ({ status: 200, code: null, body: {} }),
    ),
  },
  {
    what: '200 that names another operation',
    promise: 'P3',
    change: (evidence) => {
      const good = evidence.history.find(isGoodSend)
      const change = (asked: CallRecord) =>
        asked.key === good?.key && isGood(asked) ? { ...asked, body: { operation_id: 'another' } } : asked
      return good && { ...evidence, history: evidence.history.map(change) }
    },
  },
  {
    what: 'another body is stored than was answered',
    promise: 'P3',
    change: changeRow(
      (row, { history }) =>
        row.state === 'completed' && history.some((one) => isGood(one) && one.key === row.idempotency_key),
      () => ({ reply_body: { ok: true } }),
    ),
  },
  {
    what: 'sent to another chat',
    promise: 'P3',
    change: changeRow(wasAccepted, () => ({ chat_id: '5' })),
  },
  ...(
    [
      [409, 'account_not_ready'],
      [403, 'chat_unavailable'],
      [409, 'outcome_ambiguous'],
      [503, 'outcome_ambiguous'],
    ] as const
  ).map(
    ([status, code]): Lie => ({
      what: `a success, then ${status} ${code}`,
      promise: 'P3',
      change: addAnswer(isGood, () => ({ status, code, body: null })),
    }),
  ),
  {
    what: 'ambiguous without an attempt',
    promise: 'P4',
    change: changeRow(inState('ambiguous'), () => ({ attempt_no: 0 })),
  },
  {
    what: 'ambiguous without a token',
    promise: 'P4',
    change: changeRow(inState('ambiguous'), () => ({ attempt_token: null })),
  },
  ...(['refused', 'released'] as const).map(
    (state): Lie => ({
      what: `${state} without a reason`,
      promise: 'P4',
      change: changeRow(inState(state), () => ({ reason: null })),
    }),
  ),
  {
    what: 'called ambiguous, and only ever queued',
    promise: 'P4',
    change: changeAnswer(
      ({ code }) => code === 'session_unavailable',
      () => ({ status: 409, code: 'outcome_ambiguous' }),
    ),
  },
  {
    what: 'called ambiguous, and not even written down',
    promise: 'P4',
    change: addAnswer(
      ({ status }) => status === null,
      () => ({ key: 'unheard of', status: 409, code: 'outcome_ambiguous' }),
    ),
  },
  {
    what: 'ambiguous, and its owner lived and never wrote',
    promise: 'P4',
    change: (evidence) => {
      const row = evidence.operations.find(({ state }) => state === 'ambiguous')
      if (!row) return undefined
      const { alive = [], transitions = [], intended: all = [] } = evidence
      const by = transitions.findLast(({ operation_id }) => operation_id === row.id)?.by
      const intended = all.filter((token) => token !== row.attempt_token)
      return { ...evidence, intended, alive: by === undefined ? alive : [...alive, by] }
    },
  },
  ...(['session_unavailable', 'provider_unavailable'] as const).map(
    (code): Lie => ({
      what: `503 ${code}, and then the same attempt was accepted`,
      promise: 'P4',
      change: (evidence) => {
        // The only answer, given before the platform accepted.
        const keys = Map.groupBy(evidence.history, ({ kind, key }) => `${kind} ${key}`)
        const asked = evidence.history.find(
          (one) => isGoodSend(one) && keys.get(`${one.kind} ${one.key}`)?.length === 1,
        )
        const row = evidence.operations.find((one) => isSend(one) && one.idempotency_key === asked?.key)
        const at = evidence.journal.find((entry) => entry.random_id === row?.random_id)?.at
        if (!asked || !at) return undefined
        const times = { asked_at: Date.parse(at) - 5, answered_at: Date.parse(at) - 1 }
        const denied = { ...asked, ...times, status: 503, code, body: null }
        return { ...evidence, history: evidence.history.map((one) => (one === asked ? denied : one)) }
      },
    }),
  ),
  ...([1, -1] as const).map(
    (more): Lie => ({
      what: `${more > 0 ? 'one more' : 'one less'} counted than was completed`,
      promise: 'P6',
      change: (evidence) => {
        const [first, ...others] = evidence.counters ?? []
        return first && { ...evidence, counters: [{ ...first, sent: first.sent + more }, ...others] }
      },
    }),
  ),
  {
    what: 'completed, and counted nowhere',
    promise: 'P6',
    change: (evidence) => {
      const some = evidence.counters?.length
      return some ? { ...evidence, counters: evidence.counters?.slice(1) ?? [] } : undefined
    },
  },
  ...(['queued', 'submitting'] as const).map(
    (state): Lie => ({
      what: `${state} forever`,
      promise: 'P7',
      change: changeRow(
        (row) => row.state === 'released',
        () => ({ state }),
      ),
    }),
  ),
]

describe('the oracle finds', () => {
  test.each(lies)('$promise: $what', ({ promise, change: lie }) => {
    let found = 0
    fc.assert(
      fc.property(scenes, (drawn) => {
        const evidence = lie(makeEvidence(drawn))
        if (!evidence) return
        found++
        expect(judge(evidence).map((violation) => violation.promise)).toContain(promise)
      }),
      { numRuns: 200 },
    )
    expect(found).toBeGreaterThan(0)
  })
})

test('a restored database may lose an answer, but not undo what happened', () => {
  const evidence = makeEvidence([{ kind: 'send', plot: 'completed', account: 0, chat: 0 }])
  const [row] = evidence.operations
  const [asked] = evidence.history
  if (!row || !asked) throw new Error('The story is empty.')
  const late = {
    ...asked,
    asked_at: asked.asked_at + 1e6,
    status: 409,
    code: 'outcome_ambiguous',
    body: null,
  }
  const restored = {
    ...evidence,
    operations: [{ ...row, state: 'ambiguous', reply_status: null, reply_body: null } as const],
    history: [asked, late],
    counters: [],
    restored: true,
  }
  expect(judge(restored)).toEqual([])
  expect(judge({ ...restored, restored: false }).map(({ promise }) => promise)).toEqual(['P3', 'P3'])
  expect(judge({ ...restored, journal: [] }).map(({ promise }) => promise)).toEqual(['P3'])
  expect(judge({ ...restored, operations: [] }).map(({ promise }) => promise)).toEqual(['P2', 'P3'])
})
