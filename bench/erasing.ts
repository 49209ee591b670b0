/**
 * What erasing a person costs another workspace: the latency of its sends while a person with 10,000 messages is erased, over the same
 * without, in alternating rounds after one that warms up; medians. One process, as `parley start`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { previewErasure, requestErasure } from '../src/capabilities/erasing/erasing.ts'
import { setGates } from '../src/capabilities/gates/gates.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import { sendMessage } from '../src/capabilities/messages/send.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { createWorkspace } from '../src/capabilities/workspaces/workspaces.ts'
import { type Caller, scopes } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import { requestOperation } from '../src/ledger/request.ts'
import { newId } from '../src/lib/ids.ts'
import { sha256 } from '../src/lib/secrets.ts'
import { loops } from '../src/lists/loops.ts'
import { openLocalSandbox } from '../src/platform/sandbox/sandbox.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { addAccounts, makeAccounts, number, quantile, row, verdict, withInstance } from './harness.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, messages: { type: 'string', default: '10000' } },
})
const rounds = Number(values.rounds)
const messages = Number(values.messages)
const accounts = 10
const callers = 10
/** A round takes as long as an erasure, and this at least. */
const roundMs = 8_000
/** The p99 of another workspace's sends, over that without an erasure. */
const most = 1.3

interface Measured {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly seconds: number
}

await withInstance(async (app, data_dir) => {
  const { workspace_id, ids } = await makeAccounts(app, accounts)
  const user = await createUser(app, 'system', { email: 'sender@example.org', workspace_id })
  const { id } = await createKey(app, 'system', { workspace_id, user_id: user.id, name: 'bench', scopes })
  const other = await createWorkspace(app, 'system', { name: 'Other' })
  const [theirs = ''] = await addAccounts(app, other.id, 1)
  await setGates(app, 'system', { names: ['all'], enabled: true })
  const sandbox = await openLocalSandbox({ data_dir: null, failed: console.error })
  const { person_id } = sandbox.world.addPerson({ name: 'Ada' })
  const platforms = new Map([['sandbox' as const, sandbox.platform]])
  const worker = runWorker(app, await assembleWorker(app, { platforms, directory: data_dir, loops }))
  for (let ready = 0; ready < accounts + 1; await sleep(50)) {
    ready = (
      await app.db.one<{ n: number }>(sql`select count(*)::int as n from accounts where status = 'READY'`)
    ).n
  }
  await app.db.run(sql`
    insert into chats (account_id, chat_id, workspace_id, kind, name)
    select id, ${person_id}::bigint, workspace_id, 'private', 'Ada' from accounts where id = any(${ids})`)
  const via = {
    ...({ kind: 'key', id, name: 'bench', prefix: '', mcp_only: false } as const),
    ...({ issued_by: 'operator', role: 'owner' } as const),
  }
  const caller: Caller = { workspace_id, user_id: user.id, scopes, via }

  let people = 50_000
  /** A person of the other workspace with this many messages, of which every second is ours and has its operation and its event. */
  async function makePerson(): Promise<string> {
    const chat = ++people
    const step = 1_000
    for (let at = 0; at < messages; at += step) {
      await app.db.run(sql`
        insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at, random_id)
        select ${theirs}, ${chat}::bigint, ${chat}::bigint * 100000 + n, ${other.id}, 'A message with several words, number ' || n,
          n % 2 = 0, now() - n * interval '1 minute', case when n % 2 = 0 then ${chat}::bigint * 100000 + n end
        from generate_series(${at}::int, ${at + step - 1}::int) n`)
      await app.db.run(sql`
        insert into operations (id, workspace_id, kind, effect, fingerprint, state, account_id, chat_id, payload, random_id,
          reply_status, reply_body, finished_at)
        select gen_random_uuid(), ${other.id}, 'send_message', 'platform', sha256('x'), 'completed', ${theirs}, ${chat}::bigint,
          '{"text": "A message.", "file": null}', ${chat}::bigint * 100000 + n, 200, '{"ok": true, "message_id": "1"}',
          now() - n * interval '1 minute'
        from generate_series(${at}::int, ${at + step - 1}::int, 2) n`)
    }
    await app.db.run(sql`
      insert into chats (account_id, chat_id, workspace_id, kind, name)
      values (${theirs}, ${chat}::bigint, ${other.id}, 'private', 'Erased')`)
    await app.db.run(sql`
      insert into contacts (account_id, provider_id, workspace_id, name, username)
      values (${theirs}, ${chat}::bigint, ${other.id}, 'Erased', ${`erased_${chat}`})`)
    const found = await app.db.one<{ id: string }>(sql`
      select id from people where workspace_id = ${other.id} and number = ${chat}::bigint`)
    return found.id
  }

  async function erase(person: string): Promise<void> {
    const { preview } = await previewErasure(app.db, other.id, person)
    const wanted = { workspace_id: other.id, person_id: person, preview, contact_allowed: false }
    const erasure = await app.db.transaction((tx) => requestErasure(app, tx, 'system', wanted))
    for (;;) {
      const { done } = await app.db.one<{ done: boolean }>(sql`
        select done_at is not null as done from erasures where id = ${erasure.id}`)
      if (done) return
      await sleep(100)
    }
  }

  async function measure(person: string | undefined): Promise<Measured> {
    const times: number[] = []
    const startedAt = performance.now()
    let erasing = person !== undefined
    const erased = person === undefined ? undefined : erase(person).finally(() => (erasing = false))
    const call = async (at: number) => {
      const account_id = ids[at % ids.length] ?? ''
      // Only sends during the erasure count.
      while (person === undefined ? performance.now() - startedAt < roundMs : erasing) {
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
    await Promise.all([erased, ...Array.from({ length: callers }, (_, at) => call(at))])
    const seconds = (performance.now() - startedAt) / 1000
    return {
      perSecond: times.length / seconds,
      p50: quantile(times, 0.5),
      p99: quantile(times, 0.99),
      seconds,
    }
  }

  const made: string[] = []
  for (let n = 0; n <= rounds; n++) made.push(await makePerson())
  await app.db.run(sql`analyze`)
  await measure(undefined)
  await measure(made.pop())
  const without: Measured[] = []
  const during: Measured[] = []
  for (let round = 0; round < rounds; round++) {
    // Whichever comes first changes with each round.
    if (round % 2 === 0) without.push(await measure(undefined))
    during.push(await measure(made.pop()))
    if (round % 2 === 1) without.push(await measure(undefined))
  }
  const median = (measured: readonly Measured[], of: keyof Measured) =>
    quantile(
      measured.map((one) => one[of]),
      0.5,
    )
  for (const [name, measured] of [['without', without] as const, ['during an erasure', during] as const]) {
    row(`sends of another workspace, ${name}`, `${number(median(measured, 'perSecond'))} /s`)
    row(
      `p50 and p99, ${name}`,
      `${number(median(measured, 'p50'), 1)} and ${number(median(measured, 'p99'), 1)} ms`,
    )
  }
  row(`erasing a person with ${number(messages)} messages`, `${number(median(during, 'seconds'), 1)} s`)
  verdict('p99 of another workspace during an erasure', median(during, 'p99') / median(without, 'p99'), {
    most,
  })
  await worker.stop()
  await sandbox.close()
})
