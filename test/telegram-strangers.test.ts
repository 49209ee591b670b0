/**
 * Strangers who write in supergroups of an account: they cost no commit, no row and no memory, and a reply in a private chat is
 * stored as before. `TEST_STRANGERS=6000` runs it in full and prints what PostgreSQL counted beside windows without strangers.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { quantile } from '../bench/harness.ts'
import { sql } from '../src/db/sql.ts'
import { until } from './harness/process.ts'
import { msMax, openTelegramStage, peakRss, type TelegramStage } from './platform/telegram-stage.ts'

const posts = Number(process.env.TEST_STRANGERS ?? 600)
const isFull = posts >= 6_000
const groups = 10
const rounds = 6
/** Few at a time, so that the replies of a round arrive between them. */
const burst = 10
const repliesEach = isFull ? 20 : 3
const mib = 1024 * 1024

const user = { account_id: 'busy', phone: '+9996688888' }
let stage: TelegramStage
let account_id: string
let person: number
let channels: number[]

beforeAll(async () => {
  stage = await openTelegramStage()
  await stage.ask('addAccount', { ...user, name: 'Sales desk' })
  person = await stage.person()
  await reply('Hello')
  channels = []
  for (let n = 0; n < groups; n++) {
    const wanted = { title: `Group ${n}`, account_ids: [user.account_id] }
    channels.push(((await stage.ask('addChannel', wanted)) as { channel_id: number }).channel_id)
  }
  account_id = await stage.account(user)
  await until('the past is synced', msMax, async () => {
    const found = await stage.db.maybe(sql`
      select from account_sync where account_id = ${account_id} and phase = 'done'`)
    return found !== undefined
  })
})
afterAll(() => stage.close())

async function reply(text: string): Promise<void> {
  await stage.ask('writeMessage', { account_id: user.account_id, person_id: person, text })
}

let replies = 0

/** Milliseconds from a person's message until it is stored. */
async function timeReply(): Promise<number> {
  const text = `Reply ${++replies}`
  const begunAt = performance.now()
  await reply(text)
  const isStored = async () => {
    const found = await stage.db.maybe(sql`
      select from messages where account_id = ${account_id} and text = ${text}`)
    return found !== undefined
  }
  await until('the reply is stored', msMax, isStored, 2)
  return performance.now() - begunAt
}

let strangers = 0

/** At least this number of posts by strangers, in all groups together, and for as long as something else needs them. */
async function post(count: number, isNeeded: () => boolean = () => false): Promise<void> {
  for (let posted = 0; posted < count || isNeeded(); posted += burst) {
    const channel_id = channels[(strangers / burst) % groups]
    const person_id = 5_000_000_000 + strangers
    strangers += burst
    await stage.ask('writeInChannel', { channel_id, person_id, text: 'Ahoy', count: burst })
    await sleep(20)
  }
}

interface Count {
  readonly commits: number
  /** Transactions that wrote something. */
  readonly writes: number
  /** What the host of the account has written. */
  readonly hosted: number
}

/** The server's counters. Sessions report their commits within seconds, whatever they did in them; writes count at once. */
async function readCount(): Promise<Count> {
  return stage.db.one<Count>(sql`
    select xact_commit::int as commits, pg_snapshot_xmax(pg_current_snapshot())::text::bigint::int as writes,
      (select writes::int from account_hosts where account_id = ${account_id}) as hosted
    from pg_stat_database where datname = current_database()`)
}

async function countDuring(work: () => Promise<void>): Promise<Count> {
  const before = await readCount()
  await work()
  const after = await readCount()
  return {
    commits: after.commits - before.commits,
    writes: after.writes - before.writes,
    hosted: after.hosted - before.hosted,
  }
}

async function countKept(): Promise<{ peers: number; contacts: number; chats: number }> {
  return stage.db.one(sql`
    select (select count(*)::int from platform_peers where account_id = ${account_id}) as peers,
      (select count(*)::int from contacts where account_id = ${account_id}) as contacts,
      (select count(*)::int from chats where account_id = ${account_id}) as chats`)
}

const sum = (counts: readonly Count[], of: keyof Count) => counts.reduce((all, each) => all + each[of], 0)

test(`${posts} messages of strangers in ${groups} supergroups cost nothing`, {
  timeout: 900_000,
}, async () => {
  for (let n = 0; n < 5; n++) await timeReply()
  const kept = await countKept()
  const rssBefore = await stage.workerRss()
  const windows = { busy: [] as Count[], idle: [] as Count[] }
  const times = { without: [] as number[], beside: [] as number[] }
  const each = posts / 2 / rounds
  const most = await peakRss(stage, async () => {
    // First without replies. The one at the end comes over the same connection, so it is stored after everything before it.
    const { hosted } = await countDuring(async () => {
      for (let n = 0; n < rounds; n++) {
        const begunAt = performance.now()
        windows.busy.push(await countDuring(() => post(each)))
        const ms = performance.now() - begunAt
        windows.idle.push(await countDuring(() => sleep(ms)))
      }
      await timeReply()
    })
    expect(hosted - 1).toBeLessThanOrEqual(posts / 2 / 100)
    expect(await countKept()).toEqual(kept)

    for (let n = 0; n < rounds; n++) {
      for (let reply = 0; reply < repliesEach; reply++) times.without.push(await timeReply())
      let isTiming = true
      const posting = post(each, () => isTiming)
      try {
        for (let reply = 0; reply < repliesEach; reply++) times.beside.push(await timeReply())
      } finally {
        isTiming = false
        await posting
      }
    }
    // The reply after them all proves that the session lasted.
    await timeReply()
  })
  expect(await countKept()).toEqual(kept)
  expect(stage.worker.stdout()).not.toContain('the session of an account was lost')
  const median = { without: quantile(times.without, 0.5), beside: quantile(times.beside, 0.5) }
  const more = (of: keyof Count) => sum(windows.busy, of) - sum(windows.idle, of)
  const measured = {
    posts: strangers,
    more: { commits: more('commits'), writes: more('writes'), hosted: more('hosted') },
    idle: { commits: sum(windows.idle, 'commits'), writes: sum(windows.idle, 'writes') },
    replies: { without: times.without.length, beside: times.beside.length, median },
    ratio: median.beside / median.without,
    mib: [rssBefore, most, await stage.workerRss()].map((bytes) => Math.round(bytes / mib)),
  }
  process.stdout.write(`${JSON.stringify(measured)}\n`)
  expect(strangers).toBeGreaterThanOrEqual(posts)
  expect(times.beside).toHaveLength(times.without.length)
  // Few messages cost less than what a window varies by, and a few replies say nothing of their time.
  if (isFull) {
    expect(measured.more.writes).toBeLessThanOrEqual(posts / 2 / 100)
    // Loops of the service commit about 40 times a second, reported late: a commit for every tenth message would show.
    expect(measured.more.commits).toBeLessThanOrEqual(posts / 2 / 10)
    expect(measured.ratio).toBeLessThanOrEqual(1.5)
    expect(most - rssBefore).toBeLessThan(32 * mib)
  }
})
