/**
 * Campaign messages, from the due recipient to its stored outcome and echo. The platform answers immediately, the journal is on,
 * there is no gap between messages. `--part rate` (and so on) runs one part.
 *
 * rate: messages per second of 100 accounts, against graphile-worker running as many jobs of one insert each, on the same
 * database in the same run: medians of alternating rounds after a warm-up round. Also reports CPU, because on a busy machine
 * fifty connections get a larger share of it than five.
 * waiting: what a message costs the database with 1,000,000 others that wait, half of them paused, over 10,000.
 * memory: growth of the process over 100,000 messages; the platform is another process.
 * create, list: creating a campaign of 5,000 contacts over a bare COPY of the rows, and a page of 100 such campaigns.
 */
import { parseArgs } from 'node:util'
import { Logger, type RunnerOptions, run } from 'graphile-worker'
import pg from 'pg'
import { campaignBody } from '../src/capabilities/campaigns/campaign-body.ts'
import { listCampaigns } from '../src/capabilities/campaigns/campaign-pages.ts'
import { checkRequest, createCampaign } from '../src/capabilities/campaigns/create.ts'
import { type Caller, scopes } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import { type Stage, until, withStage } from './dispatch-stage.ts'
import { fsyncMs, number, quantile, row, verdict } from './harness.ts'
import { cpuOf } from './load.ts'
import { addWaiting } from './waiting-recipients.ts'

const accounts = 100
/** Messages per account and round; a day's rounds stay below the largest possible quota. */
const each = 30
const rounds = 3
const count = accounts * each
const concurrency = 50
const jobsAtOnce = 100
/** Backends report what they have read after ten idle seconds. */
const idleMs = 11_000

const parts = { rate, waiting, memory, create }
const { values } = parseArgs({ options: { part: { type: 'string', default: 'all' } } })
const wanted = values.part === 'list' ? 'create' : values.part
if (wanted !== 'all' && !Object.hasOwn(parts, wanted)) {
  throw new Error(`There is no part ${wanted}: rate, waiting, memory, create, list.`)
}
for (const [name, work] of Object.entries(parts)) if (wanted === 'all' || wanted === name) await work()

async function rate(): Promise<void> {
  await withStage({ accounts, people: each }, async (stage) => {
    const peer = await openPeer(stage)
    const rates = { messages: [] as number[], jobs: [] as number[] }
    const cpu = { messages: [] as number[], jobs: [] as number[] }
    // The first round warms up connections, plans and code; it is not counted.
    for (let round = 0; round <= rounds; round++) {
      const jobs = await measured(stage, peer.work)
      const messages = await measured(stage, () => stage.send())
      if (round === 0) continue
      rates.jobs.push(count / jobs.seconds)
      rates.messages.push(count / messages.seconds)
      cpu.jobs.push(jobs.ms / count)
      cpu.messages.push(messages.ms / count)
    }
    await peer.close()
    row('fsync, median', `${number(fsyncMs(stage.data_dir), 2)} ms`)
    row(
      `graphile-worker, ${concurrency} at once, one insert a job`,
      `${number(quantile(rates.jobs, 0.5))} /s`,
    )
    row('messages of campaigns, 100 accounts', `${number(quantile(rates.messages, 0.5))} /s`)
    row('CPU of a job, Node and PostgreSQL', `${number(quantile(cpu.jobs, 0.5), 2)} ms`)
    row('CPU of a message, Node and PostgreSQL', `${number(quantile(cpu.messages, 0.5), 2)} ms`)
    row('accepted by the platform', number(stage.accepted()))
    if (stage.accepted() !== count * (rounds + 1)) process.exitCode = 1
    const ratio = quantile(rates.messages, 0.5) / quantile(rates.jobs, 0.5)
    verdict('messages over jobs', ratio, { least: 0.7 })
  })
}

/** The CPU includes work outside the measured seconds, such as making the rows. */
async function measured(
  { data_dir }: Stage,
  work: () => Promise<number>,
): Promise<{ seconds: number; ms: number }> {
  let seconds = 0
  const own = process.cpuUsage()
  const server = await cpuOf({ processes: [], data_dir }, async () => {
    seconds = await work()
  })
  const { user, system } = process.cpuUsage(own)
  return { seconds, ms: server + (user + system) / 1000 }
}

/** Runs as many jobs of one insert each; returns the seconds until all are done. */
async function openPeer({ app }: Stage) {
  type Pool = NonNullable<RunnerOptions['pgPool']>
  // The pool keeps its password in a property that a spread does not copy.
  const { options } = app.db.pool
  const { password } = options
  const pool = new pg.Pool({ ...options, password, max: concurrency + 5, statement_timeout: 0 })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  await pool.query('create table bench_jobs (n integer)')
  const running: RunnerOptions = {
    pgPool: pool as unknown as Pool,
    concurrency,
    noHandleSignals: true,
    // It would log every job.
    logger: new Logger(() => () => {}),
    taskList: {
      insert: (payload, { withPgClient }) =>
        withPgClient(async (client) => {
          await client.query('insert into bench_jobs values ($1)', [(payload as { n: number }).n])
        }),
    },
  }
  async function work(): Promise<number> {
    await pool.query('truncate bench_jobs')
    // The first run creates its tables.
    await (await run(running)).stop()
    for (let n = 0; n < count; n += jobsAtOnce) {
      await pool.query(
        "select graphile_worker.add_job('insert', json_build_object('n', n)) from generate_series($1::int, $2::int) as n",
        [n + 1, Math.min(n + jobsAtOnce, count)],
      )
    }
    const startedAt = performance.now()
    const going = await run(running)
    await until(async () => {
      const { rows } = await pool.query(
        'select (select count(*)::int from bench_jobs) as done, (select count(*)::int from graphile_worker.jobs) as left',
      )
      return rows[0].done === count && rows[0].left === 0
    })
    const seconds = (performance.now() - startedAt) / 1000
    await going.stop()
    return seconds
  }
  return { work, close: () => pool.end() }
}

