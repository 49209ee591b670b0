import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../../test/harness/service.ts'
import { type Asking, addOperation, openTeam, type Team } from '../../../test/harness/team.ts'
import type { AccountKey } from '../../contract.ts'
import { sql, type Tx } from '../../db/sql.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import type { Message } from '../../platform/port.ts'
import { createColumn } from '../columns/columns.ts'
import { deleteMessages, storeEdits, storeMessages } from '../messages/messages.ts'
import { storeSentMessages } from '../messages/sent-messages.ts'
import {
  type ChatState,
  noteLastMessages,
  refreshLastMessages,
  storeChats,
  storeUnreadCounts,
} from './chats.ts'

let service: Service
let team: Team
let other: Team
beforeAll(async () => {
  service = await openService()
  team = await openTeam(service)
  other = await openTeam(service, 'Other')
})
afterAll(() => service.close())

interface InboxRow {
  readonly account_id: string
  readonly id: string
  readonly last_is_sender: boolean | null
  readonly last_message_text: string | null
  readonly last_attempt: { state: string; text: string; at: string } | null
  readonly suppressed: boolean
  readonly asked_to_stop: boolean
  readonly stage_key: string | null
  readonly columns: readonly { column_id: string; value: string[] }[]
}

async function inbox(query = '', ask: Asking = team.ask) {
  const { status, body } = await ask('GET', `/inbox${query}`)
  expect([status, body.error]).toEqual([200, undefined])
  return body as unknown as { chats: InboxRow[]; next_cursor: string | null }
}

const ids = ({ chats }: { chats: readonly InboxRow[] }) => chats.map(({ id }) => id.split(':')[2])

/** A chat whose messages alternate: with an odd number the last one is theirs. */
const chat = (of: Team, id: `${number}`, messages: number, account_id = of.account_id) =>
  service.chat({
    account_id,
    workspace_id: of.workspace_id,
    id,
    texts: Array.from({ length: messages }, (_, at) => `message ${at}`),
  })

