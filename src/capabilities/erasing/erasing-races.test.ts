/** An erasure beside what goes on meanwhile: what arrives, what is created, what they write again, and other erasures. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { insertCampaign } from '../../../test/harness/campaigns.ts'
import { LedgerRows } from '../../../test/harness/ledger-rows.ts'
import { until } from '../../../test/harness/process.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { sequence } from '../../events/sequencer.ts'
import { claimAccounts, type HeldLease } from '../../ledger/leases.ts'
import { newId } from '../../lib/ids.ts'
import type { Chat, Message, Person, Update } from '../../platform/port.ts'
import { ingest } from '../../worker/ingest.ts'
import { createAccount } from '../accounts/accounts.ts'
import { settleForgetting } from '../search/index/search-index.ts'
import { eraseNext, previewErasure, requestErasure } from './erasing.ts'

let service: Service
let tenant: Tenant
let held: HeldLease
const db = () => service.app.db
beforeAll(async () => {
  service = await openService()
})
afterAll(() => service.close())
beforeEach(async () => {
  tenant = await service.tenant()
  held = await account(tenant)
})

/** A new account that is driven here. */
async function account({ workspace_id }: Tenant): Promise<HeldLease> {
  await createAccount(service.app, 'system', { workspace_id, platform: 'sandbox', name: 'Sales' })
  const worker_id = newId()
  const claim = { worker_id, platform: 'sandbox', limit: 1, takeover_seconds: 0, neighbours: [] }
  const [lease] = await claimAccounts(db(), claim)
  if (!lease) throw new Error('There was no account to claim.')
  return { worker_id, ...lease, writes: { seen: lease.writes } }
}

const mara: Person = { id: '901', name: 'Canary', username: 'canary', phone: null, kind: 'person' }
const other: Person = { id: '902', name: 'Other', username: 'other', phone: null, kind: 'person' }
const chatWith = (one: Person): Chat => ({
  ...{
    id: one.id as Chat['id'],
    kind: 'private',
    name: one.name,
    username: one.username,
    unread_count: null,
  },
  participants: [one],
})
const before = '2020-01-01T00:00:00.000Z'
const later = '2100-01-01T00:00:00.000Z'

function message(id: string, more: Partial<Message> = {}): Message {
  const own = { is_sender: false, sender_id: mara.id, random_id: null, edited_at: null, attachments: [] }
  return { id, text: `canary ${id}`, timestamp: before, ...own, ...more }
}

const said = (one: Message, chat = chatWith(mara)): Update => ({
  ...{ kind: 'message', chat, message: one, live: true },
})
const arrives = (to: HeldLease, ...updates: readonly Update[]) =>
  ingest(service.app, to, { updates, position: newId(), caught_up: true })

async function request({
  of = tenant,
  who = mara,
  contact_allowed = false,
}: {
  of?: Tenant
  who?: Person
  contact_allowed?: boolean
} = {}): Promise<string> {
  const { app } = service
  const { workspace_id } = of
  const { id: person_id } = await db().one<{ id: string }>(sql`
    select id from people where workspace_id = ${workspace_id} and number = ${who.id}`)
  const { preview } = await previewErasure(app.db, workspace_id, person_id)
  const wanted = { workspace_id, person_id, preview, contact_allowed }
  return (await app.db.transaction((tx) => requestErasure(app, tx, 'cli:ana', wanted))).id
}

/** One batch, as a worker does it. */
const step = (...ids: readonly string[]) => eraseNext(service.app, new Set(ids))

/** As a worker and the search do it, until the job is done or has to wait. Returns what it is doing then. */
async function run(id: string): Promise<string> {
  for (;;) {
    while (await step(id)) {}
    const { step: at } = await db().one<{ step: string }>(sql`select step from erasures where id = ${id}`)
    if (at !== 'words') return at
    await db().run(
      sql`delete from search_stale where account_id in (select account_id from search_forgetting)`,
    )
    await settleForgetting(db())
  }
}

