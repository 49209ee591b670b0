/**
 * Updates stored per second, against bare inserts of the same rows through `pg`, in batches of the same size. Then the CPU of an
 * update with the indexes of the dashboard's pages, against without them. Then the first again, reported without a goal, with every writer one of 1,000,000 recipients. Ingest looks them up, and ends none of them,
 * because the ledger has no message to them.
 */

import type { OpenApp } from '../src/cli/open.ts'
import { sql } from '../src/db/sql.ts'
import { claimAccounts, type Lease } from '../src/ledger/leases.ts'
import { newId } from '../src/lib/ids.ts'
import type { Message, Update } from '../src/platform/port.ts'
import { ingest } from '../src/worker/ingest.ts'
import { fsyncMs, makeAccounts, number, quantile, row, verdict, withInstance } from './harness.ts'
import { cpuOf } from './load.ts'
import { addWaiting } from './waiting-recipients.ts'

const accounts = 8
const batches = 100
const batchSize = 100
const chats = 200
const rounds = 3
/** Those of the dashboard's pages on tables that ingest writes. */
const pageIndexes = ['chats_unread', 'chats_unanswered', 'chats_assigned', 'operations_unsent']
const indexRounds = 9
const waiting = 1_000_000

await withInstance(async (app, data_dir) => {
  const { workspace_id, user_id, ids } = await makeAccounts(app, accounts * rounds * 4 + indexRounds * 2)
  const worker_id = newId()
  const leases = await claimAccounts(app.db, {
    worker_id,
    platform: 'sandbox',
    limit: ids.length,
    takeover_seconds: 0,
    neighbours: [],
  })
  // Nothing renews the leases here.
  await app.db.run(sql`update account_hosts set lease_until = real_now() + interval '1 hour'`)
  const single = ids.splice(0, indexRounds * 2)
  const [plain, recipients] = [ids.slice(0, ids.length / 2), ids.slice(ids.length / 2)]
  row('fsync, median', `${number(fsyncMs(data_dir), 2)} ms`)
  const { bare, ours } = await compare(plain)
  row('bare inserts of the same rows', `${number(bare)} updates/s`)
  row('ingest', `${number(ours)} updates/s`)
  verdict('ingest over bare inserts', ours / bare, { least: 0.4 })
  await compareIndexes(single)
  await addWaiting({ app, workspace_id, user_id, accounts: recipients }, { count: waiting, first_chat: 1 })
  const beside = await compare(recipients)
  row(`ingest, ${number(waiting)} recipients waiting`, `${number(beside.ours)} updates/s`)
  row('of bare inserts', number(beside.ours / beside.bare, 2))

  /** Medians of alternating rounds, each with its own accounts. */
  async function compare(own: readonly string[]): Promise<{ bare: number; ours: number }> {
    const rates = { bare: [] as number[], ours: [] as number[] }
    for (let at = 0; at < own.length; at += accounts * 2) {
      rates.bare.push(await rate(own.slice(at, at + accounts), insertBare))
      rates.ours.push(await rate(own.slice(at + accounts, at + 2 * accounts), ingestAll))
    }
    return { bare: quantile(rates.bare, 0.5), ours: quantile(rates.ours, 0.5) }
  }

  /** Microseconds of this process and PostgreSQL for one update, in alternating rounds of one account each. */
  async function compareIndexes(own: readonly string[]): Promise<void> {
    const cpu = { with: [] as number[], without: [] as number[] }
    for (const [at, account_id] of own.entries()) {
      const work = async () => {
        const before = process.cpuUsage()
        const postgresMs = await cpuOf({ processes: [], data_dir }, () => ingestAll(account_id))
        const { user, system } = process.cpuUsage(before)
        return (user + system + postgresMs * 1_000) / (batches * batchSize)
      }
      if (at % 2 === 0) cpu.with.push(await work())
      else cpu.without.push(await withoutIndexes(app, pageIndexes, work))
    }
    // Each pair shares its moment of a busy machine, so pairs are compared, not the medians.
    const ratios = cpu.without.map((bare, round) => bare / (cpu.with[round] ?? Number.NaN))
    const least = `${number(Math.min(...cpu.with))}, ${number(Math.min(...cpu.without))} µs`
    row('CPU of an update with the indexes of pages, without, least', least)
    verdict('ingest with these indexes over without', quantile(ratios, 0.5), { least: 0.95 })
  }

  async function ingestAll(account_id: string): Promise<void> {
    const lease = leases.find((each) => each.account_id === account_id) as Lease
    for (let batch = 0; batch < batches; batch++) {
      const updates = messages(batch).map(
        ({ chat, message }): Update => ({
          kind: 'message',
          live: true,
          chat: {
            id: `${chat}`,
            kind: 'private',
            name: `Person ${chat}`,
            username: `person_${chat}`,
            unread_count: 1,
            participants: [
              {
                id: String(chat),
                name: `Person ${chat}`,
                username: `person_${chat}`,
                phone: null,
                kind: 'person',
              },
            ],
          },
          message,
        }),
      )
      const stored = await ingest(
        app,
        { worker_id, ...lease, writes: { seen: lease.writes } },
        { updates, position: String(batch + 1), caught_up: true },
      )
      if (!stored) throw new Error('The lease was lost.')
    }
  }

  /** The rows that ingest writes: messages and outbox, and each chat and contact once. */
  async function insertBare(account_id: string): Promise<void> {
    for (let batch = 0; batch < batches; batch++) {
      const made = messages(batch)
      await app.db.transaction(async (tx) => {
        await tx.run(sql`
          insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sender_id, sent_at, attachments,
            announced)
          select ${account_id}, chat_id, id, ${workspace_id}, text, false, chat_id, sent_at, '[]', true
          from unnest(${made.map(({ chat }) => chat)}::bigint[], ${made.map(({ message }) => message.id)}::bigint[],
            ${made.map(({ message }) => message.text)}::text[],
            ${made.map(({ message }) => message.timestamp)}::timestamptz[])
            as m (chat_id, id, text, sent_at)`)
        await tx.run(sql`
          insert into outbox (workspace_id, type, occurred_at, data)
          select ${workspace_id}, 'message.received', at, data
          from unnest(${made.map(({ message }) => message.timestamp)}::timestamptz[],
            ${made.map(({ message }) => JSON.stringify({ account_id, message }))}::json[]) as e (at, data)`)
        if (batch >= chats / batchSize) return
        await tx.run(sql`
          insert into chats (account_id, chat_id, workspace_id, kind, name, participants, last_message_at)
          select ${account_id}, chat_id, ${workspace_id}, 'private', 'Person', '[]', now()
          from unnest(${made.map(({ chat }) => chat)}::bigint[]) as c (chat_id)`)
        await tx.run(sql`
          insert into contacts (account_id, provider_id, workspace_id, name)
          select ${account_id}, chat_id, ${workspace_id}, 'Person'
          from unnest(${made.map(({ chat }) => chat)}::bigint[]) as c (chat_id)`)
      })
    }
  }
})