describe('GET /inbox', () => {
  test('200 in each view, newest first, over all accounts of the workspace', async () => {
    const own = await openTeam(service, 'Views')
    const second = await service.account(own.workspace_id)
    await chat(own, '1', 1)
    await chat(own, '2', 2)
    await chat(own, '3', 3, second)
    await chat(own, '4', 4, second)
    await service.app.db.run(sql`update chats set unread_count = 1 where account_id = ${second}`)
    await service.app.db.run(sql`
      update chats set assignee_id = ${own.user_id} where account_id = ${own.account_id} and chat_id = 2`)
    expect(ids(await inbox('', own.ask))).toEqual(['4', '3', '2', '1'])
    expect(ids(await inbox('?view=unread', own.ask))).toEqual(['4', '3'])
    expect(ids(await inbox('?view=unanswered', own.ask))).toEqual(['3', '1'])
    expect(ids(await inbox('?view=mine', own.ask))).toEqual(['2'])
    expect(ids(await inbox(`?account_id=${second}`, own.ask))).toEqual(['4', '3'])
    const { body } = await own.ask('GET', '/inbox/counts')
    expect(body).toEqual({ all: 4, unread: 2, unanswered: 2, mine: 1 })
    const colleague = await own.join('member')
    expect(ids(await inbox('?view=mine', colleague.ask))).toEqual([])
  })

  test('200 page by page: every chat once, in each view', async () => {
    const own = await openTeam(service, 'Pages')
    const second = await service.account(own.workspace_id)
    for (let id = 1; id <= 7; id++) await chat(own, `${id}`, 1, id % 2 ? own.account_id : second)
    const whole = ids(await inbox('?view=unanswered', own.ask))
    const seen: unknown[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Awaited<ReturnType<typeof inbox>> = await inbox(
        `?view=unanswered&limit=2${cursor && `&cursor=${cursor}`}`,
        own.ask,
      )
      seen.push(...ids(page))
      cursor = page.next_cursor
    }
    expect(seen).toEqual(whole)
  })

  test('200 with the chats of accounts in every status, though keys do not see them', async () => {
    const own = await openTeam(service, 'Statuses')
    for (const status of ['NEEDS_LOGIN', 'DISABLED', 'RESTRICTED', 'CONNECTING'] as const) {
      const account_id = await service.account(own.workspace_id, status)
      await chat(own, '7', 1, account_id)
      expect((await inbox(`?account_id=${account_id}`, own.ask)).chats).toHaveLength(1)
      expect((await own.ask('GET', `/chats?account_id=${account_id}`)).body.chats).toHaveLength(1)
      const key = await service.get(`/chats?account_id=${account_id}`, { key: own.key })
      expect(key).toMatchObject({ status: 403, body: { code: 'account_unavailable' } })
    }
    expect((await inbox('', own.ask)).chats).toHaveLength(4)
    // Reads at this door need no account_id, whatever the gate says; keys do.
    expect((await own.ask('GET', '/chats')).body.chats).toHaveLength(4)
    expect(await service.get('/chats', { key: own.key })).toMatchObject({ status: 400 })
  })

  test.each([
    [{ state: 'queued' }, 'sending'],
    [{ state: 'submitting' }, 'sending'],
    [{ state: 'refused' }, 'refused'],
    [{ state: 'ambiguous' }, 'ambiguous'],
    [{ state: 'ambiguous', closed_as: 'sent' }, 'accepted'],
    [{ state: 'ambiguous', closed_as: 'not_sent' }, 'refused'],
    // Nothing was sent, and the caller may repeat it.
    [{ state: 'released' }, null],
    // Older than their message.
    [{ state: 'ambiguous', at: '2026-11-01T07:00:00Z' }, null],
    [{ state: 'refused', kind: 'set_read_state' }, null],
  ])('200 with the state and the text of an operation that has no message: %o is %s', async (row, state) => {
    const own = await openTeam(service, 'States')
    await chat(own, '42', 1)
    await addOperation(service, own, { at: '2026-11-01T09:00:00Z', ...row })
    const { chats } = await inbox('', own.ask)
    // The state never stands without the text that it is about: the message keeps its own.
    const last_attempt = state && { state, text: 'Yes.', at: '2026-11-01T09:00:00.000Z' }
    expect(chats[0]).toMatchObject({ last_is_sender: false, last_message_text: 'message 0', last_attempt })
  })

  test('200 without an attempt once our message is stored, also while the ledger does not know it yet', async () => {
    const own = await openTeam(service, 'Own message')
    await chat(own, '42', 2)
    await service.app.db.run(sql`
      update messages set random_id = 77 where account_id = ${own.account_id} and id = 2`)
    await addOperation(service, own, { state: 'ambiguous', random_id: '77', at: '2026-11-01T09:00:00Z' })
    expect((await inbox('', own.ask)).chats[0]).toMatchObject({
      last_is_sender: true,
      last_attempt: null,
    })
  })

  test('200 with who is on the suppression list, under any of their names; a group never is', async () => {
    const own = await openTeam(service, 'Listed')
    for (const id of ['1', '2', '3', '4'] as const) await chat(own, id, 1)
    await service.app.db.run(
      sql`update chats set kind = 'group' where account_id = ${own.account_id} and chat_id = 4`,
    )
    const listed = async () =>
      ids({ chats: (await inbox('', own.ask)).chats.filter((one) => one.suppressed) })
    expect(await listed()).toEqual([])
    for (const body of [
      { kind: 'platform_id', value: '1' },
      { kind: 'username', value: '@Person_2' },
      { kind: 'platform_id', value: '4' },
    ]) {
      expect((await own.ask('POST', '/suppressions', body)).status).toBe(200)
      await other.ask('POST', '/suppressions', { kind: 'platform_id', value: '3' })
    }
    expect(await listed()).toEqual(['2', '1'])
    const { body } = await own.ask('GET', '/board')
    const cards = (body.stages as { chats: InboxRow[] }[]).flatMap(({ chats }) => chats)
    expect(ids({ chats: cards.filter(({ suppressed }) => suppressed) })).toEqual(['2', '1'])
  })

  test('200 with stages only while the gate pipeline is open', async () => {
    const own = await openTeam(service, 'Gate')
    await chat(own, '42', 1)
    expect((await inbox('?stage_key=new', own.ask)).chats).toMatchObject([{ stage_key: 'new' }])
    await service.shut('pipeline')
    try {
      expect((await inbox('', own.ask)).chats).toMatchObject([{ stage_key: null }])
      expect(await own.ask('GET', '/inbox?stage_key=new')).toMatchObject({
        status: 503,
        body: { code: 'feature_disabled' },
      })
    } finally {
      await service.open('pipeline')
    }
  })

  test('200 with the values of the first columns, cut, only while the gate crm is open', async () => {
    const own = await openTeam(service, 'Columns')
    const { workspace_id, account_id } = own
    await chat(own, '42', 1)
    await chat(own, '43', 1)
    const options = ['a', 'b', 'c', 'd', 'e'].map((value) => ({ value }))
    const values: { column_id: string; value: string[] }[] = []
    for (const [type, value] of [
      ['text', ['x'.repeat(2_000)]],
      ['number', []],
      ['multi_select', ['e', 'd', 'c', 'b', 'a']],
      ['checkbox', ['true']],
      ['text', ['the fourth']],
    ] as const) {
      const column = { workspace_id, name: type, type, options: type === 'multi_select' ? options : [] }
      const { id: column_id } = await createColumn(service.app, 'system', column)
      values.push({ column_id, value: [...value] })
      const body = { account_id, chat_id: 'platform:chat:42', column_id, value }
      expect((await own.ask('POST', '/columns/set', body)).status).toBe(200)
    }
    const [long, , many, check] = values
    const shown = [{ ...long, value: ['x'.repeat(80)] }, { ...many, value: ['e', 'd', 'c', 'b'] }, check]
    const columnsOf = async () => (await inbox('', own.ask)).chats.map(({ id, columns }) => [id, columns])
    expect(await columnsOf()).toEqual([
      ['platform:chat:43', []],
      ['platform:chat:42', shown],
    ])
    await service.shut('crm')
    try {
      expect(await columnsOf()).toEqual([
        ['platform:chat:43', []],
        ['platform:chat:42', []],
      ])
    } finally {
      await service.open('crm')
    }
  })

  test('404 for an account of another workspace, and 400 for hostile input', async () => {
    await chat(team, '42', 1)
    await chat(other, '43', 1)
    expect(ids(await inbox())).toEqual(['42'])
    for (const path of [
      `/inbox?account_id=${other.account_id}`,
      `/inbox/counts?account_id=${other.account_id}`,
    ]) {
      expect(await team.ask('GET', path)).toMatchObject({ status: 404, body: { code: 'not_found' } })
    }
    for (const query of [
      'view=theirs',
      'limit=0',
      'limit=101',
      'limit=1e1',
      'cursor=x',
      'account_id=',
      'stage_key=a%00b',
      'column_id=x',
      'stage_key=nope',
      'view=all&view=mine',
      'nothing=1',
    ]) {
      expect(await team.ask('GET', `/inbox?${query}`), query).toMatchObject({ status: 400 })
    }
    const column = 'column_id=0199a1f0-0000-7000-8000-00000000000a&column_value=x'
    expect(await team.ask('GET', `/inbox?${column}`)).toMatchObject({
      status: 404,
      body: { code: 'column_not_found' },
    })
  })

  test('400 for a cursor of another workspace, user, view or filter', async () => {
    const own = await openTeam(service, 'Cursors')
    const colleague = await own.join('member')
    for (const id of ['1', '2', '3'] as const) await chat(own, id, 1)
    const { next_cursor } = await inbox('?view=unanswered&limit=1', own.ask)
    expect(next_cursor).not.toBeNull()
    for (const [ask, query] of [
      [other.ask, 'view=unanswered'],
      [colleague.ask, 'view=unanswered'],
      [own.ask, 'view=all'],
      [own.ask, `view=unanswered&account_id=${own.account_id}`],
      [own.ask, 'view=unanswered&stage_key=new'],
    ] as const) {
      const answer = await ask('GET', `/inbox?${query}&limit=1&cursor=${next_cursor}`)
      expect(answer, query).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } })
    }
    expect(ids(await inbox(`?view=unanswered&limit=1&cursor=${next_cursor}`, own.ask))).toEqual(['2'])
  })
})

