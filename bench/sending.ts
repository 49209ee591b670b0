/** Accounts that send through the ledger in one process, as `parley start`, while a bench does something beside them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { setGates } from '../src/capabilities/gates/gates.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import { sendMessage } from '../src/capabilities/messages/send.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { type Caller, scopes } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import { requestOperation } from '../src/ledger/request.ts'
import { newId } from '../src/lib/ids.ts'
import { sha256 } from '../src/lib/secrets.ts'
import { loops } from '../src/lists/loops.ts'
import { openLocalSandbox } from '../src/platform/sandbox/sandbox.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { makeAccounts, number, quantile, row, withInstance } from './harness.ts'

export interface Sends {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly seconds: number
}

interface Sending {
  readonly app: OpenApp
  readonly workspace_id: string
  readonly ids: readonly string[]
  /** To whom they write. */
  readonly person_id: number
  /** So many callers send one message after the other while it returns true. */
  send(callers: number, isGoing: () => boolean): Promise<Sends>
}

export async function withSending(
  accounts: number,
  work: (sending: Sending) => Promise<void>,
): Promise<void> {
  await withInstance(async (app, data_dir) => {
    const { workspace_id, ids } = await makeAccounts(app, accounts)
    const user = await createUser(app, 'system', { email: 'sender@example.org', workspace_id })
    const { id } = await createKey(app, 'system', { workspace_id, user_id: user.id, name: 'bench', scopes })
    await setGates(app, 'system', { names: ['all'], enabled: true })
    const sandbox = await openLocalSandbox({ data_dir: null, failed: console.error })
    const { person_id } = sandbox.world.addPerson({ name: 'Ada' })
    const platforms = new Map([['sandbox' as const, sandbox.platform]])
    const worker = runWorker(app, await assembleWorker(app, { platforms, directory: data_dir, loops }))
    const countReady = () =>
      app.db.one<{ n: number }>(sql`select count(*)::int as n from accounts where status = 'READY'`)
    // On a busy machine the connections are taken while the accounts start.
    for (let ready = 0; ready < accounts; await sleep(50))
      ready = (await countReady().catch(() => ({ n: 0 }))).n
    await app.db.run(sql`
      insert into chats (account_id, chat_id, workspace_id, kind, name)
      select id, ${person_id}::bigint, workspace_id, 'private', 'Ada' from accounts where id = any(${ids})`)
    const via = {
      ...({ kind: 'key', id, name: 'bench', prefix: '', mcp_only: false } as const),
      ...({ issued_by: 'operator', role: 'owner' } as const),
    }
    const caller: Caller = { workspace_id, user_id: user.id, scopes, via }
    const target = { chat_id: `${person_id}`, payload: { text: 'A message.', file: null } } as const
    async function sendOne(account_id: string): Promise<boolean> {
      const { status } = await requestOperation(app, caller, {
        operation: sendMessage,
        key: newId(),
        fingerprint: sha256(account_id),
        overrides: {},
        want: async () => ({ account_id, ...target }),
      })
      return status === 200
    }
    async function send(callers: number, isGoing: () => boolean): Promise<Sends> {
      const times: number[] = []
      const startedAt = performance.now()
      const call = async (at: number) => {
        while (isGoing()) {
          const askedAt = performance.now()
          if (await sendOne(ids[at % ids.length] ?? '')) times.push(performance.now() - askedAt)
        }
      }
      await Promise.all(Array.from({ length: callers }, (_, at) => call(at)))
      const seconds = (performance.now() - startedAt) / 1_000
      const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)]
      return { perSecond: times.length / seconds, p50, p99, seconds }
    }
    await work({ app, workspace_id, ids, person_id, send })
    await worker.stop()
    await sandbox.close()
  })
}

/** True for so long from now. */
export function during(ms: number): () => boolean {
  const until = performance.now() + ms
  return () => performance.now() < until
}

export const medianOf = (rounds: readonly Sends[], of: keyof Sends): number =>
  quantile(
    rounds.map((one) => one[of]),
    0.5,
  )

export function printSends(name: string, rounds: readonly Sends[]): void {
  row(`sends, ${name}`, `${number(medianOf(rounds, 'perSecond'))} /s`)
  row(
    `p50 and p99, ${name}`,
    `${number(medianOf(rounds, 'p50'), 1)} and ${number(medianOf(rounds, 'p99'), 1)} ms`,
  )
}
