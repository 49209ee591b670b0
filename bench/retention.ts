/**
 * What clearing costs sends: their rate and latency while the loop of retention clears messages and operations of the same accounts, over
 * the same without it, in alternating rounds after a round that warms up; medians. One process, as `parley start`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { setGates } from '../src/capabilities/gates/gates.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import { sendMessage } from '../src/capabilities/messages/send.ts'
import { makeSweep } from '../src/capabilities/retention/loops.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { type Caller, scopes } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import { requestOperation } from '../src/ledger/request.ts'
import { newId } from '../src/lib/ids.ts'
import { sha256 } from '../src/lib/secrets.ts'
import { loops } from '../src/lists/loops.ts'
import { openLocalSandbox } from '../src/platform/sandbox/sandbox.ts'
import { runLoops } from '../src/worker/run-loops.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { makeAccounts, number, quantile, row, verdict, withInstance } from './harness.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '7' }, rows: { type: 'string', default: '60000' } },
})
const rounds = Number(values.rounds)
const rows = Number(values.rows)
const accounts = 10
const callers = 20
const roundMs = 8_000
/** A send may cost a tenth more. */
const most = 1.1

interface Measured {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly cleared: number
}

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
  // On a busy machine the connections are taken while ten accounts start.
  for (let ready = 0; ready < accounts; await sleep(50))
    ready = (await countReady().catch(() => ({ n: 0 }))).n
  for (const account_id of ids) {
    await app.db.run(sql`
        insert into chats (account_id, chat_id, workspace_id, kind, name)
        select ${account_id}, c, ${workspace_id}, 'private', 'Ada' from generate_series(${person_id}::bigint, 1999) c`)
  }
  await fill()
  const via = {
    kind: 'key',
    id,
    name: 'bench',
    prefix: '',
    mcp_only: false,
    issued_by: 'operator',
    role: 'owner',
  } as const
  const caller: Caller = { workspace_id, user_id: user.id, scopes, via }

  /** Messages and ended operations of two years ago, in the accounts that send. */
  async function fill(): Promise<void> {
    // A statement has 5 s, also on a busy machine.
    const step = 500
    for (let at = 0; at < rows; at += step) {
      await app.db.run(sql`
          insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
          select (${ids}::text[])[n % ${accounts} + 1], 1000 + n % 999, 1000000 + n, ${workspace_id},
            'A message of long ago, number ' || n, false, now() - interval '2 years' + n * interval '1 second'
          from generate_series(${at}::int, ${at + step - 1}::int) n`)
      await app.db.run(sql`
          insert into operations (id, workspace_id, kind, effect, fingerprint, state, account_id, chat_id, payload, random_id,
            reply_status, reply_body, finished_at)
          select gen_random_uuid(), ${workspace_id}, 'send_message', 'platform', sha256('x'), 'completed',
            (${ids}::text[])[n % ${accounts} + 1], 1000 + n % 999, '{"text": "A message of long ago.", "file": null}', n, 200,
            '{"ok": true, "message_id": "1"}', now() - interval '2 years' + n * interval '1 second'
          from generate_series(${at}::int, ${at + step - 1}::int) n`)
    }
    await app.db.run(sql`analyze`)
  }

  const countCleared = async () =>
    (
      await app.db.one<{ n: number }>(sql`
          select (select count(*) from messages where deleted_at is not null)::int
            + (select count(*) from operations where cleared_at is not null)::int as n`)
    ).n

  async function measure(clearing: boolean): Promise<Measured> {
    await app.db.run(sql`delete from retention`)
    if (clearing) {
      await app.db.run(sql`
          insert into retention (workspace_id, messages_days, operations_days) values (${workspace_id}, 365, 365)`)
    }
    const before = await countCleared()
    const sweep = runLoops(app, [makeSweep()])
    const times: number[] = []
    const startedAt = performance.now()
    const call = async (at: number) => {
      const account_id = ids[at % ids.length] ?? ''
      while (performance.now() - startedAt < roundMs) {
        const askedAt = performance.now()
        const { status } = await requestOperation(app, caller, {
          operation: sendMessage,
          key: newId(),
          fingerprint: sha256(account_id),
          overrides: {},
          want: async () => ({
            account_id,
            chat_id: `${person_id}`,
            payload: { text: 'A message.', file: null },
          }),
        })
        if (status === 200) times.push(performance.now() - askedAt)
      }
    }
    await Promise.all(Array.from({ length: callers }, (_, at) => call(at)))
    const seconds = (performance.now() - startedAt) / 1000
    await sweep.stop()
    return {
      perSecond: times.length / seconds,
      p50: quantile(times, 0.5),
      p99: quantile(times, 0.99),
      cleared: (await countCleared()) - before,
    }
  }

  await measure(false)
  await measure(true)
  const all = { without: [] as Measured[], clearing: [] as Measured[] }
  for (let round = 0; round < rounds; round++) {
    // Whichever comes first changes with each round.
    const order = round % 2 === 0 ? ([false, true] as const) : ([true, false] as const)
    for (const clearing of order) all[clearing ? 'clearing' : 'without'].push(await measure(clearing))
  }
  const median = (measured: readonly Measured[], of: keyof Measured) =>
    quantile(
      measured.map((one) => one[of]),
      0.5,
    )
  for (const [name, measured] of Object.entries(all)) {
    row(`sends, ${name}`, `${number(median(measured, 'perSecond'))} /s`)
    row(
      `p50 and p99, ${name}`,
      `${number(median(measured, 'p50'), 1)} and ${number(median(measured, 'p99'), 1)} ms`,
    )
  }
  row('rows cleared in a round, least', number(Math.min(...all.clearing.map(({ cleared }) => cleared))))
  if (all.clearing.some(({ cleared }) => cleared === 0)) process.exitCode = 1
  const times = (of: 'p50' | 'p99') => median(all.clearing, of) / median(all.without, of)
  verdict('a send, median, while the loop clears', times('p50'), { most })
  row('its p99 over that without', number(times('p99'), 2))
  await worker.stop()
  await sandbox.close()
})
