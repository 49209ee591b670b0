/**
 * An account with very many chats: the listing survives waits and a killed worker without starting again, costs little
 * memory, and does not slow down sends of other accounts. Its own sends wait for a step of a page, and are bounded all the
 * same. `TEST_TELEGRAM_CHATS=50000` runs it in full and bounds memory and sends as well.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { quantile } from '../bench/harness.ts'
import { sql } from '../src/db/sql.ts'
import type { World } from '../src/platform/sandbox/world.ts'
import { until } from './harness/process.ts'
import { openTelegramStage, peakRss, type TelegramStage } from './platform/telegram-stage.ts'

const chats = Number(process.env.TEST_TELEGRAM_CHATS ?? 2_000)
const isFull = chats >= 50_000
const pageChats = 100
const waitEvery = 20
/** In full the waits are the rounds without a sync, long enough for many sends. */
const waitSeconds = isFull ? 4 : 1
/** For a hang. */
const syncMsMax = 1_500_000
const mib = 1024 * 1024
/**
 * How many times as long the 99th of 100 sends may take while an account lists its chats, as without that. The account's own wait
 * for the transaction of a step of its page (`chatsStep` in src/worker/sync.ts), and pages come many times as fast here as from
 * Telegram: the bounds of its own and of all are for a step that became much longer, or that locks more than its account.
 */
const slowerMax = { other: 1.5, all: 3, own: 4 }

const user = { account_id: 'large', phone: '+9996699999' }
/** The person who wrote last, in the first page. */
let newest: number

function seed(world: World): void {
  world.addAccount({ ...user, name: 'Large desk' })
  const begin = Date.UTC(2026, 0, 1)
  for (let n = 0; n < chats; n++) {
    const { person_id } = world.addPerson({ name: `Person ${n}`, username: `person_${n}` })
    newest = person_id
    const at = new Date(begin + n * 60_000)
    world.seedMessage({ account_id: 'large', chat_id: person_id, person_id, text: `Hello ${n}`, at })
  }
}

let stage: TelegramStage
/** The pages that workers have asked for, by cursor, in order. */
let asked: () => string[]
/** What killed workers have printed. */
let printed = ''
/** From the kill until the next worker drives both accounts. */
let isRestarting = false

beforeAll(async () => {
  stage = await openTelegramStage({
    seed,
    workPatches: [
      { marker: 'limit: pace of the sync', replace: `const paceMsDefault = ${isFull ? 100 : 20}` },
      {
        marker: 'guard: the sync continues at its page',
        insert:
          "if (phase === 'chats') process.stderr.write(held.account_id + ' asks for ' + cursor + '\\n')",
      },
    ],
  })
})
afterAll(() => stage.close())

interface SyncRow {
  readonly phase: string
  readonly chats_total: number
}

async function syncOf(account_id: string): Promise<SyncRow | undefined> {
  return stage.db.maybe<SyncRow>(sql`
    select phase, chats_total from account_sync where account_id = ${account_id}`)
}

/** Kills the worker in the middle of the list, not next to a wait: that page is asked for again anyhow. */
async function killInTheMiddle(account_id: string, small: string): Promise<void> {
  await until('the middle is reached', syncMsMax, async () => {
    const { chats_total = 0 } = (await syncOf(account_id)) ?? {}
    const sinceWait = asked().length % waitEvery
    return chats_total > chats / 3 && sinceWait > 3 && sinceWait < 13
  })
  isRestarting = true
  await stage.killWorker()
  printed += stage.worker.stderr()
  await stage.startWorker()
  for (const id of [small, account_id]) await stage.untilLive(id)
  isRestarting = false
}

/** Whether the account's reading is in a wait at this moment. */
async function isWaiting(account_id: string): Promise<boolean> {
  const row = await stage.db.maybe(sql`
    select from account_hosts where account_id = ${account_id} and reading_flood_until > domain_now()`)
  return row !== undefined
}

interface Send {
  /** Of the list of chats. */
  readonly during: 'listing' | 'waiting'
  /** The account whose chats are listed, or another one. */
  readonly by: 'own' | 'other'
  readonly ms: number
}

