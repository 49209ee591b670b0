/**
 * What 1,000 live streams of members cost beside a busy worker: memory for each, CPU of a send with them over without, and how
 * long a stop takes. Medians of alternating rounds after a warm-up round. The readers and the callers are other processes.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { setGates } from '../src/capabilities/gates/gates.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { scopes } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import type { Server } from '../src/http/base.ts'
import { buildServer } from '../src/http/server.ts'
import { ownRoutes, workspaceRoutes } from '../src/lists/dashboard-routes.ts'
import { loops } from '../src/lists/loops.ts'
import { routes } from '../src/lists/routes.ts'
import { openLocalSandbox } from '../src/platform/sandbox/sandbox.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { signIn } from '../test/harness/person.ts'
import { until } from '../test/harness/process.ts'
import { makeAccounts, number, quantile, row, verdict, withInstance } from './harness.ts'

const streams = 1_000
const perSession = 5
const accounts = 20
const callers = 20
const each = 40
const rounds = 3
const processes = join(import.meta.dirname, 'processes')

await withInstance(
  async (app, data_dir) => {
    const { workspace_id, user_id, ids } = await makeAccounts(app, accounts)
    const { key } = await createKey(app, 'system', { workspace_id, user_id, name: 'bench', scopes })
    await setGates(app, 'system', { names: ['all'], enabled: true })
    const sandbox = await openLocalSandbox({ data_dir: null, failed: console.error })
    const { person_id } = sandbox.world.addPerson({ name: 'Ada' })
    const platforms = new Map([['sandbox' as const, sandbox.platform]])
    const worker = runWorker(app, await assembleWorker(app, { platforms, directory: data_dir, loops }))
    await until('every account is READY', 60_000, async () => {
      const { ready } = await app.db.one<{ ready: number }>(sql`
      select count(*)::int as ready from accounts where status = 'READY'`)
      return ready === accounts
    })
    await app.db.run(sql`
    insert into chats (account_id, chat_id, workspace_id, kind, name)
    select id, ${person_id}, workspace_id, 'private', 'Ada' from accounts`)
    const cookies: string[] = []
    for (let at = 0; at < streams / perSession; at++) {
      const email = `member${at}@example.org`
      const member = await createUser(app, 'system', { email, workspace_id, role: 'member' })
      cookies.push(...Array(perSession).fill(await signIn({ app }, member.id)))
    }
    const { server, url } = await listen(app)

    /** CPU of this process for one send, in microseconds. */
    async function cpuOfSend(): Promise<number> {
      const chat = `platform:chat:${person_id}`
      const given = ['--url', url, '--key', key, '--accounts', ids.join(','), '--chat', chat]
      const before = process.cpuUsage()
      const counts = ['--callers', String(callers), '--each', String(each)]
      await promisify(execFile)(process.execPath, [join(processes, 'sender.ts'), ...given, ...counts])
      const { user, system } = process.cpuUsage(before)
      return (user + system) / (callers * each)
    }

    async function openStreams(): Promise<ChildProcess> {
      const reader = spawn(process.execPath, [join(processes, 'stream-reader.ts'), '--url', url], {
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      reader.stdin?.end(cookies.join('\n'))
      await once(reader.stdout as NodeJS.ReadableStream, 'data')
      return reader
    }

    async function closeStreams(reader: ChildProcess): Promise<void> {
      reader.kill()
      await once(reader, 'exit')
    }

    async function stopMs(): Promise<number> {
      const beganAt = performance.now()
      await server.close()
      return performance.now() - beganAt
    }

    await cpuOfSend()
    const rss = process.memoryUsage.rss()
    const first = await openStreams()
    const perStream = (process.memoryUsage.rss() - rss) / streams
    await cpuOfSend()
    await closeStreams(first)
    const without: number[] = []
    const beside: number[] = []
    for (let round = 0; round < rounds; round++) {
      without.push(await cpuOfSend())
      const reader = await openStreams()
      beside.push(await cpuOfSend())
      await closeStreams(reader)
    }
    const last = await openStreams()
    const stoppedMs = await stopMs()
    await closeStreams(last)
    row('CPU of a send without streams', `${number(quantile(without, 0.5))} µs`)
    row(`CPU of a send beside ${streams} streams`, `${number(quantile(beside, 0.5))} µs`)
    verdict('with them over without', quantile(beside, 0.5) / quantile(without, 0.5), { most: 1.1 })
    verdict('KiB of memory for each stream', perStream / 1_024, { most: 64 })
    verdict('seconds that a stop takes', stoppedMs / 1_000, { most: 1 })
    await worker.stop()
    await sandbox.close()
  },
  { env: { PARLEY_RATE_LIMIT: '1000000' } },
)

async function listen(app: OpenApp): Promise<{ server: Server; url: string }> {
  const server = await buildServer(app, routes, {
    readiness: { worker: () => 'ok', journal: () => 'ok', stopping: () => false },
    dashboard: { workspaceRoutes, ownRoutes },
  })
  return { server, url: await server.listen({ host: '127.0.0.1', port: 0 }) }
}