describe('whose the last message is', () => {
  let own: Team
  let account: AccountKey
  beforeAll(async () => {
    own = await openTeam(service, 'Senders')
    account = { account_id: own.account_id, workspace_id: own.workspace_id }
  })
  const commit = (work: (tx: Tx) => Promise<unknown>) => service.app.db.transaction(work)

  const message = (id: number, is_sender: boolean, text = `m${id}`): Message => ({
    id: String(id),
    text,
    is_sender,
    timestamp: new Date(Date.UTC(2026, 10, 1, 8, id)).toISOString(),
    sender_id: null,
    edited_at: null,
    attachments: [],
    random_id: null,
  })
  const state = (id: ChatNumber, last: Message | null): ChatState => ({
    chat: { id, kind: 'private', name: 'Ines', username: null, unread_count: null, participants: null },
    last,
  })
  const seen = (chat_id: ChatNumber, one: Message) => ({ chat_id, message: one, announce: true })
  const last = async (id: string) =>
    (await inbox('', own.ask)).chats.find((one) => one.id === `platform:chat:${id}`)?.last_is_sender

  test('follows new messages, also those that arrive late', async () => {
    await commit(async (tx) => {
      await storeMessages(tx, account, [seen('1', message(5, false))])
      await storeChats(tx, account, [state('1', message(5, false))])
    })
    expect(await last('1')).toBe(false)
    await commit(async (tx) => {
      await storeMessages(tx, account, [seen('1', message(6, true))])
      await storeChats(tx, account, [state('1', message(6, true))])
    })
    expect(await last('1')).toBe(true)
    await commit(async (tx) => {
      await storeMessages(tx, account, [seen('1', message(3, false))])
      await storeChats(tx, account, [state('1', message(3, false))])
    })
    expect(await last('1')).toBe(true)
  })

  test('follows what we send, and the deletion of the last message', async () => {
    const sent = {
      ...account,
      chat_id: '2',
      id: '12',
      text: 'm12',
      attachments: [],
      random_id: '912',
      has_content: true,
    } as const
    const sent_at = message(12, true).timestamp
    await commit(async (tx) => {
      await storeMessages(tx, account, [seen('2', message(11, false))])
      await storeChats(tx, account, [state('2', message(11, false))])
      await storeSentMessages(tx, [{ ...sent, sent_at }])
      await noteLastMessages(tx, [{ ...sent, sent_at }])
    })
    expect(await last('2')).toBe(true)
    const remove = (id: string) =>
      commit(async (tx) => {
        await deleteMessages(tx, account, [{ chat_id: '2', message_ids: [id] }])
        await refreshLastMessages(tx, account, ['2'])
      })
    await remove('12')
    expect(await last('2')).toBe(false)
    await remove('11')
    expect(await last('2')).toBeNull()
  })

  test('is known of the chat list, of history, and of a chat without messages', async () => {
    await commit(async (tx) => {
      await storeChats(tx, account, [state('3', null), state('4', null)])
      await storeMessages(tx, account, [seen('3', message(21, true))])
      await refreshLastMessages(tx, account, ['3'])
    })
    expect([await last('3'), await last('4')]).toEqual([true, null])
    // An edit of a message that was never stored may be the first update about its chat.
    const edited = { ...message(31, false), edited_at: message(32, false).timestamp }
    await commit(async (tx) => {
      await storeEdits(tx, account, [seen('5', edited)])
      await refreshLastMessages(tx, account, ['5'])
    })
    expect(await last('5')).toBe(false)
  })

  test('is found by the database when a worker from before the column writes', async () => {
    const write = (id: number) => sql`
      insert into chats (account_id, chat_id, workspace_id, kind, last_message_id, last_message_text, last_message_at)
      select account_id, chat_id, workspace_id, 'private', id, text, sent_at from messages
      where account_id = ${own.account_id} and id = ${id}
      on conflict (account_id, chat_id) do update set last_message_id = excluded.last_message_id,
        last_message_text = excluded.last_message_text, last_message_at = excluded.last_message_at`
    await commit((tx) =>
      storeMessages(tx, account, [
        seen('6', message(41, false)),
        seen('6', message(42, true)),
        seen('6', message(43, true)),
      ]),
    )
    for (const [id, sender] of [
      [41, false],
      [42, true],
      [43, true],
      [41, false],
    ] as const) {
      await commit((tx) => tx.run(write(id)))
      expect(await last('6')).toBe(sender)
    }
    // And a worker of today after it.
    await commit((tx) => storeChats(tx, account, [state('6', message(43, true))]))
    expect(await last('6')).toBe(true)
    await service.app.db.run(sql`
      update chats set last_message_id = null, last_message_text = null, last_message_at = '-infinity'
      where account_id = ${own.account_id} and chat_id = 6`)
    expect(await last('6')).toBeNull()
  })

  test('stays when something else about the chat changes', async () => {
    await commit((tx) => storeUnreadCounts(tx, account, new Map([['1', 2]])))
    expect(await last('1')).toBe(true)
  })
})
