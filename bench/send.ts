/**
 * Sends per second that the platform accepted, through the ledger alone and through HTTP, against the same rows written in bare
 * SQL in the same run: three statements, two flushed commits and one shared flush of a file. Medians of alternating rounds after
 * a warm-up round. One service, 50 accounts, 100 callers, a platform that answers immediately. Then 20 uploads of 25 MiB at the
 * same time, and their cost in memory.
 * With `--platform telegram` it measures Telegram accounts instead.
 */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { setGates } from '../src/capabilities/gates/gates.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import { sendMessage } from '../src/capabilities/messages/send.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { type Caller, scopes } from '../src/contract.ts'
import { type Database, sql } from '../src/db/sql.ts'
import { buildServer } from '../src/http/server.ts'
import { type Journal, openJournal } from '../src/ledger/journal.ts'
import { requestOperation } from '../src/ledger/request.ts'
import { newId } from '../src/lib/ids.ts'
import { sha256 } from '../src/lib/secrets.ts'
import { loops } from '../src/lists/loops.ts'
import { routes } from '../src/lists/routes.ts'
import type { NewOperation } from '../src/operation.ts'
import { openLocalSandbox } from '../src/platform/sandbox/sandbox.ts'
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
  readonly p50?: number
  readonly p99: number
  readonly accepted: number
}

if (process.argv.includes('telegram')) {
  await import('./send-telegram.ts')
  process.exit()
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
    const parts = { platforms, directory: data_dir, loops }
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
      readiness: { worker: () => 'ok', journal: () => 'ok', stopping: () => false },
    })
    const url = await server.listen({ host: '127.0.0.1', port: 0 })
    const chat = `platform:chat:${person_id}`
    const via = {
      kind: 'key',
      id: key_id,
      name: 'bench',
      prefix: '',
      mcp_only: false,
      issued_by: 'operator',
      role: 'owner',
    } as const
    const caller: Caller = { workspace_id, user_id: user.id, scopes, via }

    async function throughHttp(more: readonly string[] = []): Promise<Measured> {
      const given = ['--url', url, '--key', key, '--accounts', ids.join(','), '--chat', chat]
      const count = more.includes('--callers') ? [] : ['--callers', String(callers), '--each', String(each)]
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
          const { status } = await requestOperation(app, caller, {
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

    /** The same rows in bare SQL: queued without a flush, the boundary, one line on disk, the outcome. */
    const disk = await openJournal(join(data_dir, 'bare'), newId())
    const row_ = { workspace_id, user_id: user.id, key_id }
    async function bare(): Promise<Measured> {
      const times: number[] = []
      const call = async () => {
        for (let n = 0; n < each; n++) {
          const askedAt = performance.now()
          await sendBare(app.db, disk, row_)
          times.push(performance.now() - askedAt)
        }
      }
      const startedAt = performance.now()
      await Promise.all(Array.from({ length: callers }, call))
      const seconds = (performance.now() - startedAt) / 1000
      return { seconds, p99: quantile(times, 0.99), accepted: times.length }
    }

    async function alone(): Promise<number> {
      const { p50 } = await throughHttp(['--callers', '1', '--each', '200'])
      return p50 ?? 0
    }

    // The first round warms up connections, plans and code; it is not counted.
    await bare()
    await directly()
    await throughHttp()
    const all = { bare: [] as Measured[], direct: [] as Measured[], http: [] as Measured[] }
    for (let round = 0; round < rounds; round++) {
      all.bare.push(await bare())
      all.direct.push(await directly())
      all.http.push(await throughHttp())
    }
    const lone = await alone()
    const rate = (measured: readonly Measured[]) =>
      quantile(
        measured.map(({ accepted, seconds }) => accepted / seconds),
        0.5,
      )
    const counted = [...all.direct, ...all.http].reduce((sum, { accepted }) => sum + accepted, 0)
    const sends = counted + 2 * callers * each + 200
    row('fsync, median', `${number(fsyncMs(data_dir), 2)} ms`)
    row('the same rows in bare SQL', `${number(rate(all.bare))} /s`)
    row('sends through the ledger alone', `${number(rate(all.direct))} /s`)
    row('sends through HTTP', `${number(rate(all.http))} /s`)
    const p99 = quantile(
      all.http.map((measured) => measured.p99),
      0.5,
    )
    row('p99 of a send through HTTP, 100 callers', `${number(p99)} ms`)
    row('p50 of a send of one caller alone', `${number(lone, 1)} ms`)
    const journalled = sandbox.world.state.journal.length
    row('accepted in all, and by the platform', `${number(sends)}, ${number(journalled)}`)
    if (counted !== callers * each * rounds * 2 || sends !== journalled) process.exitCode = 1
    verdict('the ledger over bare SQL', rate(all.direct) / rate(all.bare), { least: 0.6 })
    verdict('through HTTP over bare SQL', rate(all.http) / rate(all.bare), { least: 0.4 })

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

    await disk.close()
    await server.close()
    await worker.stop()
    await sandbox.close()
  },
  { env: { PARLEY_RATE_LIMIT: '1000000' } },
)

async function sendBare(
  db: Database,
  disk: Journal,
  { workspace_id, user_id, key_id }: { workspace_id: string; user_id: string; key_id: string },
): Promise<void> {
  const [id, token] = [newId(), randomUUID()]
  const fingerprint = sha256(id)
  await db.run(sql`
    with unflushed as materialized (select set_config('synchronous_commit', 'off', true))
    insert into operations (id, workspace_id, kind, effect, idempotency_key, fingerprint, state, user_id, key_id, payload,
      expires_at)
    select ${id}::uuid, ${workspace_id}::uuid, 'bare', 'platform', ${id}, ${fingerprint}::bytea, 'queued', ${user_id}::uuid,
      ${key_id}::uuid, ${JSON.stringify({ text: 'A message.', file: null })}::jsonb, clock_timestamp() + interval '1 hour'
    from unflushed`)
  await db.run(sql`
    update operations set state = 'submitting', attempt_no = attempt_no + 1, attempt_token = ${token},
      lease_until = clock_timestamp() + interval '1 hour'
    where id = ${id} and state = 'queued'`)
  const chat_id = '1' as const
  const entry = {
    id,
    token,
    workspace_id,
    kind: 'bare',
    account_id: '',
    chat_id,
    random_id: '1',
    key: id,
    fingerprint: '',
  }
  await disk.intend(entry)
  await db.run(sql`
    update operations set state = 'completed', reply_status = 200, reply_body = '{}', finished_at = domain_now(),
      lease_until = null
    where id = ${id} and attempt_token = ${token} and state = 'submitting'`)
}

async function until(done: () => Promise<boolean>): Promise<void> {
  while (!(await done())) await new Promise((resolve) => setTimeout(resolve, 50))
}