/** All accounts at once, like their sessions. */
async function rate(ids: readonly string[], work: (account_id: string) => Promise<void>): Promise<number> {
  const startedAt = performance.now()
  await Promise.all(ids.map(work))
  return (ids.length * batches * batchSize) / ((performance.now() - startedAt) / 1000)
}

function messages(batch: number): { chat: number; message: Message }[] {
  return Array.from({ length: batchSize }, (_, at) => {
    const id = batch * batchSize + at + 1
    const chat = (id % chats) + 1
    return {
      chat,
      message: {
        id: String(id),
        text: `Message ${id}: a sentence of ordinary length, as people write them every day.`,
        is_sender: false,
        sender_id: String(chat),
        timestamp: new Date(1_790_000_000_000 + id * 1000).toISOString(),
        edited_at: null,
        attachments: [],
        random_id: null,
      },
    }
  })
}

async function withoutIndexes<T>(app: OpenApp, names: readonly string[], work: () => Promise<T>): Promise<T> {
  const client = await app.db.client()
  try {
    const { rows } = await client.query(
      'select indexname, indexdef from pg_indexes where indexname = any($1)',
      [names],
    )
    for (const { indexname } of rows) await client.query(`drop index ${indexname}`)
    const result = await work()
    for (const { indexdef } of rows) await client.query(indexdef)
    return result
  } finally {
    await client.end()
  }
}
