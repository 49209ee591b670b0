/**
 * Five hundred accounts in one worker: how fast they connect, what one costs in memory, and whether accounts in
 * trouble (one that reconnects forever, one that is flooded, one that is frozen) delay the others' updates.
 * With `--platform telegram` it measures Telegram accounts instead.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from '../src/db/sql.ts'
import { loops } from '../src/lists/loops.ts'
import { writeMessage } from '../src/platform/sandbox/person-acts.ts'
import { openLocalSandbox } from '../src/platform/sandbox/sandbox.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { makeAccounts, number, quantile, row, verdict, withInstance } from './harness.ts'

const accounts = 500
const messages = 3_000
const perSecond = 150
const connectMsMax = 30_000

if (process.argv.includes('telegram')) {
  await import('./accounts-telegram.ts')
  process.exit()
}

await withInstance(async (app, data_dir) => {
  const { ids } = await makeAccounts(app, accounts)
  const sandbox = await openLocalSandbox({ data_dir: null, failed: console.error })
  const { world } = sandbox
  const { person_id } = world.addPerson({ name: 'Ada' })
  const before = rss()
  const startedAt = performance.now()
  const parts = {
    platforms: new Map([['sandbox' as const, sandbox.platform]]),
    directory: data_dir,
    loops,
  }
  const worker = runWorker(app, await assembleWorker(app, parts))
  await until(connectMsMax, async () => {
    const { ready } = await app.db.one<{ ready: number }>(sql`
      select count(*)::int as ready from accounts where status = 'READY'`)
    return ready === accounts
  })
  row(`${accounts} accounts connected after`, `${number(performance.now() - startedAt)} ms`)
  row('memory for each, of the whole process', `${number((rss() - before) / accounts / 1024)} KiB`)

  const [reconnecting = '', flooded = '', frozen = '', ...healthy] = ids
  const calm = await p99(healthy)
  world.addFault({ on: 'updates', fault: 'drop_after', times: 0, account_id: reconnecting })
  world.addFault({ on: 'connect', fault: 'unavailable', times: 0, account_id: reconnecting })
  world.addFault({ on: 'updates', fault: 'freeze', seconds: 600, account_id: frozen })
  for (const account_id of [reconnecting, frozen])
    writeMessage(world, { account_id, person_id, text: 'trouble' })
  let flooding = true
  const flood = (async () => {
    for (let sent = 0; flooding; sent += 20) {
      for (let n = 0; n < 20; n++)
        writeMessage(world, { account_id: flooded, person_id, text: `flood ${sent + n}` })
      await sleep(10)
    }
  })()
  const troubled = await p99(healthy)
  flooding = false
  await flood
  row('p99 from written to event, all well', `${number(calm, 1)} ms`)
  row('p99 with three accounts in trouble', `${number(troubled, 1)} ms`)
  verdict('p99 in trouble over p99 when all is well', troubled / calm, { most: 1.5 })
  await worker.stop()
  await sandbox.close()

  /** Sends messages to the healthy accounts at an even rate; returns the p99 until each has its event. */
  async function p99(targets: readonly string[]): Promise<number> {
    const { after } = await app.db.one<{ after: string }>(sql`
      select coalesce(max(sequence), 0) as after from events`)
    const begunAt = performance.now()
    for (let sent = 0; sent < messages; sent++) {
      writeMessage(world, {
        account_id: targets[sent % targets.length] ?? '',
        person_id,
        text: `hello ${sent}`,
      })
      const ahead = (sent * 1000) / perSecond - (performance.now() - begunAt)
      if (ahead > 0) await sleep(ahead)
    }
    const delays = async () =>
      app.db.rows<{ ms: number }>(sql`
        select extract(epoch from created_at - occurred_at)::float8 * 1000 as ms from events
        where sequence > ${after} and data ->> 'account_id' = any(${targets})`)
    await until(60_000, async () => (await delays()).length === messages)
    return quantile(
      (await delays()).map(({ ms }) => ms),
      0.99,
    )
  }
})

async function until(ms: number, done: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + ms
  while (!(await done())) {
    if (performance.now() > deadline) throw new Error(`Not done after ${ms} ms.`)
    await sleep(50)
  }
}

function rss(): number {
  globalThis.gc?.()
  return process.memoryUsage().rss
}