const texts = async ({ account_id }: HeldLease, chat_id = mara.id) =>
  (
    await db().rows<{ text: string }>(sql`
      select text from messages where account_id = ${account_id} and chat_id = ${chat_id} order by id`)
  ).map(({ text }) => text)

/** Whether a statement waits for the lock of another transaction. */
const somebodyWaits = async () =>
  (await db().maybe(sql`
    select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)) !==
  undefined

/** Holds what this statement locks while `work` runs. */
async function holding(locks: Sql, work: () => Promise<unknown>): Promise<void> {
  await db().transaction(async (tx) => {
    await tx.run(locks)
    await work()
  })
}

describe('what is being stored while the request commits', () => {
  test('is waited for: the erasure begins once it is stored, and clears it', async () => {
    // Of a chat that has no row yet, so that nothing else makes the job wait.
    await arrives(held, said(message('10'), chatWith(other)))
    await db().run(sql`
      insert into people (id, workspace_id, platform, number)
      values (gen_random_uuid(), ${tenant.workspace_id}, 'sandbox', ${mara.id})`)
    let storing: Promise<boolean> | undefined
    let ended: Promise<string> | undefined
    await holding(
      sql`select 1 from message_counts where account_id = ${held.account_id} for update`,
      async () => {
        storing = arrives(held, said(message('12')))
        await until('it has read who was erased', 30_000, somebodyWaits)
        const id = await request()
        let done = false
        ended = run(id).finally(() => {
          done = true
        })
        await until('the job waits', 30_000, async () => {
          const waiting = await db().rows(sql`
            select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
          return done || waiting.length > 1
        })
      },
    )
    expect(await storing).toBe(true)
    expect(await ended).toBe('done')
    expect(await texts(held)).toEqual([''])
  })

  test('is cleared also where they have written again since; that stays', async () => {
    await arrives(held, said(message('10')))
    const id = await request()
    // As a transaction that had asked before the request committed.
    await db().run(sql`
      insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
      values (${held.account_id}, ${mara.id}, 12, ${tenant.workspace_id}, 'canary 12', false, ${before})`)
    await arrives(held, said(message('13', { timestamp: later })))
    expect(await run(id)).toBe('done')
    expect(await texts(held)).toEqual(['', '', 'canary 13'])
  })
})

test('a campaign that was being created while the request committed keeps no name of theirs', async () => {
  await arrives(held, said(message('10')))
  const id = await request()
  const at = () => db().one<{ step: string }>(sql`select step from erasures where id = ${id}`)
  while ((await at()).step !== 'words') expect(await step(id)).toBe(true)
  const campaign_id = await insertCampaign(db(), tenant, {
    kind: 'contacts',
    pool: [held.account_id],
    contacts: [
      { contact: 'username:canary', name: 'Canary' },
      { contact: 'username:somebody', name: 'Somebody' },
    ],
  })
  expect(await run(id)).toBe('done')
  const recipients = await db().rows<{ contact: string; name: string | null; status: string }>(sql`
    select contact, name, status from campaign_recipients where campaign_id = ${campaign_id} order by position`)
  expect(recipients).toEqual([
    { contact: expect.stringMatching(/^cleared:/), name: null, status: 'suppressed' },
    { contact: 'username:somebody', name: 'Somebody', status: 'queued' },
  ])
})

