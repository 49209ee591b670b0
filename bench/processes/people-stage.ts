/**
 * A service with accounts of the sandbox, each with people who have written to it, for `people.ts`. It runs the same file in a
 * checkout of older code, so this uses only what both have. It does the work that a message names, and answers with what that
 * cost for each message: buffers of the database, and CPU of this process and PostgreSQL.
 */
import { createAccount } from '../../src/capabilities/accounts/accounts.ts'
import { messagesDue } from '../../src/capabilities/campaigns/running/running.ts'
import { setAllowed, setGates } from '../../src/capabilities/gates/gates.ts'
import { createKey } from '../../src/capabilities/keys/keys.ts'
import { sendMessage } from '../../src/capabilities/messages/send.ts'
import { type Caller, scopes } from '../../src/contract.ts'
import { sql } from '../../src/db/sql.ts'
import { claimAccounts } from '../../src/ledger/leases.ts'
import { requestOperation } from '../../src/ledger/request.ts'
import { newId } from '../../src/lib/ids.ts'
import { sha256 } from '../../src/lib/secrets.ts'
import { loops } from '../../src/lists/loops.ts'
import type { Update } from '../../src/platform/port.ts'
import { writeMessage } from '../../src/platform/sandbox/person-acts.ts'
import { openLocalSandbox } from '../../src/platform/sandbox/sandbox.ts'
import { ingest } from '../../src/worker/ingest.ts'
import { assembleWorker, runWorker } from '../../src/worker/worker.ts'
import { until } from '../dispatch-stage.ts'
import { makeAccounts, withInstance } from '../harness.ts'
import { cpuOf } from '../load.ts'

const accounts = 10
/** Of each account. A day's rounds stay below the largest possible quota. */
const people = 15
/** Contacts, and entries of the suppression list, that nothing here is about. */
const others = 10_000
const atOnce = 1_000
const callers = 20
const batchSize = 100
const batches = 5
const knownChats = 200
/** The statistics of a connection may be written a second after the last time. */
const statisticsMs = 1_100