/** In milliseconds, and how many times as long as without a list. */
function p99Of(sends: readonly Send[]) {
  const of = (during: Send['during']) =>
    quantile(
      sends.filter((send) => send.during === during).map(({ ms }) => ms),
      0.99,
    )
  const [listing, waiting] = [of('listing'), of('waiting')]
  return { sends: sends.length, listing, waiting, slower: listing / waiting }
}

async function measureSends(
  targets: readonly (readonly [account_id: string, person_id: number])[],
  account_id: string,
  isOver: () => boolean,
): Promise<Send[]> {
  const times: Send[] = []
  for (let n = 0; !isOver(); n++) {
    const [from, to] = targets[n % targets.length] ?? ['', 0]
    const before = await isWaiting(account_id)
    const wasRestarting = isRestarting
    const begunAt = performance.now()
    const { status } = await stage.send(from, to, `message ${n}`)
    const ms = performance.now() - begunAt
    // Not those that waited for the next worker.
    if (status === 200 && !wasRestarting && !isRestarting && (await isWaiting(account_id)) === before) {
      times.push({ during: before ? 'waiting' : 'listing', by: from === account_id ? 'own' : 'other', ms })
    }
    await sleep(20)
  }
  return times
}

test(`an account with ${chats} chats is listed page by page, each asked for at most twice`, {
  timeout: syncMsMax,
}, async () => {
  const small = await stage.account()
  const [person = 0] = await stage.people(small, 1)
  for (let n = 0; n < 50; n++) expect((await stage.send(small, person, `warm ${n}`)).status).toBe(200)
  const rssBefore = await stage.workerRss()
  for (let n = 0; n <= chats / pageChats / (waitEvery - 1); n++) {
    const rest = { on: 'chats', account_id: 'large' } as const
    await stage.fault({ ...rest, fault: 'slow', seconds: 0, times: waitEvery - 1 })
    await stage.fault({ ...rest, fault: 'flood_wait', seconds: waitSeconds, times: 1 })
  }
  let large = ''
  asked = () => {
    const lines = `${printed}${stage.worker.stderr()}`.matchAll(/^(\S+) asks for (\S+)$/gm)
    return [...lines].flatMap(([, id, cursor = '']) => (id === large ? [cursor] : []))
  }
  let isListed = false
  let times: Send[] = []
  const most = await peakRss(stage, async () => {
    large = await stage.account(user)
    const targets = [
      [small, person],
      [large, newest],
    ] as const
    const sending = measureSends(targets, large, () => isListed)
    try {
      await killInTheMiddle(large, small)
      await until('every chat is listed', syncMsMax, async () => (await syncOf(large))?.phase !== 'chats')
    } finally {
      isListed = true
      times = await sending
    }
    if (isFull) await until('it is synced', syncMsMax, async () => (await syncOf(large))?.phase === 'done')
  })

  const { known } = await stage.db.one<{ known: number }>(sql`
    select count(*)::int as known from chats where account_id = ${large} and last_message_id is not null`)
  expect(known).toBe(chats)
  const counts = [...Map.groupBy(asked(), (cursor) => cursor).values()].map(({ length }) => length)
  const p99 = {
    other: p99Of(times.filter(({ by }) => by === 'other')),
    all: p99Of(times),
    own: p99Of(times.filter(({ by }) => by === 'own')),
  }
  const measured = {
    pages: counts.length,
    asked: asked().length,
    mibMore: Math.round((most - rssBefore) / mib),
    p99,
  }
  process.stdout.write(`${JSON.stringify(measured)}\n`)
  expect(counts.length).toBeGreaterThanOrEqual(chats / pageChats)
  expect(Math.max(...counts)).toBe(2)
  await stage.expectNothingTwice()
  // Few chats cost less than what the start of the second worker varies by.
  if (isFull) {
    expect(most - rssBefore).toBeLessThan(64 * mib)
    for (const whose of ['other', 'all', 'own'] as const)
      expect(p99[whose].slower, whose).toBeLessThanOrEqual(slowerMax[whose])
  }
})