describe('what they write again before the job begins', () => {
  const events = async () => {
    while ((await sequence(db())) > 0) {}
    const rows = await db().rows<{ data: { erased?: true; message?: Message } }>(sql`
      select data from events where workspace_id = ${tenant.workspace_id} order by sequence`)
    return rows.map(({ data }) => data.erased ?? data.message?.text)
  }

  const note = (text: string) =>
    db().run(sql`
      insert into notes (id, workspace_id, account_id, chat_id, author_id, text)
      values (gen_random_uuid(), ${tenant.workspace_id}, ${held.account_id}, ${mara.id}, ${tenant.user_id}, ${text})`)

  async function approval(): Promise<string> {
    const id = newId()
    await db().run(sql`
      insert into approvals (id, workspace_id, user_id, key_id, client_name, operation, account_id, chat_id, payload, fingerprint,
        expires_at)
      select ${id}, workspace_id, user_id, id, 'an agent', 'send_message', ${held.account_id}, ${mara.id},
        '{"text": "canary"}', sha256('payload'), now() + interval '1 day'
      from keys where workspace_id = ${tenant.workspace_id}`)
    return id
  }

  test('stays, with its chat, its events and what is sent to them since; what was before goes', async () => {
    const rows = new LedgerRows(service, tenant)
    const payload = { text: 'canary', file: null }
    await arrives(held, said(message('10')))
    await arrives(held, said(message('11'), { ...chatWith(mara), name: 'Canary of before' }))
    await note('before')
    const asked = [await approval()]
    const sends = [await rows.operation(held, { chat_id: mara.id, payload })]
    expect(await events()).toEqual(['canary 10', 'canary 11'])
    const id = await request()
    await arrives(held, said(message('13', { timestamp: later })))
    asked.push(await approval())
    await note('since')
    sends.push(await rows.operation(held, { chat_id: mara.id, payload }))
    expect(await step(id)).toBe(true)
    const shown = () =>
      db().rows(sql`
        select c.name, c.last_message_text, (select k.name from contacts k where k.account_id = c.account_id) as contact,
          array(select n.text from notes n where n.account_id = c.account_id) as notes
        from chats c where account_id = ${held.account_id}`)
    const now = [{ name: 'Canary', last_message_text: 'canary 13', contact: 'Canary', notes: ['since'] }]
    expect(await shown()).toEqual(now)
    await db().run(
      sql`update operations set state = 'released', reason = 'x', finished_at = domain_now() where id = ${sends[1]}`,
    )
    expect(await run(id)).toBe('done')
    expect(await shown()).toEqual(now)
    expect(await texts(held)).toEqual(['', '', 'canary 13'])
    expect(await events()).toEqual([true, true, 'canary 13'])
    const kept = await db().rows<{ id: string }>(sql`
      select id from approvals where payload ->> 'text' = 'canary' union all
      select id from operations where payload ->> 'text' = 'canary'`)
    expect(kept.map((one) => one.id)).toEqual([asked[1], sends[1]])
    expect(await rows.row(sends[0] ?? '')).toMatchObject({ state: 'released', reason: 'erased' })
  })
})

describe('several erasures', () => {
  const stepsOf = async (ids: readonly string[]) => {
    const rows = await db().rows<{ id: string; at: string }>(sql`
      select id, step || coalesce(after, '') as at from erasures where id = any(${ids}::uuid[])`)
    return ids.map((id) => rows.find((row) => row.id === id)?.at ?? '')
  }

  test('each begin before any goes on, and then the workspaces take turns', async () => {
    const second = await service.tenant()
    const [one, two] = [tenant, second]
    await arrives(held, said(message('10')), said(message('11', { sender_id: other.id }), chatWith(other)))
    await arrives(await account(two), said(message('10')))
    const ids = [
      await request({ of: one }),
      await request({ of: one, who: other }),
      await request({ of: two }),
    ]
    const turn = { workspace_id: null }
    const next = () => eraseNext(service.app, new Set(ids), turn)
    for (const _ of ids) expect(await next()).toBe(true)
    const begun = await stepsOf(ids)
    expect(begun).toEqual(ids.map(() => 'messages'))
    for (const _ of [1, 2]) expect(await next()).toBe(true)
    const moved = (await stepsOf(ids)).map((at, n) => at !== begun[n])
    expect(moved).toEqual([true, false, true])
  })
})
