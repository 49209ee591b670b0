/** Transactions per second that change something and emit an event, against the same transactions without events. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from '../src/db/sql.ts'
import { emit, emitted } from '../src/events/emit.ts'
import { loops } from '../src/events/loops.ts'
import { countUnsequenced } from '../src/events/sequencer.ts'
import { newId } from '../src/lib/ids.ts'
import { runLoops } from '../src/worker/run-loops.ts'
import { fsyncMs, makeAccounts, number, row, verdict, withInstance } from './harness.ts'

const clients = 16
const each = 500
const rounds = 5

await withInstance(async (app, data_dir) => {
  const { workspace_id } = await makeAccounts(app, 1)
  const without: number[] = []
  const withEvents: number[] = []
  for (let round = 0; round < rounds; round++) {
    without.push(await rate(false))
    const running = runLoops(app, loops())
    withEvents.push(await rate(true))
    while ((await countUnsequenced(app.db)) > 0) await sleep(10)
    await running.stop()
  }
  const { events, gaps } = await app.db.one<{ events: number; gaps: number }>(sql`
    select count(*)::int as events, (max(sequence) - count(*))::int as gaps from events`)
  row('fsync, median', `${number(fsyncMs(data_dir), 2)} ms`)
  row('transactions without events', `${number(Math.max(...without))} /s`)
  row('transactions that emit, sequencer running', `${number(Math.max(...withEvents))} /s`)
  row('events with a place, and gaps between them', `${number(events)}, ${gaps}`)
  if (gaps !== 0 || events !== clients * each * rounds) process.exitCode = 1
  verdict('with events over without', Math.max(...withEvents) / Math.max(...without), { least: 0.7 })

  async function rate(emits: boolean): Promise<number> {
    const startedAt = performance.now()
    await Promise.all(Array.from({ length: clients }, () => client(emits)))
    return (clients * each) / ((performance.now() - startedAt) / 1000)
  }

  async function client(emits: boolean): Promise<void> {
    for (let at = 0; at < each; at++) {
      await app.db.transaction(async (tx) => {
        await tx.run(sql`
          insert into suppressions (workspace_id, kind, value, source)
          values (${workspace_id}, 'username', ${newId()}, 'operator')`)
        if (!emits) return
        const data = {
          account_id: 'acc_bench',
          chat_id: 'platform:chat:1',
          from_stage_key: 'new',
          to_stage_key: 'won',
        }
        emit(tx, workspace_id, [{ type: 'pipeline.moved', occurred_at: null, data }])
      })
      if (emits) app.wake.signal(emitted)
    }
  }
})
