/** What arrives of people who were erased: row by row, as updates, as history, as dialogs and as peers. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../test/harness/service.ts'
import { createAccount, openAccountStore } from '../capabilities/accounts/accounts.ts'
import { storeSent } from '../capabilities/messages/send.ts'
import { findErasedChats, learnPeople, markErased, tombstoneOf } from '../capabilities/people/people.ts'
import { sql } from '../db/sql.ts'
import { claimAccounts, type HeldLease } from '../ledger/leases.ts'
import { newId } from '../lib/ids.ts'
import type { Chat, Message, Person, Update } from '../platform/port.ts'
import { chatsWithoutErased, pastWithoutErased, peopleWithoutErased } from './erased.ts'
import { ingest } from './ingest.ts'

let service: Service
let tenant: Tenant
let held: HeldLease
beforeAll(async () => {
  service = await openService()
})
afterAll(() => service.close())

const erased: Person = { id: '901', name: 'Canary', username: 'canary', phone: null, kind: 'person' }
const other: Person = { id: '902', name: 'Other', username: 'other', phone: null, kind: 'person' }
const chat: Chat = {
  ...{ id: '901', kind: 'private', name: 'Canary', username: 'canary', unread_count: null },
  participants: [erased],
}
const group: Chat = {
  ...{ id: '-77', kind: 'group', name: 'Team', username: null, unread_count: null },
  participants: [erased, other],
}
const before = '2020-01-01T00:00:00.000Z'
const after = '2100-01-01T00:00:00.000Z'

function message(id: string, more: Partial<Message> = {}): Message {
  const own = { is_sender: false, sender_id: '901', random_id: null, edited_at: null, attachments: [] }
  return { id, text: 'canary text', timestamp: before, ...own, ...more }
}

const ours = (id: string) => message(id, { is_sender: true, sender_id: null, random_id: `55${id}` })
const arrives = (...updates: readonly Update[]) =>
  ingest(service.app, held, { updates, position: newId(), caught_up: true })
const said = (one: Message, of = chat): Update => ({ kind: 'message', chat: of, message: one, live: true })

beforeEach(async () => {
  tenant = await service.tenant()
  const { workspace_id } = tenant
  await createAccount(service.app, 'system', { workspace_id, platform: 'sandbox', name: 'Sales' })
  const worker_id = newId()
  const claim = { worker_id, platform: 'sandbox', limit: 1, takeover_seconds: 0, neighbours: [] }
  const [lease] = await claimAccounts(service.app.db, claim)
  if (!lease) throw new Error('There was no account to claim.')
  held = { worker_id, ...lease, writes: { seen: lease.writes } }
  await arrives(said(message('10')), said(message('11', { sender_id: '901' }), group))
  await service.app.db.transaction(async (tx) => {
    await markErased(tx, {
      ...{ id: newId(), workspace_id, platform: 'sandbox', number: '901', erased_at: null },
      tombstones: [tombstoneOf(service.app, workspace_id, 'username:canary')],
    })
    await tx.run(sql`delete from chats where account_id = ${held.account_id}`)
    await tx.run(sql`delete from contacts where account_id = ${held.account_id}`)
    await tx.run(sql`delete from messages where account_id = ${held.account_id}`)
    await tx.run(sql`delete from person_names where workspace_id = ${workspace_id}`)
  })
})

const stored = () =>
  service.app.db.rows<{ chat_id: string; id: string; text: string; random_id: string | null }>(sql`
    select chat_id::text, id::text, text, random_id::text from messages where account_id = ${held.account_id} order by id`)
const names = async () =>
  (
    await service.app.db.rows<{ name: string }>(sql`
      select name from chats where account_id = ${held.account_id}
      union all select name from contacts where account_id = ${held.account_id} order by 1`)
  ).map(({ name }) => name)

describe('an update', () => {
  test('of what came before they wrote again stores nothing: messages, edits, reads, counts, names', async () => {
    await arrives(
      said(message('10')),
      said(message('9', { timestamp: after })),
      { kind: 'edited', chat_id: '901', message: message('10', { edited_at: after }) },
      { kind: 'read_by_them', chat_id: '901', up_to_message_id: '10', at: after },
      { kind: 'unread', chat_id: '901', unread_count: 3 },
      { kind: 'person', person: erased },
    )
    expect(await stored()).toEqual([])
    expect(await names()).toEqual([])
  })

  test('with which they write again is stored, and nothing before it', async () => {
    await arrives(
      said(message('10')),
      said(message('12', { timestamp: after })),
      said(message('13', { timestamp: after })),
    )
    expect((await stored()).map(({ id }) => id)).toEqual(['12', '13'])
    expect(await names()).toEqual(['Canary', 'Canary'])
    await arrives({ kind: 'edited', chat_id: '901', message: message('10', { edited_at: after }) })
    expect((await stored()).map(({ id }) => id)).toEqual(['12', '13'])
  })

  test('of history is not written again, however late it arrives', async () => {
    await arrives(said(message('14')))
    expect(await stored()).toEqual([])
  })

  test('of a message of ours leaves its id and its random id, without text', async () => {
    await arrives(said(ours('15')))
    expect(await stored()).toEqual([{ chat_id: '901', id: '15', text: '', random_id: '5515' }])
    expect(await names()).toEqual([])
  })

  test('of a group leaves out what they wrote there and what they are called; the others stay', async () => {
    await arrives(said(message('20'), group), said(message('21', { sender_id: '902', text: 'stays' }), group))
    expect((await stored()).map(({ text }) => text)).toEqual(['stays'])
    expect(await names()).toEqual(['Other', 'Team'])
    const { participants } = await service.app.db.one<{ participants: Person[] }>(sql`
      select participants from chats where account_id = ${held.account_id} and chat_id = -77`)
    expect(participants.map(({ name, kind }) => [name, kind])).toEqual([
      ['', 'deleted'],
      ['Other', 'person'],
    ])
  })
})

const inTx = <T>(work: Parameters<typeof service.app.db.transaction<T>>[0]) =>
  service.app.db.transaction(work)

test('history, dialogs and the address book leave them out', async () => {
  const past = [{ chat_id: '901' as const, message: message('10') }]
  expect(await inTx((tx) => pastWithoutErased(tx, held, past))).toEqual([])
  expect(await inTx((tx) => chatsWithoutErased(tx, held, [chat]))).toEqual([])
  expect(await inTx((tx) => peopleWithoutErased(tx, held, [erased, other]))).toEqual([other])
})

test('what settles after the erasure is stored without its text', async () => {
  const at = new Date().toISOString()
  const operation = {
    ...{
      id: newId(),
      account_id: held.account_id,
      workspace_id: tenant.workspace_id,
      chat_id: '901' as const,
    },
    ...{ random_id: '77', payload: { text: 'canary text', file: null } },
  }
  await inTx((tx) => storeSent(tx, [{ operation, value: { message_id: '30', at } }] as never))
  expect(await stored()).toEqual([{ chat_id: '901', id: '30', text: '', random_id: '77' }])
  expect(await names()).toEqual([])
})

test('what a journal restores after the erasure leaves its message, also if the platform shows it without its random id', async () => {
  const at = new Date().toISOString()
  const own = { id: newId(), account_id: held.account_id, workspace_id: tenant.workspace_id }
  const operation = { ...own, chat_id: '901' as const, random_id: '77', payload: null }
  await arrives(said(message('30', { is_sender: true, sender_id: null })))
  expect(await stored()).toEqual([])
  await inTx((tx) => storeSent(tx, [{ operation, value: { message_id: '30', at } }] as never))
  expect(await stored()).toEqual([{ chat_id: '901', id: '30', text: '', random_id: '77' }])
  const others = { ...operation, chat_id: '902' as const, random_id: '78' }
  await inTx((tx) => storeSent(tx, [{ operation: others, value: { message_id: '31', at } }] as never))
  // The update about it brings its text.
  expect((await stored()).map(({ id }) => id)).toEqual(['30'])
})

test('names are not learned, and what an adapter keeps of them has none', async () => {
  await learnPeople(service.app.db, held, [erased, other])
  const known = await service.app.db.rows<{ value: string }>(sql`
    select value from person_names where workspace_id = ${tenant.workspace_id}`)
  expect(known).toEqual([{ value: 'other' }])
  const text = JSON.stringify({ name: 'Canary', hash: '1', username: 'canary' })
  await openAccountStore(service.app, held).writePeers([
    { number: '901', text },
    { number: '902', text },
  ])
  const peers = await service.app.db.rows<{ text: string }>(sql`
    select text from platform_peers where account_id = ${held.account_id} order by number`)
  expect(peers.map((peer) => JSON.parse(peer.text))).toEqual([{ name: '', hash: '1' }, JSON.parse(text)])
})

test('an account that is added later does not bring them back', async () => {
  const { workspace_id } = tenant
  await service.app.db.run(sql`
    insert into erasures (id, workspace_id, person_id, platform, number, actor, contact_allowed, tombstones)
    select gen_random_uuid(), workspace_id, id, platform, number, 'cli:ana', false, '{}' from people
    where workspace_id = ${workspace_id} and number = 901`)
  const { id } = await createAccount(service.app, 'system', {
    workspace_id,
    platform: 'sandbox',
    name: 'Later',
  })
  expect((await findErasedChats(service.app.db, { account_id: id }, ['901'])).size).toBe(1)
})
