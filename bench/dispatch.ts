/**
 * Messages of a campaign per second, from the recipient that is due to its stored outcome and echo, against graphile-worker
 * running as many jobs of one insert each, on the same database in the same run. Medians of alternating rounds after one
 * that warms up. 100 accounts without a gap between messages, a platform that answers at once, the journal on.
 */
import { Logger, type RunnerOptions, run } from 'graphile-worker'
import pg from 'pg'
import { messagesDue } from '../src/capabilities/campaigns/campaigns.ts'
import { setAllowed, setGates } from '../src/capabilities/gates/gates.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { sql } from '../src/db/sql.ts'
import { newId } from '../src/lib/ids.ts'
import { loops } from '../src/loops.ts'
import { openLocalSandbox } from '../src/platform/sandbox/sandbox.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { fsyncMs, makeAccounts, number, quantile, row, verdict, withInstance } from './harness.ts'

type Pool = NonNullable<RunnerOptions['pgPool']>

const accounts = 100
/** Of each account in a round; the rounds of a day stay below the largest quota there is. */
const each = 30
const rounds = 3
const count = accounts * each
const concurrency = 50
const jobsAtOnce = 100
const waitMsMax = 300_000

await withInstance(
  async (app, data_dir) => {
    const { workspace_id, ids } = await makeAccounts(app, accounts)
    const user = await createUser(app, 'system', { email: 'campaigns@example.org', workspace_id })
    await setGates(app, 'system', { names: ['all'], enabled: true })
    await setAllowed(app, 'system', { list: 'campaign_user', id: user.id, allowed: true })
    await setAllowed(app, 'system', { list: 'campaign_workspace', id: workspace_id, allowed: true })
    const sandbox = await openLocalSandbox({ data_dir: null, failed: console.error })
    const people = Array.from(
      { length: each },
      (_, n) => sandbox.world.addPerson({ name: `Ada ${n}` }).person_id,
    )
    const platforms = new Map([['sandbox' as const, sandbox.platform]])
    const worker = runWorker(app, await assembleWorker(app, { platforms, directory: data_dir, loops }))
    await until(async () => {
      const { ready } = await app.db.one<{ ready: number }>(
        sql`select count(*)::int as ready from accounts where status = 'READY'`,
      )
      return ready === accounts
    })
    await app.db.run(sql`
      insert into chats (account_id, chat_id, workspace_id, kind, name)
      select a.id, p.id, a.workspace_id, 'private', 'Ada' from accounts a, unnest(${people}::bigint[]) as p (id)`)

    /** Created paused, so that only the sending is measured. */
    async function dispatch(): Promise<number> {
      const id = newId()
      await app.db.transaction(async (tx) => {
        await tx.run(sql`
          insert into campaigns (id, workspace_id, user_id, kind, status, pause_reason, message_text,
            daily_quota_per_account, sequence)
          values (${id}, ${workspace_id}, ${user.id}, 'scoped', 'paused', 'requested', 'A message.', 200, true)`)
        await tx.run(sql`
          insert into campaign_recipients (id, campaign_id, workspace_id, account_id, chat_id, contact, position,
            next_action_at)
          select gen_random_uuid(), ${id}, ${workspace_id}, a.id, p.id, a.id || ':' || p.id, row_number() over (),
            domain_now()
          from unnest(${ids}::text[]) as a (id), unnest(${people}::bigint[]) as p (id)`)
      })
      const streams = () =>
        [...sandbox.world.state.accounts.values()].reduce((sum, { stream }) => sum + stream.length, 0)
      const startedAt = performance.now()
      await app.db.run(sql`update campaigns set status = 'queued', pause_reason = null where id = ${id}`)
      app.wake.signal(messagesDue)
      await until(async () => {
        const { done, stored } = await app.db.one<{ done: number; stored: number }>(sql`
          select (select sum(completed)::int from campaign_accounts where campaign_id = ${id}) as done,
            (select sum(position::bigint)::int from account_hosts) as stored`)
        return done === count && stored === streams()
      })
      return count / ((performance.now() - startedAt) / 1000)
    }

    // The pool keeps its password where a spread does not find it.
    const { options } = app.db.pool
    const pool = new pg.Pool({
      ...options,
      password: options.password,
      max: concurrency + 5,
      statement_timeout: 0,
    })
    pool.on('error', () => {})
    pool.on('connect', (client) => client.on('error', () => {}))
    await pool.query('create table bench_jobs (n integer)')
    const running: RunnerOptions = {
      pgPool: pool as unknown as Pool,
      concurrency,
      noHandleSignals: true,
      // It would tell of every job.
      logger: new Logger(() => () => {}),
      taskList: {
        insert: (payload, { withPgClient }) =>
          withPgClient(async (client) => {
            await client.query('insert into bench_jobs values ($1)', [(payload as { n: number }).n])
          }),
      },
    }
    async function jobs(): Promise<number> {
      await pool.query('truncate bench_jobs')
      // The first run makes its tables.
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
      const rate = count / ((performance.now() - startedAt) / 1000)
      await going.stop()
      return rate
    }

    const rates = { dispatch: [] as number[], jobs: [] as number[] }
    // The first round warms up connections, plans and code; it is not counted.
    await jobs()
    await dispatch()
    const before = process.memoryUsage.rss()
    for (let round = 0; round < rounds; round++) {
      rates.jobs.push(await jobs())
      rates.dispatch.push(await dispatch())
    }
    row('fsync, median', `${number(fsyncMs(data_dir), 2)} ms`)
    row(
      `graphile-worker, ${concurrency} at once, one insert a job`,
      `${number(quantile(rates.jobs, 0.5))} /s`,
    )
    row('messages of campaigns, 100 accounts', `${number(quantile(rates.dispatch, 0.5))} /s`)
    row('memory growth over the rounds', `${number((process.memoryUsage.rss() - before) / 1024 / 1024)} MB`)
    const accepted = sandbox.world.state.journal.length
    row('accepted by the platform', number(accepted))
    if (accepted !== count * (rounds + 1)) process.exitCode = 1
    verdict('messages over jobs', quantile(rates.dispatch, 0.5) / quantile(rates.jobs, 0.5), { least: 0.7 })
    await pool.end()
    await worker.stop()
    await sandbox.close()
  },
  { env: { PARLEY_PACING_SECONDS: '0' } },
)

async function until(is: () => Promise<boolean>): Promise<void> {
  const startedAt = performance.now()
  while (!(await is())) {
    if (performance.now() - startedAt > waitMsMax) throw new Error('It did not get done.')
    await new Promise((done) => setTimeout(done, 20))
  }
}
