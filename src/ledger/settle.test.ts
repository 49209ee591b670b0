/** The fences of the one way to end: for each state, which attempt may still settle an operation. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { sendMessage } from '../capabilities/messages/send.ts'
import { sql } from '../db/sql.ts'
import { newId } from '../lib/ids.ts'
import {
  byKind,
  type OperationKinds,
  operationKind,
  type SettledOperation,
  type State,
} from '../operation.ts'
import type { HeldLease } from './leases.ts'
import { closeByPerson, complete, type Ending, type Settlement, settle } from './settle.ts'

let rows: LedgerRows
let held: HeldLease
beforeAll(async () => {
  rows = await openLedgerRows()
  held = await rows.account()
})
afterAll(() => rows.close())

const endings = {
  completed: { to: 'completed', reply: { ok: true } },
  refused: { to: 'refused', refusal: 'chat_unavailable' },
  released: { to: 'released', reason: 'never_written' },
  ambiguous: { to: 'ambiguous', reason: 'timeout' },
} as const satisfies Record<string, Ending>
type To = keyof typeof endings
const tos = Object.keys(endings) as To[]

function settleOne(settlement: Settlement, kinds: OperationKinds = rows.app.operations) {
  return rows.db.transaction((tx) => settle(tx, kinds, [settlement]))
}

/** When the settling attempt is the row's own; undefined: it changes nothing. */
const withToken: Record<State, Partial<Record<To, State>>> = {
  queued: {},
  submitting: { completed: 'completed', refused: 'refused', released: 'released', ambiguous: 'ambiguous' },
  // The platform will refuse the next attempt the same way, so a late refusal lets the key run again.
  ambiguous: { completed: 'completed', refused: 'released', released: 'released' },
  completed: {},
  refused: {},
  released: {},
}
/** When the row is still queued. */
const withoutToken: Record<State, Partial<Record<To, State>>> = {
  queued: { refused: 'refused', released: 'released' },
  submitting: {},
  ambiguous: {},
  completed: {},
  refused: {},
  released: {},
}
const states = Object.keys(withToken) as State[]

describe("the row's own attempt settles", () => {
  test.each(states.flatMap((state) => tos.map((to) => [state, to] as const)))('%s: %s', async (state, to) => {
    const token = newId()
    const id = await rows.operation(held, { state, token })
    const expected = withToken[state][to]
    const changed = await settleOne({ id, token, ending: endings[to] })
    expect(changed.map(({ from_state, state }) => [from_state, state])).toEqual(
      expected ? [[state, expected]] : [],
    )
    expect((await rows.row(id)).state).toBe(expected ?? state)
  })
})

describe('another attempt settles', () => {
  test.each(states)('%s: nothing changes', async (state) => {
    const id = await rows.operation(held, { state, token: newId() })
    for (const to of tos) {
      expect(await settleOne({ id, token: newId(), ending: endings[to] })).toEqual([])
    }
    expect((await rows.row(id)).state).toBe(state)
  })
})

describe('no attempt settles', () => {
  test.each(states)('%s: only a queued row ends', async (state) => {
    for (const to of ['refused', 'released'] as const) {
      const id = await rows.operation(held, { state, token: newId() })
      const expected = withoutToken[state][to]
      expect(await settleOne({ id, token: null, ending: endings[to] })).toHaveLength(expected ? 1 : 0)
      expect((await rows.row(id)).state).toBe(expected ?? state)
    }
  })

  test('a caller who queued it for another time ends nothing', async () => {
    const id = await rows.operation(held, { queued_no: 2 })
    const ending = endings.released
    expect(await settleOne({ id, token: null, queued_no: 1, ending })).toEqual([])
    expect(await settleOne({ id, token: null, queued_no: 3, ending })).toEqual([])
    expect(await settleOne({ id, token: null, queued_no: 2, ending })).toHaveLength(1)
  })
})

test('many rows: those whose fence holds end, the others stay unchanged', async () => {
  const tokens = Array.from({ length: 30 }, () => newId())
  const ids = await Promise.all(tokens.map((token) => rows.operation(held, { state: 'submitting', token })))
  const settlements = ids.map((id, n): Settlement => {
    return { id, token: n % 3 === 0 ? newId() : (tokens[n] ?? null), ending: endings.ambiguous }
  })
  const changed = await rows.db.transaction((tx) => settle(tx, rows.app.operations, settlements))
  const expected = ids.filter((_, n) => n % 3 !== 0)
  expect(changed.map(({ id }) => id).toSorted()).toEqual(expected.toSorted())
})

