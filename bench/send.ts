/**
 * Sends per second that the platform accepted, through HTTP, against the same operations given to the ledger directly: the
 * transactions T1 to T3, the journal and the waiting, without HTTP. One service, 50 accounts, a platform that answers
 * at once. Then 20 uploads of 25 MiB at the same time, and what they cost in memory.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { submit } from '../src/access/ledger/submit.ts'
import { setGates } from '../src/capabilities/gates/gates.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import { sendMessage } from '../src/capabilities/messages/send.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { type Caller, scopes } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import { buildServer } from '../src/http/server.ts'
import { newId } from '../src/lib/ids.ts'
import { sha256 } from '../src/lib/secrets.ts'
import { loops } from '../src/loops.ts'
import type { NewOperation } from '../src/operation.ts'
import { operations } from '../src/operations.ts'
import { openLocalSandbox } from '../src/platform/sandbox/sandbox.ts'
import { routes } from '../src/routes.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { fsyncMs, makeAccounts, number, quantile, row, verdict, withInstance } from './harness.ts'

const accounts = 50
const callers = 100
const each = 40
const rounds = 3
const uploads = 20
const uploadBytes = 26_214_400
const mb = 1024 * 1024
const sender = join(import.meta.dirname, 'processes', 'sender.ts')

interface Measured {
  readonly seconds: number
  readonly p99: number
  readonly accepted: number
}

await withInstance(
  async (app, data_dir) => {
    const { workspace_id, ids } = await makeAccounts(app, accounts)
    const user = await createUser(app, 'system', { email: 'sender@example.org', workspace_id })
    const wanted = { workspace_id, user_id: user.id, name: 'bench', scopes }
    const { key, id: key_id } = await createKey(app, 'system', wanted)
    await setGates(app, 'system', { names: ['all'], enabled: true })
    const sandbox = await openLocalSandbox({ data_dir: null, failed: console.error })
    const { person_id } = sandbox.world.addPerson({ name: 'Ada' })
    const platforms = new Map([['sandbox' as const, sandbox.platform]])
    const parts = { platforms, directory: data_dir, operations, loops }
    const worker = runWorker(app, await assembleWorker(app, parts))
    await until(async () => {
      const { ready } = await app.db.one<{ ready: number }>(sql`
        select count(*)::int as ready from accounts where status = 'READY'`)
      return ready === accounts
    })
    await app.db.run(sql`
      insert into chats (account_id, chat_id, workspace_id, kind, name)
      select id, ${person_id}, workspace_id, 'private', 'Ada' from accounts`)
    const server = await buildServer(app, routes, {
      readiness: { worker: () => 'ok', stopping: () => false },
    })
    const url = await server.listen({ host: '127.0.0.1', port: 0 })
    const chat = `platform:chat:${person_id}`
    const via = { kind: 'key', id: key_id, name: 'bench', prefix: '', mcp_only: false } as const
    const caller: Caller = { workspace_id, user_id: user.id, scopes, via }

    async function throughHttp(more: readonly string[] = []): Promise<Measured> {
      const given = ['--url', url, '--key', key, '--accounts', ids.join(','), '--chat', chat]
      const count = ['--callers', String(callers), '--each', String(each)]
      const { stdout } = await promisify(execFile)(process.execPath, [sender, ...given, ...count, ...more])
      return JSON.parse(stdout)
    }

    async function directly(): Promise<Measured> {
      const times: number[] = []
      const call = async (at: number) => {
        const account_id = ids[at % ids.length] ?? ''
        for (let n = 0; n < each; n++) {
          const wanted: NewOperation = {
            account_id,
            chat_id: `${person_id}`,
            payload: { text: 'A message.', file: null },
          }
          const askedAt = performance.now()
          const { status } = await submit(app, caller, {
            operation: sendMessage,
            key: newId(),
            fingerprint: sha256(account_id),
            overrides: {},
            want: async () => wanted,
          })
          if (status === 200) times.push(performance.now() - askedAt)
        }
      }
      const startedAt = performance.now()
      await Promise.all(Array.from({ length: callers }, (_, at) => call(at)))
      const seconds = (performance.now() - startedAt) / 1000
      return { seconds, p99: quantile(times, 0.99), accepted: times.length }
    }

    const direct: Measured[] = []
    const http: Measured[] = []
    for (let round = 0; round < rounds; round++) {
      direct.push(await directly())
      http.push(await throughHttp())
    }
    const best = (all: readonly Measured[]) =>
      Math.max(...all.map(({ accepted, seconds }) => accepted / seconds))
    const sends = [...direct, ...http].reduce((sum, { accepted }) => sum + accepted, 0)
    row('fsync, median', `${number(fsyncMs(data_dir), 2)} ms`)
    row('sends through the ledger alone', `${number(best(direct))} /s`)
    row('sends through HTTP', `${number(best(http))} /s`)
    row('p99 of a send through HTTP', `${number(Math.min(...http.map(({ p99 }) => p99)))} ms`)
    row(
      'accepted in all, and by the platform',
      `${number(sends)}, ${number(sandbox.world.state.journal.length)}`,
    )
    if (sends !== callers * each * rounds * 2 || sends !== sandbox.world.state.journal.length)
      process.exitCode = 1
    verdict('through HTTP over the ledger alone', best(http) / best(direct), { least: 0.6 })

    const before = process.memoryUsage.rss()
    let most = before
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss())
    }, 20)
    const count = ['--callers', String(uploads), '--each', '1', '--bytes', String(uploadBytes)]
    const uploaded = await throughHttp(count)
    clearInterval(watch)
    row('uploads of 25 MiB that the platform accepted', number(uploaded.accepted))
    if (uploaded.accepted !== uploads) process.exitCode = 1
    verdict(`MB that ${uploads} uploads at once took`, (most - before) / mb, { most: 64 })

    await server.close()
    await worker.stop()
    await sandbox.close()
  },
  { env: { PARLEY_RATE_LIMIT: '1000000' } },
)

async function until(done: () => Promise<boolean>): Promise<void> {
  while (!(await done())) await new Promise((resolve) => setTimeout(resolve, 50))
}
