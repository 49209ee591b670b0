/**
 * 200 people who sign in at the same time, again and again: what that costs in memory, and how much longer other callers wait
 * meanwhile. The p95 of GET /chats during sign-ins, over the p95 without, in alternating rounds.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setGates } from '../src/capabilities/gates/gates.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { scopes } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import { buildServer } from '../src/http/server.ts'
import { hashPassword } from '../src/lib/passwords.ts'
import { ownRoutes, workspaceRoutes } from '../src/lists/dashboard-routes.ts'
import { routes } from '../src/lists/routes.ts'
import { makeAccounts, number, quantile, row, verdict, withInstance } from './harness.ts'

const signers = 200
const rounds = 5
const reads = 200
const mb = 1024 * 1024
const password = 'correct horse battery'
const signersFile = join(import.meta.dirname, 'processes', 'signers.ts')

await withInstance(
  async (app) => {
    const { workspace_id, ids } = await makeAccounts(app, 1)
    const user = await createUser(app, 'system', { email: 'reader@example.org', workspace_id })
    const { key } = await createKey(app, 'system', { workspace_id, user_id: user.id, name: 'bench', scopes })
    await setGates(app, 'system', { names: ['all'], enabled: true })
    await app.db.run(sql`update accounts set status = 'READY'`)
    await app.db.run(sql`
      insert into chats (account_id, chat_id, workspace_id, kind, name)
      select ${ids[0]}, n, ${workspace_id}, 'private', 'Person ' || n from generate_series(1, 1000) n`)
    // One hash for all, because making 200 would take longer than the measurement.
    const password_hash = await hashPassword(password, { lane: 'setup', source: 'bench' })
    for (let at = 0; at < signers; at++) {
      await createUser(app, 'system', { email: `person${at}@example.org`, workspace_id, password_hash })
    }
    const server = await buildServer(app, routes, {
      readiness: { worker: () => 'ok', journal: () => 'ok', stopping: () => false },
      dashboard: { workspaceRoutes, ownRoutes },
    })
    const url = await server.listen({ host: '127.0.0.1', port: 0 })

    async function read(): Promise<number> {
      const askedAt = performance.now()
      const answer = await fetch(`${url}/api/v1/chats?account_id=${ids[0]}`, {
        headers: { authorization: `Bearer ${key}` },
      })
      await answer.arrayBuffer()
      if (answer.status !== 200) throw new Error(`GET /chats answered ${answer.status}.`)
      return performance.now() - askedAt
    }

    // One process for the whole run: starting it uses a core for a while, which is not a cost of signing in.
    const signing = spawn(process.execPath, [signersFile, '--url', url, '--password', password], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const answers = createInterface({ input: signing.stdout })[Symbol.asyncIterator]()

    async function signIn(count: number): Promise<number[]> {
      signing.stdin.write(`${count}\n`)
      return JSON.parse((await answers.next()).value ?? '[]')
    }

    async function readMany(until: () => boolean): Promise<number[]> {
      const times: number[] = []
      while (!until()) times.push(await read())
      return times
    }

    for (let warm = 0; warm < reads; warm++) await read()
    await signIn(2)
    // Compare the peak memory with sign-ins against the peak while it only reads.
    const most = { idle: 0, meanwhile: 0 }
    let phase: keyof typeof most = 'idle'
    const watch = setInterval(() => {
      most[phase] = Math.max(most[phase], process.memoryUsage.rss())
    }, 5)
    const times = { idle: [] as number[], meanwhile: [] as number[] }
    const statuses = new Map<number, number>()
    for (let round = 0; round < rounds; round++) {
      phase = 'idle'
      let left = round === 0 ? 10 * reads : reads
      times.idle.push(...(await readMany(() => left-- === 0)))
      phase = 'meanwhile'
      let unanswered = true
      const all = signIn(signers).then((given) => {
        for (const status of given) statuses.set(status, (statuses.get(status) ?? 0) + 1)
        unanswered = false
      })
      times.meanwhile.push(...(await readMany(() => !unanswered)))
      await all
    }
    clearInterval(watch)
    for (const [status, count] of statuses) row(`sign-ins answered ${status}`, number(count))
    const [idle, meanwhile] = [quantile(times.idle, 0.95), quantile(times.meanwhile, 0.95)]
    row('GET /chats p95, idle', `${number(idle, 2)} ms`)
    row(`GET /chats p95, meanwhile (${times.meanwhile.length} reads)`, `${number(meanwhile, 2)} ms`)
    verdict('p95 meanwhile over idle', meanwhile / idle, { most: 2 })
    verdict('MB of memory more', (most.meanwhile - most.idle) / mb, { most: 64 })
    signing.stdin.end()
    await server.close()
  },
  { env: { PARLEY_RATE_LIMIT: '1000000', PARLEY_TRUSTED_PROXIES: '127.0.0.1' } },
)