/** A kind that stores its outcomes in a table of the test's own, or throws. */
function kindThat(settled: (told: readonly SettledOperation[]) => void): OperationKinds {
  return byKind([
    operationKind({
      kind: 'told',
      found_in_history: false,
      stopped_by: 'sends',
      forgettable: false,
      payload: z.unknown(),
      answer: z.unknown(),
      asks: () => false,
      prepare: async () => ({ kind: 'accepted', value: null }),
      submit: async () => ({ kind: 'accepted', value: null }),
      reply: (_, done) => done.map(() => ({})),
      store: async () => {},
      settled: async (tx, told) => {
        settled(told)
        for (const { id } of told)
          await tx.run(sql`update operations set hint_message_id = 7 where id = ${id}`)
      },
    }),
  ])
}

async function hint(id: string): Promise<number | null> {
  const row = await rows.db.one<{ hint: number | null }>(
    sql`select hint_message_id::int as hint from operations where id = ${id}`,
  )
  return row.hint
}

describe("the kind's own changes in the same transaction", () => {
  test('commit with the row', async () => {
    const token = newId()
    const id = await rows.operation(held, { kind: 'told', state: 'submitting', token })
    const told: unknown[] = []
    await settleOne(
      { id, token, ending: endings.refused },
      kindThat((own) => void told.push(...own)),
    )
    expect(told).toMatchObject([
      { id, from_state: 'submitting', state: 'refused', reason: 'platform_refused' },
    ])
    expect([(await rows.row(id)).state, await hint(id)]).toEqual(['refused', 7])
  })

  test('undo the row when they throw', async () => {
    const token = newId()
    const id = await rows.operation(held, { kind: 'told', state: 'submitting', token })
    const kinds = kindThat(() => {
      throw new Error('not now')
    })
    await expect(settleOne({ id, token, ending: endings.refused }, kinds)).rejects.toThrow('not now')
    expect([(await rows.row(id)).state, await hint(id)]).toEqual(['submitting', null])
  })

  test('also run when an operator closes the row', async () => {
    const id = await rows.operation(held, { kind: 'told', state: 'ambiguous', token: newId() })
    const told: unknown[] = []
    const kinds = kindThat((own) => void told.push(...own))
    const closed = await rows.db.transaction((tx) => closeByPerson(tx, kinds, { id, closed_as: 'sent' }))
    expect(closed).toMatchObject({ id, state: 'ambiguous', closed_as: 'sent' })
    expect(told).toMatchObject([{ id, from_state: 'ambiguous', state: 'ambiguous', closed_as: 'sent' }])
  })

  test('do not run for a row that is not ambiguous, which is not closed', async () => {
    const id = await rows.operation(held, { kind: 'told', state: 'submitting', token: newId() })
    const kinds = kindThat(() => {})
    expect(
      await rows.db.transaction((tx) => closeByPerson(tx, kinds, { id, closed_as: 'sent' })),
    ).toBeUndefined()
  })
})

/** A message that the platform has accepted, and that is not recorded yet. */
async function acceptedMessage() {
  const account = await rows.account()
  const token = newId()
  const id = await rows.operation(account, { state: 'submitting', token })
  const value = { message_id: '12', at: new Date().toISOString() }
  const { account_id } = account
  return { account_id, accepted: [{ operation: await rows.queued(id), public_id: id, token, value }] }
}
const sends = byKind([sendMessage])

test('a completion that is reported twice counts once', async () => {
  const { account_id, accepted } = await acceptedMessage()
  const once = await rows.db.transaction((tx) => complete(tx, sends, accepted))
  const again = await rows.db.transaction((tx) => complete(tx, sends, accepted))
  expect([once.length, again.length]).toEqual([1, 0])
  const days = await rows.db.rows(sql`select sent from account_days where account_id = ${account_id}`)
  expect(days).toEqual([{ sent: 1 }])
})

test('a message counts on the day it ended, also when the clock passes midnight before COMMIT', async () => {
  const { account_id, accepted } = await acceptedMessage()
  await rows.db.run(sql`insert into manual_clock (at) values ('2030-01-01T23:59:59Z')`)
  await rows.db.transaction(async (tx) => {
    await complete(tx, sends, accepted)
    await rows.db.run(sql`update manual_clock set at = '2030-01-02T00:00:01Z'`)
  })
  await rows.db.run(sql`delete from manual_clock`)
  const days = await rows.db.rows(sql`
    select day::text, sent from account_days where account_id = ${account_id}`)
  expect(days).toEqual([{ day: '2030-01-01', sent: 1 }])
})

test.each(['submitting', 'ambiguous'] as const)(
  'the database lets nothing but proof lead back what is %s, whoever writes it',
  async (state) => {
    const id = await rows.operation(held, { state, token: newId() })
    const set = (next: string, reason: string | null) =>
      rows.db.run(sql`update operations set state = ${next}, reason = ${reason} where id = ${id}`)
    for (const reason of ['withdrawn', null])
      await expect(set('released', reason)).rejects.toThrow('only proof leads back')
    await expect(set('queued', null)).rejects.toThrow('must not go')
    await set('released', 'never_written')
    expect(await rows.row(id)).toMatchObject({ state: 'released' })
  },
)
