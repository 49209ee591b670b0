/** The export of a person with 100,000 messages: how long it takes, and how far the memory rises above the start. */
import { exportPerson } from '../src/capabilities/person-record/person-record.ts'
import { createWorkspace } from '../src/capabilities/workspaces/workspaces.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { sql } from '../src/db/sql.ts'
import { newAccountId } from '../src/lib/ids.ts'
import { number, row, verdict, withInstance } from './harness.ts'

const messages = Number(process.env.BENCH_MESSAGES ?? 100_000)
const mb = 1024 * 1024

await withInstance(async (app) => {
  // A service that has run for a while has its heap already.
  await measureExport(app, Math.ceil(messages / 20))
  const { seconds, memory, bytes } = await measureExport(app, messages)
  row('messages', String(messages))
  row('archive, MB', number(bytes / mb, 1))
  row('seconds', number(seconds, 1))
  verdict('memory above the start, MB', memory, { most: 64 })
})

async function measureExport(app: OpenApp, count: number) {
  const { id: workspace_id } = await createWorkspace(app, 'system', { name: `With ${count}` })
  const account_id = newAccountId()
  const { db } = app
  await db.run(sql`
    insert into accounts (id, workspace_id, platform, name, status) values (${account_id}, ${workspace_id}, 'sandbox', 'Sales', 'READY')`)
  const { id } = await db.one<{ id: string }>(sql`select person_of(${workspace_id}, ${account_id}, 42) as id`)
  // A statement has 5 s, also on a busy machine.
  const atOnce = 500
  for (let from = 1; from <= count; from += atOnce) {
    await db.run(sql`
      insert into messages (account_id, workspace_id, chat_id, id, text, is_sender, sent_at)
      select ${account_id}, ${workspace_id}, 42, n, 'Message ' || n || repeat(' with some words', 12), n % 2 = 0,
        domain_now() - interval '1 day' + n * interval '1 millisecond'
      from generate_series(${from}::bigint, ${Math.min(count, from + atOnce - 1)}::bigint) n`)
  }
  const watch = watchMemory()
  const startedAt = performance.now()
  let bytes = 0
  for await (const piece of exportPerson(app, 'system', { workspace_id, id, left: undefined }))
    bytes += piece.length
  return { seconds: (performance.now() - startedAt) / 1_000, memory: watch.stop(), bytes }
}

function watchMemory(): { stop(): number } {
  globalThis.gc?.()
  const before = process.memoryUsage.rss()
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss())
  }, 20)
  return {
    stop() {
      clearInterval(timer)
      return (Math.max(most, process.memoryUsage.rss()) - before) / mb
    },
  }
}
