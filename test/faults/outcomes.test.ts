/**
 * What the platform and the database can do wrong, as a table: what the row says, what the first caller and the one who
 * repeats are told, and how often the platform accepted it.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import type { FaultKind, FaultTarget } from '../../src/platform/sandbox/faults.ts'
import { endProcesses, runParley, until } from '../harness/process.ts'
import { startClients, type Wanted } from './clients.ts'
import type { Commit, Fate } from './lossy.ts'
import type { Asked, Kind } from './oracle.ts'
import { openPlant, type Plant } from './plant.ts'
import { makeRandom } from './random.ts'
import { Scene, told } from './scene.ts'

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

const unknown = { first: '503 outcome_ambiguous', repeat: '409 outcome_ambiguous' }
const done = { row: 'completed', first: '200', repeat: '200 replayed', accepted: 1 }
/** The first caller was told that nobody knows; then it became known. */
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

/** The platform shows the random id of what was sent. What it says of the rest proves nothing. */
const onCalls: readonly (readonly [FaultKind, number, Readonly<Record<Kind, Expected>>])[] = [
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
    { send: upgraded, start: { ...silent, accepted: 1 }, read_state: { ...silent, accepted: 1 } },
  ],
  ['drop_after', 0, { send: upgraded, start: lost, read_state: lost }],
  ['freeze', 2, { send: done, start: done, read_state: done }],
  // Longer than an answer may take: it is done late, once, and the late answer tells.
  ['freeze', 22, { send: upgraded, start: upgraded, read_state: upgraded }],
]

