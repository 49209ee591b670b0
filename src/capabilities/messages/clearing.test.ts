/** Clearing messages: their content goes from every table, and nothing that the platform shows brings it back. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../../../test/harness/process.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import type { Message } from '../../platform/port.ts'
import { storeChats } from '../chats/chats.ts'
import { indexPending, settleForgetting } from '../search/index/search-index.ts'
import { makeLoops } from '../search/loops.ts'
import { clearMessages, storeEdits, storeMessages } from './messages.ts'

let service: Service
let own: Tenant
beforeAll(async () => {
  service = await openService()
  own = await service.tenant()
})
afterAll(() => service.close())

const db = () => service.app.db

function messageOf(id: number, text: string): Message {
  return {
    ...{ id: String(id), text, is_sender: false, sender_id: '42' },
    timestamp: new Date(Date.UTC(2026, 5, 1, 0, id)).toISOString(),
    ...{ edited_at: null, random_id: null },
    attachments: [{ index: 0, kind: 'file', file_name: `${text}.pdf`, media_type: 'text/plain', size: 3 }],
  } as Message
}

const seen = (messages: readonly Message[]) =>
  messages.map((message) => ({ chat_id: '42' as const, message, announce: false }))

async function newAccount() {
  return { account_id: await service.account(own.workspace_id), workspace_id: own.workspace_id }
}

const clear = (account_id: string, ids: readonly string[], words_within_seconds = 0) =>
  db().transaction((tx) =>
    clearMessages(
      tx,
      ids.map((id) => ({ account_id, chat_id: '42', id })),
      { words_within_seconds },
    ),
  )

/** Runs the search loops until they find nothing. */
async function settleSearch(): Promise<void> {
  const signal = new AbortController().signal
  for (const loop of makeLoops()) while (await loop.step(service.app, signal));
}

/** In which of these tables a row has the word. */
async function tablesWith(word: string): Promise<string[]> {
  const rows = await db().rows<{ name: string }>(sql`
    select 'messages' as name from messages m where m::text ilike '%' || ${word} || '%'
    union select 'chats' from chats c where c::text ilike '%' || ${word} || '%'
    union select 'search_lists' from search_lists l where l.word ilike '%' || ${word} || '%'
    union select 'media_files' from media_files where message_id = 1
    union select 'search_pending' from search_pending where id = 1
    union select 'search_forgetting' from search_forgetting`)
  return rows.map(({ name }) => name).toSorted()
}

describe('clearing messages', () => {
  test('texts, files and words go; the row, its counts and the place of its chat stay', async () => {
    const account = await newAccount()
    const { account_id, workspace_id } = account
    const both = [messageOf(1, 'a canary sings'), messageOf(2, 'another one')]
    await db().transaction((tx) => storeMessages(tx, account, seen(both)))
    await indexPending(db(), account)
    const chat = {
      ...{ id: '42' as const, kind: 'private' as const, name: 'Ines', username: null },
      ...{ unread_count: 0, participants: null },
    }
    const last = { ...messageOf(1, 'a canary sings'), timestamp: messageOf(3, '').timestamp }
    await db().transaction((tx) => storeChats(tx, account, [{ chat, last }]))
    await db().run(sql`
      insert into media_files (id, account_id, chat_id, message_id, index, workspace_id)
      values (gen_random_uuid(), ${account_id}, 42, 1, 0, ${workspace_id})`)
    const stays = () =>
      db().one(sql`
        select (select jsonb_agg(to_jsonb(c)) from message_counts c where account_id = ${account_id}) as counts,
          (select to_jsonb(m) - '{text, attachments, deleted_at, listing}'::text[] from messages m
            where account_id = ${account_id} and id = 1) as message,
          (select to_jsonb(c) - 'last_message_text' from chats c where account_id = ${account_id}) as chat`)
    const before = await stays()
    expect(await tablesWith('canary')).toEqual(['chats', 'media_files', 'messages', 'search_lists'])

    expect(await clear(account_id, ['1'])).toBe(1)
    expect(await tablesWith('canary')).toEqual(['search_forgetting', 'search_lists'])
    const found = await service.post('/search', { key: own.key, body: { query: 'canary', account_id } })
    expect(found.body.match_count).toBe(0)
    await settleSearch()
    expect(await tablesWith('canary')).toEqual([])
    expect(await stays()).toEqual(before)
    const other = await service.post('/search', { key: own.key, body: { query: 'another', account_id } })
    expect(other.body.match_count).toBe(1)
    expect(await clear(account_id, ['1'])).toBe(0)
  })

  test('what the platform shows of them later is not stored', async () => {
    const account = await newAccount()
    const message = messageOf(1, 'a heron waits')
    await db().transaction((tx) => storeMessages(tx, account, seen([message])))
    await clear(account.account_id, ['1'])
    const edited = { ...message, text: 'a heron flies', edited_at: '2026-07-01T00:00:00.000Z' }
    await db().transaction(async (tx) => {
      expect(await storeMessages(tx, account, seen([message]))).toEqual([])
      expect(await storeEdits(tx, account, seen([edited]))).toEqual([])
    })
    await settleSearch()
    expect(await tablesWith('heron')).toEqual([])
  })

  test('a merge that is not due leaves the lists alone; a later clearing that is due hastens it', async () => {
    const account = await newAccount()
    await db().transaction((tx) =>
      storeMessages(tx, account, seen([messageOf(1, 'a plover'), messageOf(2, 'an ibis')])),
    )
    await indexPending(db(), account)
    await clear(account.account_id, ['1'], 86_400)
    await settleSearch()
    expect(await tablesWith('plover')).toEqual(['search_forgetting', 'search_lists'])
    await clear(account.account_id, ['2'], 0)
    await settleSearch()
    expect([await tablesWith('plover'), await tablesWith('ibis')]).toEqual([[], []])
  })

  test('what is cleared while an account is settled is forgotten too', async () => {
    const account = await newAccount()
    await db().transaction((tx) => storeMessages(tx, account, seen([messageOf(1, 'a stork')])))
    await indexPending(db(), account)
    await db().run(sql`
      insert into search_forgetting (account_id, workspace_id, due_at)
      values (${account.account_id}, ${account.workspace_id}, now())`)
    // Settling has read the row of before when this commits.
    let settling: Promise<void> | undefined
    await db().transaction(async (tx) => {
      await clearMessages(tx, [{ account_id: account.account_id, chat_id: '42', id: '1' }], {
        words_within_seconds: 0,
      })
      settling = settleForgetting(db())
      await waitsForLock()
    })
    await settling
    await settleSearch()
    expect(await tablesWith('stork')).toEqual([])
  })
})

async function waitsForLock(): Promise<void> {
  await until('settling waits for the row', 30_000, async () => {
    const { waits } = await db().one<{ waits: boolean }>(sql`
      select exists (select from pg_stat_activity where wait_event_type = 'Lock'
        and query like '%delete from search_forgetting%' and datname = current_database()) as waits`)
    return waits || undefined
  })
}
