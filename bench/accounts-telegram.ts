/**
 * Telegram accounts in one worker: what one costs in memory against mtcute's bare client, whether three accounts in trouble
 * (one that is flooded with messages, one that reconnects forever, one that is silent) delay the sends of the others, and how
 * all of them come back after the data centre was away. Smaller, to see that it works: `--accounts 30 --sends 300 --away 5`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { sql } from '../src/db/sql.ts'
import { loops } from '../src/lists/loops.ts'
import type { Platform } from '../src/platform/port.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { number, quantile, row, verdict, withInstance } from './harness.ts'
import { countLive, sendOne, TelegramStage } from './telegram-stage.ts'

const { values } = parseArgs({
  strict: false,
  options: {
    accounts: { type: 'string', default: '300' },
    sends: { type: 'string', default: '3000' },
    away: { type: 'string', default: '60' },
  },
})
const accounts = Number(values.accounts)
const sends = Number(values.sends)
const perSecond = 100
const floodPerSecond = 100
const awaySeconds = Number(values.away)
const backMsMax = 600_000
const warmUps = 10
const stableBytes = 100_000

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

await withInstance(async (app, data_dir) => {
  const stage = await TelegramStage.open()
  const person_id = await stage.addPerson('ada')
  const { caller, ids } = await stage.accounts(app, accounts, person_id)

  // What the first clients load is no cost of each.
  for (const client of await stage.bareClients(warmUps)) await client.destroy()
  const beforeBare = await heap()
  const bare = await stage.bareClients(accounts)
  const bareEach = ((await heap()) - beforeBare) / accounts
  for (const client of bare.splice(0)) await client.destroy()

  const connecting = countConnecting(stage.platform)
  const parts = { platforms: new Map([['telegram', connecting.platform]]), directory: data_dir, loops }
  // The worker with a few accounts first: what it costs itself is no cost of each.
  const setStatus = (wanted: readonly string[], status: string) =>
    app.db.run(sql`update accounts set status = ${status} where id = any(${wanted})`)
  const rest = ids.slice(warmUps)
  await setStatus(rest, 'DISABLED')
  const worker = runWorker(app, await assembleWorker(app, parts))
  await until(backMsMax, async () => (await countLive(app)) === accounts - rest.length)
  const before = await heap()
  const startedAt = performance.now()
  await setStatus(rest, 'CONNECTING')
  await until(backMsMax, async () => (await countLive(app)) === accounts)
  row(`${rest.length} accounts live after`, `${number(performance.now() - startedAt)} ms`)
  await until(backMsMax, async () => {
    const { open } = await app.db.one<{ open: number }>(sql`
      select count(*)::int as open from account_sync where phase <> 'done'`)
    return open === 0
  })
  const each = ((await heap()) - before) / rest.length
  row('heap of a bare client', `${number(bareEach / 1024)} KiB`)
  row('heap of an account', `${number(each / 1024)} KiB`)
  verdict('heap of an account over a bare client', each / bareEach, { most: 2 })

  const [flooded = '', reconnecting = '', silent = '', ...healthy] = ids
  await p99()
  const calm = await p99()
  await stage.control('/faults', { on: 'connect', fault: 'unavailable', times: 0, account_id: reconnecting })
  await stage.control('/faults', { on: 'updates', fault: 'drop_after', times: 0, account_id: reconnecting })
  await stage.control('/faults', { on: 'updates', fault: 'freeze', seconds: 600, account_id: silent })
  for (const account_id of [reconnecting, silent])
    await stage.control('/messages', { account_id, person_id, text: 'trouble' })
  let isFlooding = true
  const flood = (async () => {
    while (isFlooding) {
      await stage.control('/messages', { account_id: flooded, person_id, text: 'flood' })
      await sleep(1_000 / floodPerSecond)
    }
  })()
  const troubled = await p99()
  isFlooding = false
  await flood
  await stage.clearFaults()
  row('p99 of a send, all well', `${number(calm, 1)} ms`)
  row('p99 with three accounts in trouble', `${number(troubled, 1)} ms`)
  verdict('p99 in trouble over p99 when all is well', troubled / calm, { most: 1.5 })

  await stage.killCentre()
  await sleep(awaySeconds * 1_000)
  await stage.startCentre()
  const backAt = performance.now()
  await until(backMsMax, async () => (await countLive(app)) === accounts)
  row(`all live again after ${awaySeconds} s away`, `${number(performance.now() - backAt)} ms`)
  verdict('accounts that connected at the same time', connecting.most, { most: 10 })
  await worker.stop()
  await stage.close()

  /** Sends from the healthy accounts at an even rate, whether or not earlier sends have ended. */
  async function p99(): Promise<number> {
    const times: number[] = []
    const begunAt = performance.now()
    const all: Promise<void>[] = []
    for (let n = 0; n < sends; n++) {
      const ahead = (n * 1_000) / perSecond - (performance.now() - begunAt)
      if (ahead > 0) await sleep(ahead)
      all.push(send(healthy[n % healthy.length] ?? ''))
    }
    await Promise.all(all)
    if (times.length < sends) throw new Error(`${sends - times.length} sends were not accepted.`)
    return quantile(times, 0.99)

    async function send(account_id: string): Promise<void> {
      const ms = await sendOne(app, caller, { account_id, chat_id: `${person_id}` })
      if (ms !== undefined) times.push(ms)
    }
  }
})

/** The same platform; `most` is how many connections it has been making at the same time. */
function countConnecting(platform: Platform): { platform: Platform; most: number } {
  let now = 0
  const counted = {
    most: 0,
    platform: {
      ...platform,
      async connect(...given: Parameters<Platform['connect']>) {
        counted.most = Math.max(counted.most, ++now)
        return platform.connect(...given).finally(() => now--)
      },
    },
  }
  return counted
}

/** Once it no longer shrinks: clients that have ended are collected some time later. */
async function heap(): Promise<number> {
  for (let least = Number.POSITIVE_INFINITY; ; ) {
    for (let n = 0; n < 3; n++) {
      collect()
      await sleep(100)
    }
    const { heapUsed, external } = process.memoryUsage()
    const bytes = heapUsed + external
    if (bytes > least - stableBytes) return Math.min(bytes, least)
    least = bytes
  }
}

async function until(ms: number, done: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + ms
  while (!(await done())) {
    if (performance.now() > deadline) throw new Error(`Not done after ${ms} ms.`)
    await sleep(100)
  }
}
