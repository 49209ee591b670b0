import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../../test/harness/service.ts'
import { type Asking, addOperation, openTeam, type Team } from '../../../test/harness/team.ts'
import { sql } from '../../db/sql.ts'

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
  readonly last_state: string | null
  readonly stage_key: string | null
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
  ])('200 with the state of an operation that has no message: %o is %s', async (row, state) => {
    const own = await openTeam(service, 'States')
    await chat(own, '42', 1)
    await addOperation(service, own, { at: '2026-11-01T09:00:00Z', ...row })
    const { chats } = await inbox('', own.ask)
    expect(chats[0]).toMatchObject({ last_is_sender: false, last_state: state })
  })

  test('200 with accepted for our own last message, also while the ledger does not know it yet', async () => {
    const own = await openTeam(service, 'Own message')
    await chat(own, '42', 2)
    await service.app.db.run(sql`
      update messages set random_id = 77 where account_id = ${own.account_id} and id = 2`)
    await addOperation(service, own, { state: 'ambiguous', random_id: '77', at: '2026-11-01T09:00:00Z' })
    expect((await inbox('', own.ask)).chats[0]).toMatchObject({
      last_is_sender: true,
      last_state: 'accepted',
    })
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
