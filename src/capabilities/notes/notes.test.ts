import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { openService, type Service } from '../../../test/harness/service.ts'
import { openTeam, type Team } from '../../../test/harness/team.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import { textMax } from '../../rules/limits.ts'
import { clearNoteAnswers } from './loops.ts'
import { clearNotes } from './notes.ts'

let service: Service
let team: Team
let other: Team
beforeAll(async () => {
  service = await openService()
  team = await openTeam(service)
  other = await openTeam(service, 'Other')
  for (const { account_id, workspace_id } of [team, other]) await service.chat({ account_id, workspace_id })
})
afterAll(() => service.close())
beforeEach(() => service.app.db.run(sql`delete from notes`))

const write = (text: unknown, more: object = {}, chat = 'platform:chat:42') =>
  team.ask('POST', `/chats/${chat}/notes`, { account_id: team.account_id, text, ...more })

const count = async () =>
  (await service.app.db.one<{ n: number }>(sql`select count(*)::int as n from notes`)).n

describe('POST /chats/{chat_id}/notes', () => {
  test('201 with the note, which the timeline shows to every member', async () => {
    const member = await team.join('member', 'Ben')
    const { status, body } = await member.ask('POST', '/chats/platform:chat:42/notes', {
      account_id: team.account_id,
      text: 'Wants it on Friday.\n\u202etfel ot thgir',
    })
    expect([status, body.note]).toEqual([
      201,
      {
        id: expect.any(String),
        at: expect.any(String),
        text: 'Wants it on Friday.\n\u202etfel ot thgir',
        author: { user_id: member.user_id, name: 'Ben' },
        deletable: true,
      },
    ])
    const path = `/chats/platform:chat:42/timeline?account_id=${team.account_id}`
    const seenBy = async (ask: Team['ask']) => ((await ask('GET', path)).body.items as object[]).at(-1)
    expect(await seenBy(team.ask)).toEqual({ type: 'note', ...(body.note as object) })
    const colleague = await team.join('member')
    expect(await seenBy(colleague.ask)).toMatchObject({ deletable: false })
  })

  test('201 for an account that is not READY: a note reaches no platform', async () => {
    const account_id = await service.account(team.workspace_id, 'DISABLED')
    await service.chat({ account_id, workspace_id: team.workspace_id, id: '7' })
    expect(await write('x', { account_id }, 'platform:chat:7')).toMatchObject({ status: 201 })
  })

  test('200 to a repeat under the same key, without the text: only the note has it, so it goes with the note', async () => {
    const cookie = await signIn(service, team.user_id)
    const asked = {
      cookie,
      body: { account_id: team.account_id, text: 'a canary note' },
      headers: { 'idempotency-key': randomUUID() },
    }
    const path = `/w/${team.workspace_id}/chats/platform:chat:42/notes`
    const first = await askDashboard(service, 'POST', path, asked)
    expect(first).toMatchObject({ status: 201, body: { note: { text: 'a canary note' } } })
    const again = await askDashboard(service, 'POST', path, asked)
    const note = { ...(first.body.note as object), text: '' }
    expect([again.status, again.body]).toEqual([200, { note }])
    expect(await count()).toBe(1)
    expect(await answersWith('canary')).toEqual([])
  })

  test('400 for a text that is blank, too long or malformed, and nothing is written', async () => {
    expect(await write('🙂'.repeat(textMax))).toMatchObject({ status: 201 })
    for (const text of [
      '',
      ' \n',
      'x'.repeat(textMax + 1),
      '🙂'.repeat(textMax + 1),
      'a\0b',
      '\ud800',
      null,
      1,
      ['x'],
    ]) {
      const answer = await write(text)
      expect([answer.status, typeof answer.body.code], JSON.stringify(text)?.slice(0, 20)).toEqual([
        400,
        'string',
      ])
    }
    expect(await write('x', { more: 1 })).toMatchObject({ status: 400 })
    expect(await write('x', {}, 'platform:chat:042')).toMatchObject({ status: 400 })
    expect(await count()).toBe(1)
  })

  test("404 for another workspace's account and for an unknown chat", async () => {
    expect(await write('x', { account_id: other.account_id })).toMatchObject({ status: 404 })
    expect(await write('x', {}, 'platform:chat:43')).toMatchObject({
      status: 404,
      body: { code: 'chat_not_found' },
    })
    expect(await count()).toBe(0)
  })
})

