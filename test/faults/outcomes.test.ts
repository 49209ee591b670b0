/**
 * What the platform can do wrong, as a table: the row's state, the answers to the first caller and to the repeat, and
 * how often the platform accepted it. What the database can do wrong is in outcomes-database.test.ts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import type { FaultKind, FaultTarget } from '../../src/platform/sandbox/faults.ts'
import { endProcesses } from '../harness/process.ts'
import type { PlannedCall } from './clients.ts'
import type { Kind } from './oracle.ts'
import type { Patch } from './patch.ts'
import { openPlant, type Plant } from './plant.ts'
import { Scene, summaryText } from './scene.ts'

interface Row {
  readonly operation: Kind
  readonly on: FaultTarget
  readonly fault: FaultKind
  readonly seconds: number
  /** Its state, reason and detail before the repeat. */
  readonly row: string
  readonly first: string
  readonly repeat: string
  /** In the end. */
  readonly accepted: number
}

/** Less than is shipped, and more than a busy machine takes for an answer. */
const answerSeconds = 8
const briefAnswer: Patch = {
  marker: 'limit: answer of the platform',
  replace: `const answerMsMax = { text: ${answerSeconds}_000, file: 100_000 }`,
}

const unknown = { first: '503 outcome_ambiguous', repeat: '409 outcome_ambiguous' }
const done = { row: 'completed', first: '200', repeat: '200 replayed', accepted: 1 }
/** The first caller got an unknown outcome; then it became known. */
const upgraded = { ...done, first: '503 outcome_ambiguous' }
const unavailable = { row: 'ambiguous unknown The platform is unavailable.', ...unknown, accepted: 0 }
const lost = { row: 'ambiguous unknown The connection was lost.', ...unknown, accepted: 1 }
const silent = { row: 'ambiguous timeout timeout', ...unknown }
const refused = (code: string, status: number) => ({
  row: `refused platform_refused ${code}`,
  first: `${status} ${code}`,
  repeat: `${status} ${code} replayed`,
  accepted: 0,
})
const flooded = (status: number) => ({
  row: 'released platform_refused flood_wait',
  first: `${status} flood_wait`,
  repeat: '200',
  accepted: 1,
})

type Expected = Pick<Row, 'row' | 'first' | 'repeat' | 'accepted'>

/** The platform shows the random id of what was sent. What it shows of the rest proves nothing. */
const onCalls: readonly (readonly [FaultKind, number, Readonly<Partial<Record<Kind, Expected>>>])[] = [
  [
    'refuse',
    0,
    {
      send: refused('chat_unavailable', 403),
      start: refused('identity_ineligible', 409),
      read_state: refused('chat_unavailable', 403),
    },
  ],
  ['flood_wait', 2, { send: flooded(503), start: flooded(429), read_state: flooded(429) }],
  ['unavailable', 0, { send: unavailable, start: unavailable, read_state: unavailable }],
  ['slow', 1, { send: done, start: done, read_state: done }],
  [
    'timeout_before',
    0,
    {
      send: { ...silent, accepted: 0 },
      start: { ...silent, accepted: 0 },
      read_state: { ...silent, accepted: 0 },
    },
  ],
  [
    'timeout_after',
    0,
    // The echo arrived before: the outcome may be known by the time the caller is answered.
    {
      send: { ...upgraded, first: '503 outcome_ambiguous | 200' },
      start: { ...silent, accepted: 1 },
      read_state: { ...silent, accepted: 1 },
    },
  ],
  ['drop_after', 0, { start: lost, read_state: lost }],
  ['freeze', 2, { send: done, start: done, read_state: done }],
  // Longer than an answer may take: it is done late, once, and the late answer says so.
  ['freeze', 2 * answerSeconds, { send: upgraded, start: upgraded, read_state: upgraded }],
]

const table: readonly Row[] = [
  ...onCalls.flatMap(([fault, seconds, expected]) =>
    (['send', 'start', 'read_state'] as const).flatMap((operation) => {
      const row = expected[operation]
      return row ? [{ operation, on: operation, fault, seconds, ...row }] : []
    }),
  ),
  ...(['late', 'twice'] as const).flatMap((fault) =>
    (['send', 'read_state'] as const).map((operation) => {
      return { operation, on: 'updates' as const, fault, seconds: 2, ...done }
    }),
  ),
]

let plant: Plant
let scene: Scene

beforeAll(async () => {
  plant = await openPlant({ accounts: table.length + 1, people: 1, patches: [briefAnswer] })
  scene = new Scene(plant)
})
afterAll(async () => {
  await plant?.close()
  await endProcesses()
})

describe('what the platform does wrong', () => {
  interface Result extends Pick<Row, 'row' | 'first' | 'repeat' | 'accepted'> {
    readonly wanted: PlannedCall
  }
  let results: readonly Promise<Result>[]

  async function run(row: Row, account: number): Promise<Result> {
    const wanted = await scene.want(row.operation, account)
    const { on, fault, seconds } = row
    await plant.fault({ on, fault, seconds, account_id: wanted.account_id })
    const first = await scene.ask(wanted)
    const settled = await scene.settled(wanted, row.row)
    if (fault === 'flood_wait') await sleep(seconds * 1_000)
    const repeat = await scene.ask(wanted)
    const accepted = await scene.accepted(wanted)
    return { wanted, row: settled, first: summaryText(first), repeat: summaryText(repeat), accepted }
  }

  // A timeout takes seconds of an account's time: every row has its own account, and all run at once.
  beforeAll(() => {
    results = table.map(run)
    for (const result of results) result.catch(() => {})
  })

  test.each(table.map((row, at) => [row.on, row.fault, row.seconds, row.operation, row, at] as const))(
    '%s: %s %d: %s',
    async (on, _fault, _seconds, operation, row, at) => {
      const { wanted, first, ...result } = (await results[at]) as Result
      const { row: expected, repeat, accepted } = row
      expect(result).toEqual({ row: expected, repeat, accepted })
      expect(row.first.split(' | ')).toContain(first)
      if (on !== 'updates' || operation !== 'send') return
      // Delivered late or twice, it is one message.
      await sleep(row.seconds * 1_000)
      const stored = await plant.db.rows(sql`
        select id from messages where account_id = ${wanted.account_id} and text = ${wanted.payload.text}`)
      expect(stored).toHaveLength(1)
    },
    60_000,
  )

  // Once the account has reconnected, its echo shows that the message was sent. If that came before the first
  // caller's answer, the answer would be 200, and just as true: so the platform refuses the account until then.
  test('send: drop_after 0: send', async () => {
    await Promise.all(results)
    const wanted = scene.send({ account: table.length })
    const { account_id } = wanted
    await plant.fault({ on: 'connect', fault: 'unavailable', times: 0, account_id })
    await plant.fault({ on: 'send', fault: 'drop_after', account_id })
    const first = await scene.ask(wanted)
    await plant.clearFaults()
    const row = await scene.settled(wanted, upgraded.row)
    const repeat = await scene.ask(wanted)
    const accepted = await scene.accepted(wanted)
    expect({ row, first: summaryText(first), repeat: summaryText(repeat), accepted }).toEqual(upgraded)
  })

  test('the oracle finds nothing', async () => {
    await Promise.all(results)
    expect(await scene.judge()).toEqual([])
  }, 180_000)
})