const table: readonly Row[] = [
  ...onCalls.flatMap(([fault, seconds, expected]) =>
    (['send', 'start', 'read_state'] as const).map((operation) => {
      return { operation, on: operation, fault, seconds, ...expected[operation] }
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
/** What becomes of the next COMMIT of this kind. */
let cut: { readonly at: keyof Commit; readonly fate: Fate } | undefined

beforeAll(async () => {
  plant = await openPlant({
    accounts: table.length,
    people: 1,
    lossy: (commit) => {
      if (!cut || !commit[cut.at]) return 'pass'
      const { fate } = cut
      cut = undefined
      return fate
    },
  })
  scene = new Scene(plant)
})
afterAll(async () => {
  await plant?.close()
  await endProcesses()
})

function wantedOf(operation: Kind, account: number): Wanted | Promise<Wanted> {
  if (operation === 'send') return scene.send({ account })
  return operation === 'start' ? scene.start({ account }) : scene.readState({ account })
}

async function rowOf({ key }: Wanted): Promise<string> {
  const row = await plant.db.maybe<{ state: string; reason: string | null; detail: string | null }>(sql`
    select state, reason, detail from operations where idempotency_key = ${key}`)
  return row ? [row.state, row.reason, row.detail].filter(Boolean).join(' ') : 'none'
}

/** The row as it should be, or as it is when time is up. */
async function settledRow(wanted: Wanted, expected: string): Promise<string> {
  await until('the row has settled', 15_000, async () => (await rowOf(wanted)) === expected).catch(() => {})
  return rowOf(wanted)
}

const say = (asked: Asked) => told(asked).join(' ')

describe('what the platform does wrong', () => {
  interface Result extends Pick<Row, 'row' | 'first' | 'repeat' | 'accepted'> {
    readonly wanted: Wanted
  }
  let results: readonly Promise<Result>[]

  async function run(row: Row, account: number): Promise<Result> {
    const wanted = await wantedOf(row.operation, account)
    const { on, fault, seconds } = row
    await plant.fault({ on, fault, seconds, account_id: wanted.account_id })
    const first = await scene.ask(wanted)
    const settled = await settledRow(wanted, row.row)
    if (fault === 'flood_wait') await sleep(seconds * 1_000)
    const repeat = await scene.ask(wanted)
    const accepted = await scene.accepted(wanted)
    return { wanted, row: settled, first: say(first), repeat: say(repeat), accepted }
  }

  // A timeout takes twenty seconds of an account's time: every row has an account of its own, and all run at once.
  beforeAll(() => {
    results = table.map(run)
    for (const result of results) result.catch(() => {})
  })

  test.each(table.map((row, at) => [row.on, row.fault, row.seconds, row.operation, row, at] as const))(
    '%s: %s %d: %s',
    async (on, _fault, _seconds, operation, row, at) => {
      const { wanted, ...result } = (await results[at]) as Result
      const { row: expected, first, repeat, accepted } = row
      expect(result).toEqual({ row: expected, first, repeat, accepted })
      if (on !== 'updates' || operation !== 'send') return
      // Told late or twice, it is one message.
      await sleep(row.seconds * 1_000)
      const stored = await plant.db.rows(sql`
        select id from messages where account_id = ${wanted.account_id} and text = ${wanted.payload.text}`)
      expect(stored).toHaveLength(1)
    },
    60_000,
  )

  test('the oracle finds nothing', async () => {
    await Promise.all(results)
    expect(await scene.judge()).toEqual([])
  }, 60_000)
})

describe('what the database does wrong', () => {
  const rows: readonly (readonly [keyof Commit, Fate, Expected])[] = [
    ['boundary', 'before', done],
    [
      'boundary',
      'after',
      {
        row: 'released never_written lost_commit',
        first: '503 session_unavailable',
        repeat: '200',
        accepted: 1,
      },
    ],
    ['completion', 'before', done],
    ['completion', 'after', done],
  ]

  test.each(
    rows.flatMap(([at, fate, expected]) =>
      (['send', 'start', 'read_state'] as const).map((operation) => [at, fate, operation, expected] as const),
    ),
  )(
    'the connection is cut at the COMMIT of the %s, %s it is done: %s',
    async (at, fate, operation, expected) => {
      await plant.clearFaults()
      const wanted = await wantedOf(operation, 9)
      const before = await scene.accepted(wanted)
      cut = { at, fate }
      const first = await scene.ask(wanted)
      expect(cut).toBeUndefined()
      const row = await settledRow(wanted, expected.row)
      const repeat = await scene.ask(wanted)
      const accepted = (await scene.accepted(wanted)) - before
      expect({ row, first: say(first), repeat: say(repeat), accepted }).toEqual(expected)
      expect(await scene.judge()).toEqual([])
    },
  )

  test("the lease is somebody else's: nobody is looked up again and again", async () => {
    const wanted = await scene.start({ account: 9 })
    const lookups = async () => {
      const { count } = await plant.db.one<{ count: number }>(sql`
        select coalesce(sum(lookups), 0)::int as count from account_days where account_id = ${wanted.account_id}`)
      return count
    }
    const before = await lookups()
    await plant.db.run(sql`
      update account_hosts set lease_owner = gen_random_uuid(), lease_until = clock_timestamp() + interval '2 s'
      where account_id = ${wanted.account_id}`)
    expect(say(await scene.ask(wanted))).toBe('200')
    expect((await lookups()) - before).toBeLessThanOrEqual(4)
  })

  test('one key is asked for by many at once: one of them runs, the others are told so', async () => {
    const wanted = Array.from({ length: 24 }, (_, account) => scene.send({ account }))
    const crowds = await Promise.all(
      wanted.map((one) => Promise.all(Array.from({ length: 12 }, () => scene.ask(one)))),
    )
    for (const answers of crowds) {
      expect(answers.filter((asked) => say(asked) === '200')).toHaveLength(1)
      for (const asked of answers)
        expect(['200', '200 replayed', '409 operation_in_progress']).toContain(say(asked))
    }
    expect(await scene.judge()).toEqual([])
  })

  test('it is restarted under load: everything ends, and was done once', async () => {
    const clients = startClients(plant, { random: makeRandom(11), count: 40, kinds: [['send', 1]] })
    for (let restarts = 0; restarts < 4; restarts++) {
      await sleep(1_000)
      await plant.postgres.stop()
      await plant.postgres.start()
    }
    await sleep(1_000)
    await clients.stop()
    await plant.settled()
    await plant.untilReady()
    const during = clients.history.length
    expect(clients.history.filter(({ status }) => status === 500)).toEqual([])
    expect(clients.history.some(({ status }) => status === 503)).toBe(true)
    await clients.repeat()
    for (const asked of clients.history.slice(during)) expect(['200 replayed', '200']).toContain(say(asked))
    scene.history.push(...clients.history)
    expect(await scene.judge()).toEqual([])
  }, 60_000)

  test('an older copy takes its place while messages go out: none goes out twice', async () => {
    const copy = join(plant.directory, 'copy')
    await plant.postgres.stop()
    await plant.postgres.copy(copy)
    await plant.postgres.start()
    await plant.untilReady()
    const clients = startClients(plant, { random: makeRandom(12), count: 12, prefix: 'older' })
    await sleep(6_000)
    await plant.postgres.stop()
    await plant.postgres.restore(copy)
    await plant.postgres.start()
    await until('sending is switched off', 20_000, async () => {
      return plant.db.maybe(sql`select 1 from settings where name = 'dispatch' and value = 'false'`)
    })
    const { length: accepted } = await plant.journal()
    await sleep(2_000)
    await clients.stop()
    expect(await plant.journal()).toHaveLength(accepted)
    await plant.settled()
    const url = plant.postgres.url('plant', { name: 'operator' })
    const env = { DATABASE_URL: url, PARLEY_SECRET: 'a secret of the plant that is long enough' }
    expect(await runParley(['dispatch', 'on'], env)).toMatchObject({ code: 0 })
    await plant.untilReady()
    await sleep(1_500)
    const during = clients.history.length
    await clients.repeat()
    const answers = new Set(clients.history.slice(during).map(say))
    expect(answers).toContain('200 replayed')
    for (const answer of answers) {
      expect(['200 replayed', '200', '409 outcome_ambiguous', '429 rate_limited']).toContain(answer)
    }
    await plant.settled()
    scene.history.push(...clients.history)
    expect(await scene.judge({ restored: true })).toEqual([])
  }, 90_000)
})
