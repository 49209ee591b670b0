/**
 * A suppression list of a million lines: imported as rows per second over a bare COPY of the same rows, exported over a bare
 * COPY of them, and how far the memory rises above the start for each. The file lies where an upload leaves it.
 */
import { exportSuppressions, importSuppressions } from '../src/capabilities/suppressions/suppressions.ts'
import { createWorkspace } from '../src/capabilities/workspaces/workspaces.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { copyRows, copyStream } from '../src/db/copy-stream.ts'
import { sql } from '../src/db/sql.ts'
import { chunkBytes, readChunksIn, storeChunk } from '../src/ledger/files.ts'
import { newId } from '../src/lib/ids.ts'
import { number, row, verdict, withInstance } from './harness.ts'

const lines = Number(process.env.BENCH_LINES ?? 1_000_000)
const mb = 1024 * 1024

await withInstance(async (app) => {
  const bare = await measureCopy(app)
  // A service that has run for a while has its heap already.
  await measureImport(app, lines / 20)
  const { seconds, memory, workspace_id } = await measureImport(app, lines)
  row('a bare COPY', `${number(lines / bare)} rows/s`)
  row('import', `${number(lines / seconds)} rows/s`)
  verdict('import over a bare COPY', bare / seconds, { least: 0.5 })
  verdict('memory above the start, MB', memory, { most: 64 })
  await measureExport(app, workspace_id)
})

/** Phone numbers in no order. */
function phoneOf(n: number): string {
  return String(4_900_000_000 + ((n * 7_919) % 99_999_989))
}

async function measureCopy(app: OpenApp): Promise<number> {
  const { id } = await createWorkspace(app, 'system', { name: 'Bare' })
  const source = async function* () {
    for (let at = 0; at < lines; at += 1_000) {
      const rows = Array.from(
        { length: 1_000 },
        (_, n) => `${id}\tphone\t${phoneOf(at + n)}\timport\t{"file": "list.csv", "line": ${at + n}}\n`,
      )
      yield Buffer.from(rows.join(''))
    }
  }
  const client = await app.db.client()
  try {
    await client.query('set statement_timeout = 0')
    const startedAt = performance.now()
    await copyStream(
      client,
      'copy suppressions (workspace_id, kind, value, source, evidence) from stdin',
      source(),
    )
    return (performance.now() - startedAt) / 1_000
  } finally {
    await client.end()
  }
}

async function measureImport(app: OpenApp, rows: number) {
  const { id: workspace_id } = await createWorkspace(app, 'system', { name: 'Import' })
  const file_id = newId()
  let text = 'phone\n'
  let n = 0
  for (let at = 0; at < rows; at++) {
    text += `+${phoneOf(at)}\n`
    if (text.length < chunkBytes - 20 && at < rows - 1) continue
    await storeChunk(app.db, { file_id, n: n++, workspace_id, bytes: Buffer.from(text) })
    text = ''
  }
  const watch = watchMemory()
  const startedAt = performance.now()
  const { added } = await importSuppressions(app, 'system', {
    workspace_id,
    file: 'list.csv',
    bytes: (tx) => readChunksIn(tx, file_id),
  })
  const seconds = (performance.now() - startedAt) / 1_000
  if (added !== rows) throw new Error(`${added} of ${rows} were added.`)
  return { seconds, memory: watch.stop(), workspace_id }
}

async function measureExport(app: OpenApp, workspace_id: string): Promise<void> {
  const client = await app.db.client()
  let startedAt = performance.now()
  await client.query('set statement_timeout = 0')
  const text = sql`copy suppressions to stdout`.text
  await copyRows(client, text, () => undefined)
  // The table has two such lists and a short one.
  const bare = (performance.now() - startedAt) / 2_050
  await client.end()
  const watch = watchMemory()
  startedAt = performance.now()
  let size = 0
  for await (const piece of exportSuppressions(app.db, workspace_id)) size += piece.length
  const seconds = (performance.now() - startedAt) / 1_000
  row('export', `${number(lines / seconds)} rows/s`)
  row('export, bytes', number(size))
  row('export over a bare COPY', number(bare / seconds, 2))
  verdict('memory above the start, MB', watch.stop(), { most: 64 })
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