/** The keys of stored answers that have this word. */
const answersWith = async (word: string) =>
  (
    await service.app.db.rows<{ key: string }>(sql`
      select idempotency_key as key from operations where reply_body::text like ${`%${word}%`} order by 1`)
  ).map(({ key }) => key)

describe('DELETE /notes/{note_id}', () => {
  test('200 for its author and for admins, 403 for colleagues, 404 once it is gone', async () => {
    const [author, colleague, admin] = [
      await team.join('member'),
      await team.join('member'),
      await team.join('admin'),
    ]
    const make = async () => {
      const body = { account_id: team.account_id, text: 'x' }
      const made = await author.ask('POST', '/chats/platform:chat:42/notes', body)
      return `/notes/${(made.body.note as { id: string }).id}`
    }
    const [first, second] = [await make(), await make()]
    expect(await colleague.ask('DELETE', first)).toMatchObject({
      status: 403,
      body: { code: 'missing_role' },
    })
    expect(await other.ask('DELETE', first)).toMatchObject({ status: 404 })
    expect(await count()).toBe(2)
    expect(await author.ask('DELETE', first)).toMatchObject({ status: 200, body: { deleted: true } })
    expect(await author.ask('DELETE', first)).toMatchObject({ status: 404, body: { code: 'not_found' } })
    expect(await admin.ask('DELETE', second)).toMatchObject({ status: 200 })
    expect(await count()).toBe(0)
  })
})

describe('clearing notes', () => {
  test('the text goes and the timeline shows none; the row stays, and its author may still delete it', async () => {
    const { body } = await write('a canary note')
    const { id } = body.note as { id: string }
    const rows = () =>
      service.app.db.rows(sql`
        select text, author_id, chat_id::int, cleared_at is not null as cleared from notes where id = ${id}`)
    expect(await service.app.db.transaction((tx) => clearNotes(tx, [id, id]))).toBe(1)
    expect(await rows()).toEqual([{ text: '', author_id: team.user_id, chat_id: 42, cleared: true }])
    const path = `/chats/platform:chat:42/timeline?account_id=${team.account_id}`
    const { items } = (await team.ask('GET', path)).body as { items: { type: string }[] }
    expect(items.filter(({ type }) => type === 'note')).toEqual([])
    expect(await service.app.db.transaction((tx) => clearNotes(tx, [id]))).toBe(0)
    expect(await team.ask('DELETE', `/notes/${id}`)).toMatchObject({ status: 200 })
  })
})

describe('answers that earlier releases stored', () => {
  /** As release 0.3 stored it. */
  const answer = ({ workspace_id }: Team, kind: string, key: string) =>
    service.app.db.run(sql`
      insert into operations (id, workspace_id, kind, effect, idempotency_key, fingerprint, state, reply_status, reply_body,
        finished_at)
      values (${newId()}, ${workspace_id}, ${kind}, 'local', ${key}, ${Buffer.alloc(32)}, 'completed', 201,
        ${JSON.stringify({ note: { id: newId(), text: 'canary', author: { name: 'Ana' } } })}, domain_now())`)
  const again = () =>
    service.app.db.run(sql`update note_answers set after_workspace_id = null, after_key = '', done_at = null`)

  test('lose the texts of notes in all workspaces, batch by batch, and once only', async () => {
    await again()
    for (const key of ['a', 'b', 'c']) await answer(team, 'create_note', key)
    await answer(other, 'create_note', 'd')
    await answer(other, 'toy', 'e')
    while (await clearNoteAnswers(service.app, 1)) {}
    expect(await answersWith('canary')).toEqual(['e'])
    expect(await answersWith('Ana')).toEqual(['a', 'b', 'c', 'd', 'e'])
    await answer(team, 'create_note', 'f')
    expect(await clearNoteAnswers(service.app)).toBe(false)
    expect(await answersWith('canary')).toEqual(['e', 'f'])
  })

  test('stay while a process of release 0.3 runs, which stores more of them', async () => {
    await again()
    await service.app.db.run(sql`update secret_use set addresses_sealed = false`)
    await answer(team, 'create_note', 'g')
    expect(await clearNoteAnswers(service.app)).toBe(false)
    expect(await answersWith('canary')).toContain('g')
    await service.app.db.run(sql`update secret_use set addresses_sealed = true`)
    while (await clearNoteAnswers(service.app)) {}
    expect(await answersWith('canary')).not.toContain('g')
  })
})