async function waiting(): Promise<void> {
  await withStage({ accounts, people: each }, async (stage) => {
    const few = 10_000
    const many = 1_000_000
    await addWaiting(stage, { count: few, first_chat: 1_000_000 })
    await stage.send()
    const before = await costOf(stage)
    await addWaiting(stage, { count: many - few, first_chat: 1_000_000 })
    await stage.send()
    const after = await costOf(stage)
    row('buffers of a message, 10,000 waiting', number(before.buffers))
    row('buffers of a message, 1,000,000 waiting', number(after.buffers))
    row('CPU of a message, 10,000 waiting', `${number(before.ms, 2)} ms`)
    row('CPU of a message, 1,000,000 waiting', `${number(after.ms, 2)} ms`)
    verdict('buffers, 1,000,000 over 10,000 waiting', after.buffers / before.buffers, { most: 1.2 })
    verdict('CPU, 1,000,000 over 10,000 waiting', after.ms / before.ms, { most: 1.2 })
  })
}

async function costOf(stage: Stage): Promise<{ buffers: number; ms: number }> {
  const read = async () => {
    await new Promise((done) => setTimeout(done, idleMs))
    const { blocks } = await stage.app.db.one<{ blocks: string }>(sql`
      select (blks_hit + blks_read)::text as blocks from pg_stat_database where datname = current_database()`)
    return Number(blocks)
  }
  const before = await read()
  const { ms } = await measured(stage, () => stage.send())
  return { buffers: ((await read()) - before) / count, ms: ms / count }
}

async function memory(): Promise<void> {
  await withStage({ accounts, people: each, apart: true }, async ({ send }) => {
    const messages = 100_000
    // Until every cache is full.
    for (let n = 0; n < 5; n++) await send('broadcast')
    const before = residentBytes()
    for (let n = 0; n < messages; n += count) await send('broadcast')
    const grown = (residentBytes() - before) / 1024 / 1024
    verdict('memory growth over 100,000 messages, MB', grown, { most: 64 })
  })
}

/** Garbage is not growth: with `--expose-gc` it is collected first. */
function residentBytes(): number {
  globalThis.gc?.()
  return process.memoryUsage.rss()
}

async function create(): Promise<void> {
  await withStage({ accounts: 20, people: 1 }, async ({ app, workspace_id, user_id, accounts: ids }) => {
    const size = 5_000
    const campaigns = 100
    const caller: Caller = { workspace_id, user_id, scopes, via: { kind: 'terminal' } }
    await app.db.run(sql`create table bench_recipients (like campaign_recipients)`)
    const times = { create: [] as number[], copy: [] as number[], list: [] as number[] }
    for (let n = 0; n < campaigns; n++) {
      const contacts = Array.from({ length: size }, (_, at) => ({
        identifier: `+49170${n * size + at + 1_000_000}`,
      }))
      const body = campaignBody.parse({
        message_text: 'A message.',
        scheduled_at: new Date(Date.now() + 86_400_000).toISOString(),
        contacts,
        account_pool: ids,
      })
      const startedAt = performance.now()
      const request = await checkRequest(app, caller, { body })
      const { id } = await app.db.transaction((tx) =>
        createCampaign(app, tx, caller, { request, key: undefined }),
      )
      times.create.push(performance.now() - startedAt)
      if (n < 10) times.copy.push(await copyRows(app.db.pool, id))
    }
    for (let n = 0; n < 20; n++) {
      const startedAt = performance.now()
      await listCampaigns(app, caller, { limit: 100, paging: { after: undefined, next: () => '' } })
      times.list.push(performance.now() - startedAt)
    }
    row('creating 5,000 contacts', `${number(quantile(times.create, 0.5))} ms`)
    row('a bare COPY of the same rows', `${number(quantile(times.copy, 0.5))} ms`)
    row('creating over the bare COPY', number(quantile(times.create, 0.5) / quantile(times.copy, 0.5), 1))
    row('a page of 100 campaigns of 5,000', `${number(quantile(times.list, 0.5), 1)} ms`)
  })
}

/** Over a file on the server, because only the writing counts. */
async function copyRows(pool: pg.Pool, campaign_id: string): Promise<number> {
  const directory = (await pool.query('show data_directory')).rows[0].data_directory
  const file = `${directory}/bench-recipients.copy`
  await pool.query(
    `copy (select * from campaign_recipients where campaign_id = '${campaign_id}') to '${file}'`,
  )
  const startedAt = performance.now()
  await pool.query(`copy bench_recipients from '${file}'`)
  return performance.now() - startedAt
}