await withInstance(
  async (app, data_dir) => {
    // It would read pages at moments of its own.
    await app.db.pool.query('alter system set autovacuum = off')
    await app.db.pool.query('select pg_reload_conf()')
    const { workspace_id, user_id, ids } = await makeAccounts(app, accounts)
    await setGates(app, 'system', { names: ['all', 'extended'], enabled: true })
    await setAllowed(app, 'system', { list: 'campaign_user', id: user_id, allowed: true })
    await setAllowed(app, 'system', { list: 'campaign_workspace', id: workspace_id, allowed: true })
    const { id: key_id } = await createKey(app, 'system', { workspace_id, user_id, name: 'bench', scopes })
    const sandbox = await openLocalSandbox({ data_dir: null, failed: console.error })
    const { world } = sandbox
    const platforms = new Map([['sandbox' as const, sandbox.platform]])
    const worker = runWorker(app, await assembleWorker(app, { platforms, directory: data_dir, loops }))
    const count = async (what: ReturnType<typeof sql>) =>
      (await app.db.one<{ count: number }>(sql`select (${what})::int as count`)).count
    await until(
      async () => (await count(sql`select count(*) from accounts where status = 'READY'`)) === accounts,
    )
    const known = ids.flatMap((account_id, at) =>
      Array.from({ length: people }, (_, n) => {
        const username = `person_${at}_${n}`
        const phone = `+4917${String(at * people + n).padStart(8, '0')}`
        const { person_id } = world.addPerson({ name: `Ada ${n}`, username, phone, behaviour: 'silent' })
        writeMessage(world, { account_id, person_id, text: 'Hello' })
        return { account_id, person_id, username }
      }),
    )
    await until(async () => (await count(sql`select count(*) from chats`)) === known.length)
    const tiedPeople = new Map<number, string>()
    // The worker claims accounts of the sandbox only.
    const held: Awaited<ReturnType<typeof hold>>[] = []
    for (let n = 0; n < 3; n++) held.push(await hold(n))
    for (let from = 0; from < others; from += atOnce) {
      const numbers = sql`generate_series(${from}::int + 1, ${from + atOnce}::int) n`
      await app.db.run(sql`
        insert into contacts (account_id, provider_id, workspace_id, name, username, phone)
        select ${held[0]?.account_id}, 50000000 + n, ${workspace_id}, 'Somebody', 'somebody_' || n, '+4930' || 10000000 + n
        from ${numbers}`)
      await app.db.run(sql`
        insert into suppressions (workspace_id, kind, value, source)
        select ${workspace_id}, 'phone', (4940000000 + n)::text, 'operator' from ${numbers}`)
    }

    async function hold(n: number) {
      const worker_id = newId()
      const { id } = await createAccount(app, 'system', {
        workspace_id,
        platform: 'telegram',
        name: `Ingest ${n}`,
      })
      const [lease] = await claimAccounts(app.db, {
        worker_id,
        platform: 'telegram',
        limit: 1,
        takeover_seconds: 0,
        neighbours: [],
      })
      if (!lease) throw new Error('The account was not claimed.')
      await app.db.run(sql`
        update account_hosts set lease_until = real_now() + interval '1 hour' where account_id = ${id}`)
      return { worker_id, ...lease, writes: { seen: lease.writes } }
    }

    /** As a caller of POST /messages. */
    async function sends(): Promise<number> {
      const via = { kind: 'key', id: key_id, name: 'bench', prefix: '', mcp_only: false } as const
      // The older code knows less of a key.
      const caller = {
        workspace_id,
        user_id,
        scopes,
        via: { ...via, issued_by: 'operator', role: 'owner' },
      } as Caller
      const left = [...known]
      const call = async () => {
        for (let next = left.pop(); next; next = left.pop()) {
          const { account_id, person_id } = next
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
          if (status !== 200) throw new Error(`A send was answered with ${status}.`)
        }
      }
      await Promise.all(Array.from({ length: callers }, call))
      await untilEchoed()
      return known.length
    }

    /**
     * A campaign for each account, so that a person is written to once in it. `tied`: recipients have the people of the account's
     * chats, as creation stores contacts whose names count.
     */
    async function campaigns(kind: 'scoped' | 'contacts', tied = false): Promise<number> {
      const made = ids.map((account_id) => ({ id: newId(), account_id }))
      // Creation reads them; what is measured begins after it.
      if (tied && tiedPeople.size === 0)
        for (const [number, id] of await readPeople()) tiedPeople.set(number, id)
      const column = tied ? sql`, person_id` : sql``
      for (const { id, account_id } of made) {
        const own = known.filter((each) => each.account_id === account_id)
        const chats = own.map(({ person_id }) => (kind === 'scoped' ? person_id : null))
        const names = own.map(({ person_id, username }) =>
          kind === 'scoped' ? `${account_id}:${person_id}` : `username:${username}`,
        )
        await app.db.transaction(async (tx) => {
          await tx.run(sql`
            insert into campaigns (id, workspace_id, user_id, kind, status, pause_reason, message_text,
              daily_quota_per_account, sequence)
            values (${id}, ${workspace_id}, ${user_id}, ${kind}, 'paused', 'requested', 'A message.', 200, true)`)
          await tx.run(sql`
            insert into campaign_accounts (campaign_id, account_id, workspace_id, pool)
            values (${id}, ${account_id}, ${workspace_id}, ${kind === 'contacts'})`)
          await tx.run(sql`
            insert into campaign_recipients (id, campaign_id, workspace_id, account_id, chat_id, contact, position,
              next_action_at ${column})
            select gen_random_uuid(), ${id}, ${workspace_id}, ${account_id}, chat_id, contact, n, domain_now() ${column}
            from unnest(${chats}::bigint[], ${names}::text[], ${own.map(({ person_id }) => tiedPeople.get(person_id))}::uuid[])
              with ordinality as g (chat_id, contact, person_id, n)`)
        })
      }
      const all = made.map(({ id }) => id)
      await app.db.run(sql`
        update campaigns set status = 'queued', pause_reason = null where id = any(${all}::uuid[])`)
      app.wake.signal(messagesDue)
      await until(
        async () =>
          (await count(sql`
            select count(*) from campaign_recipients where campaign_id = any(${all}::uuid[]) and ended_at is null`)) ===
          0,
      )
      const sent = await count(sql`
        select count(*) from campaign_recipients where campaign_id = any(${all}::uuid[]) and status = 'completed'`)
      if (sent !== known.length) throw new Error(`${sent} of ${known.length} messages were sent.`)
      await untilEchoed()
      return known.length
    }

    /** The ids of people, by their number. */
    async function readPeople(): Promise<readonly (readonly [number, string])[]> {
      const rows = await app.db.rows<{ number: string; id: string }>(sql`select number::text, id from people`)
      return rows.map(({ number, id }) => [Number(number), id])
    }

    function untilEchoed(): Promise<void> {
      const sent = world.state.journal.length
      return until(
        async () =>
          (await count(sql`
            select count(*) from messages where is_sender and account_id = any(${ids}::text[])`)) === sent,
      )
    }

    /** Messages of people, in batches as after an absence or alone as they arrive live. */
    let written = 0
    async function receive(
      n: number,
      { size, times, chats }: { size: number; times: number; chats: number },
    ): Promise<number> {
      const by = held[n]
      if (!by) throw new Error('There is no such account.')
      for (let batch = 0; batch < times; batch++) {
        const updates = Array.from({ length: size }, () => updateOf(++written, (written % chats) + 1))
        const position = String(written)
        const ended = await ingest(app, by, { updates, position, caught_up: true })
        if (!ended) throw new Error('The lease was lost.')
      }
      return size * times
    }

    const parts: Readonly<Record<string, () => Promise<number>>> = {
      sends,
      chats: () => campaigns('scoped'),
      contacts: () => campaigns('contacts'),
      'contacts whose names count': () => campaigns('contacts', true),
      'ingest in batches': () => receive(1, { size: batchSize, times: batches, chats: knownChats }),
      'ingest one by one': () => receive(1, { size: 1, times: batchSize, chats: knownChats }),
      'ingest of new people': () =>
        receive(2, { size: batchSize, times: 2, chats: Number.POSITIVE_INFINITY }),
    }

    async function measure(work: () => Promise<number>): Promise<{ buffers: number; ms: number }> {
      const before = await buffersRead()
      const own = process.cpuUsage()
      let messages = 0
      const server = await cpuOf({ processes: [], data_dir }, async () => {
        messages = await work()
      })
      const { user, system } = process.cpuUsage(own)
      const buffers = (await buffersRead()) - before
      return { buffers: buffers / messages, ms: (server + (user + system) / 1_000) / messages }
    }

    async function buffersRead(): Promise<number> {
      await new Promise((done) => setTimeout(done, statisticsMs))
      const { max = 1 } = app.db.pool.options
      // Every connection of the pool at once: each writes what it has counted when its statement ends.
      const each = 'select pg_stat_force_next_flush(), pg_sleep(0.2)'
      await Promise.all(Array.from({ length: max }, () => app.db.pool.query(each)))
      const { rows } = await app.db.pool.query(
        'select blks_hit + blks_read as blocks from pg_stat_database where datname = current_database()',
      )
      return Number(rows[0].blocks)
    }

    /** However long it takes: statements of the service may not. */
    async function analyze(): Promise<void> {
      await app.db.pool.query('begin; set local statement_timeout = 0; analyze; commit')
    }

    let ended = () => {}
    const over = new Promise<void>((resolve) => {
      ended = resolve
    })
    process.on('message', (part: string) => {
      if (part === 'stop') ended()
      else if (part === 'analyze') void analyze().then(() => process.send?.('done'))
      else void measure(parts[part] ?? sends).then((cost) => process.send?.(cost))
    })
    process.send?.({ parts: Object.keys(parts) })
    await over
    await worker.stop()
    await sandbox.close()
  },
  { env: { PARLEY_PACING_SECONDS: '0' } },
)
process.exit()

function updateOf(id: number, number: number): Update {
  const person = { name: `Person ${number}`, username: `writer_${number}` }
  return {
    kind: 'message',
    live: true,
    chat: {
      id: `${number}`,
      kind: 'private',
      ...person,
      unread_count: 1,
      participants: [{ id: String(number), ...person, phone: null, kind: 'person' }],
    },
    message: {
      id: String(id),
      text: `Message ${id}: a sentence of ordinary length, as people write them every day.`,
      is_sender: false,
      sender_id: String(number),
      timestamp: new Date(1_790_000_000_000 + id * 1000).toISOString(),
      edited_at: null,
      attachments: [],
      random_id: null,
    },
  }
}
