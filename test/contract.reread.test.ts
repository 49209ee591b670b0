/** The contract, read again: each finding of the second reading, by its number. */
import { connect } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createStage, updateStage } from '../src/capabilities/pipeline/pipeline.ts'
import { rethrow } from '../src/db/errors.ts'
import { sql } from '../src/db/sql.ts'
import { emit } from '../src/events/emit.ts'
import { sequence } from '../src/events/sequencer.ts'
import { newId } from '../src/lib/ids.ts'
import { routes } from '../src/lists/routes.ts'
import { probes } from './harness/probes.ts'
import type { Answer, Service, Tenant } from './harness/service.ts'
import { openWorkplace, type Workplace } from './harness/worker.ts'

let workplace: Workplace
let service: Service
let own: Tenant
let account_id: string
let chat_id: string
beforeAll(async () => {
  workplace = await openWorkplace({ routes: probes })
  service = workplace.service
  own = await service.tenant()
  await service.allow(own)
  await workplace.work()
  account_id = await workplace.connected(own)
  chat_id = await service.chat({ account_id, workspace_id: own.workspace_id })
})
afterAll(() => workplace.close())

function get(path: string): Promise<Answer> {
  return service.get(path, { key: own.key })
}

let serial = 0
function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  return service.post(path, {
    key: own.key,
    body,
    headers: { 'idempotency-key': `reread-${serial++}`, ...headers },
  })
}

function refused({ status, body }: Answer, wanted: number, code: string): void {
  expect({ status, code: body.code }, JSON.stringify(body)).toEqual({ status: wanted, code })
}

describe('V1: several statements of one transaction', () => {
  test('503 for the first that failed, not 500 for those after it', async () => {
    const { db } = service.app
    const late = (work: Promise<unknown>) => work.then((value) => value)
    const asked = db.snapshot((tx) =>
      Promise.all([
        // The one that fails first is reported last: its caller does more with the answer.
        late(late(late(tx.rows(sql`select pg_cancel_backend(pg_backend_pid()), pg_sleep(5)`)))),
        tx.rows(sql`select 1 as behind`),
      ]),
    )
    await expect(asked).rejects.toMatchObject({ code: 'store_unavailable', cause: { code: '57014' } })
    const missing = db.transaction((tx) =>
      Promise.all([late(late(tx.rows(sql`select from not_there`))), tx.rows(sql`select 1 as behind`)]),
    )
    await expect(missing).rejects.toMatchObject({ code: 'schema_unavailable' })
  })

  test('503 on /search while a table that it reads is locked, and while its query is cancelled', async () => {
    const search = () => post('/search', { query: 'hello', people: ['Ines'] })
    const { pool } = service.app.db
    for (const table of ['messages', 'chat_sync', 'chats']) {
      const locker = await pool.connect()
      try {
        await locker.query('begin')
        await locker.query(`lock table ${table} in access exclusive mode`)
        refused(await search(), 503, 'store_unavailable')
      } finally {
        await locker.query('rollback')
        locker.release()
      }
    }
    expect((await search()).status).toBe(200)
  })

  test('503 for a statement after a failure, also if the failure was not recorded', () => {
    const behind = Object.assign(new pg.DatabaseError('in a failed transaction', 0, 'error'), {
      code: '25P02',
    })
    expect(() => rethrow(behind)).toThrow(
      expect.objectContaining({ code: 'store_unavailable', cause: behind }),
    )
  })

  test('503 when the failure before it was ignored', async () => {
    const asked = service.app.db.transaction(async (tx) => {
      await tx.rows(sql`select pg_cancel_backend(pg_backend_pid()), pg_sleep(5)`).catch(() => {})
      await tx.rows(sql`select 1 as behind`)
    })
    await expect(asked).rejects.toMatchObject({ code: 'store_unavailable' })
  })
})

/** The table is missing while `work` runs. */
async function without(table: 'allowlists' | 'columns' | 'contacts', work: () => Promise<void>) {
  const names = {
    allowlists: [sql`alter table allowlists rename to away`, sql`alter table away rename to allowlists`],
    columns: [sql`alter table columns rename to away`, sql`alter table away rename to columns`],
    contacts: [sql`alter table contacts rename to away`, sql`alter table away rename to contacts`],
  } as const
  const [away, back] = names[table]
  await service.app.db.run(away)
  try {
    await service.settle()
    await work()
  } finally {
    await service.app.db.run(back)
    await service.settle()
  }
}

describe('V2: a missing table switches off its feature only', () => {
  const note = () => post(`/probe/${chat_id}/notes`, { account_id, text: 'hi' })

  test('503 without allowlists for operations that need them, 200 for everything else', async () => {
    expect((await note()).status).toBe(201)
    await without('allowlists', async () => {
      refused(await note(), 503, 'schema_unavailable')
      const me = await get('/me')
      expect(me).toMatchObject({ status: 200, body: { capabilities: { get_me: true, probe_note: false } } })
    })
    expect((await note()).status).toBe(201)
  })

  test('200 chat detail without columns has none; 503 for the columns', async () => {
    await without('columns', async () => {
      const detail = await get(`/chats/${chat_id}?account_id=${account_id}`)
      expect(detail).toMatchObject({ status: 200, body: { chat: { columns: [], stage_key: 'new' } } })
      refused(await get('/columns'), 503, 'schema_unavailable')
    })
  })

  test('503 with the reason for starting a chat without contacts', async () => {
    await without('contacts', async () => {
      const started = await post('/chats/start', { account_id, identifier: 'somebody' })
      refused(started, 503, 'schema_unavailable')
    })
  })
})

describe('V3: a search', () => {
  const foreign = 'acc_nobodys'

  test('400 for a query without a word, before the account is checked', async () => {
    for (const query of ['-x', '!!', '"…"', '-"a b"']) {
      refused(await post('/search', { query, account_id: foreign }), 400, 'invalid_request')
    }
    for (const body of [{ keywords: ['--'] }, { people: ['?'] }, { cursor: 'x', query: 'x' }]) {
      const answer = await post('/search', { ...body, account_id: foreign })
      expect([answer.status, body]).toEqual([400, body])
    }
    refused(await post('/search', { query: 'x', account_id: foreign }), 403, 'account_unavailable')
  })

  test('200 for empty people or keywords, as if they were not given', async () => {
    const plain = await post('/search', { query: 'hello' })
    expect(plain.body.match_count).toBeGreaterThan(0)
    for (const empty of [{ people: [] }, { keywords: [] }, { people: [], keywords: [] }]) {
      expect((await post('/search', { query: 'hello', ...empty })).body).toEqual(plain.body)
    }
  })

  test('200: a bound of half a millisecond is exact', async () => {
    const found = async (bound: object) =>
      (await post('/search', { query: 'hello', account_id, chat_id, ...bound })).body.match_count
    const at = '2026-11-01T08:01:00.000'
    expect(await found({ time_after: `${at}Z` })).toBe(1)
    expect(await found({ time_after: `${at}5Z` })).toBe(0)
    expect(await found({ time_before: `${at}Z` })).toBe(0)
    expect(await found({ time_before: `${at}5Z` })).toBe(1)
  })
})

describe('V4: times as other programs write them', () => {
  test('200 for next_before with another spelling of UTC, which is still a cursor', async () => {
    const { account_id, workspace_id } = await tied()
    const path = `/chats/platform:chat:77/messages?account_id=${account_id}&limit=2`
    const first = await get(path)
    const next = String(first.body.next_before)
    expect(next).toMatch(/\d{22}Z$/)
    const wanted = await get(`${path}&before=${next}`)
    for (const spelling of ['z', '+00:00', '%2B00:00', '-00:00', '+05:30']) {
      const written =
        spelling === '+05:30'
          ? next.replace('T09:00', 'T14:30').replace('Z', '%2B05:30')
          : next.replace('T', spelling === 'z' ? 't' : 'T').replace('Z', spelling)
      const answer = await get(`${path}&before=${written}`)
      expect([written, answer.status, answer.body.messages]).toEqual([written, 200, wanted.body.messages])
    }
    expect(workspace_id).toBe(own.workspace_id)
  })

  async function tied() {
    const owner = { account_id: await service.account(own.workspace_id), workspace_id: own.workspace_id }
    await service.chat({ ...owner, id: '77', texts: ['a', 'b', 'c', 'd', 'e'] })
    await service.app.db.run(sql`
      update messages set sent_at = '2026-11-01T09:00:00.123Z' where account_id = ${owner.account_id}`)
    await service.app.db.run(sql`
      insert into chat_sync (account_id, chat_id, workspace_id, complete)
      values (${owner.account_id}, 77, ${owner.workspace_id}, true)`)
    return owner
  }

  test('200 before a leap second, and before a time of many digits', async () => {
    const { account_id } = await tied()
    const path = `/chats/platform:chat:77/messages?account_id=${account_id}`
    for (const before of ['2016-12-31T23:59:60Z', `2016-12-31t23:59:59.${'9'.repeat(60)}z`]) {
      expect([before, (await get(`${path}&before=${before}`)).status]).toEqual([before, 200])
    }
  })
})

describe('V6: an unknown query parameter', () => {
  test('400 names it, and the parameter that was probably meant', async () => {
    const answer = await get(`/chats?acount_id=${account_id}`)
    refused(answer, 400, 'invalid_request')
    expect(answer.body.error).toBe('Unknown query parameter: "acount_id". Did you mean account_id?')
    for (const [path, meant] of [
      ['/chats?accountId=x', 'account_id'],
      ['/chats?Limit=1', 'limit'],
      ['/contacts?acocunt-id=x', 'account_id'],
      ['/events?aftr=1', 'after'],
    ] as const) {
      const { body } = await get(path)
      expect(body.error).toContain(`Did you mean ${meant}?`)
    }
  })

  test.each(routes.map((route) => [`${route.method} ${route.path}`, route] as const))(
    '400 on %s, also if it has none',
    async (_, { method, path }) => {
      const known: Readonly<Record<string, string>> = { chat_id, message_id: '1', index: '0' }
      const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => known[name] ?? newId())
      const answer = await service.call(method, `${filled}?surprise=1`, {
        key: own.key,
        headers: { 'idempotency-key': 'k' },
      })
      refused(answer, 400, 'invalid_request')
      expect(answer.body.error).toBe('Unknown query parameter: "surprise".')
    },
  )

  test('400 names several, and in a body the property that was probably meant', async () => {
    expect((await get('/me?a=1&b=2')).body.error).toBe('Unknown query parameters: "a", "b".')
    expect((await get('/chats?acount_id=x&lmit=5&surprise=1')).body.error).toBe(
      'Unknown query parameters: "acount_id" (did you mean account_id?), "lmit" (did you mean limit?), "surprise".',
    )
    const { body } = await post('/search', { query: 'x', acount_id: account_id })
    expect(body.error).toBe('Unknown property: "acount_id". Did you mean account_id?')
    const missing = await post('/search', { query: 7, acount_id: account_id })
    expect(missing.body.error).toBe('Unknown property: "acount_id". Did you mean account_id?')
  })
})

describe('V7: one pager works on every list', () => {
  test('200 /events takes next_cursor as cursor', async () => {
    await service.app.db.transaction((tx) =>
      emit(
        tx,
        own.workspace_id,
        [1, 2, 3].map((n) => ({ type: 'message.received', occurred_at: null, data: { n } })),
      ),
    )
    await sequence(service.app.db)
    const first = await get('/events?limit=1')
    expect(first.body).toMatchObject({ has_more: true, next_cursor: '1' })
    const second = await get(`/events?limit=1&cursor=${first.body.next_cursor}`)
    expect(second.body).toEqual((await get('/events?limit=1&after=1')).body)
    expect(second.body.events).toMatchObject([{ sequence: 2 }])
  })

  test('200 /search pages by next_cursor: every match once, also those of one millisecond', async () => {
    const owner = { account_id: await service.account(own.workspace_id), workspace_id: own.workspace_id }
    const twin = { account_id: await service.account(own.workspace_id), workspace_id: own.workspace_id }
    const texts = Array.from({ length: 12 }, (_, at) => `pageable ${at}`)
    for (const each of [owner, twin]) await service.chat({ ...each, id: '88', texts })
    await service.app.db.run(sql`
      update messages set sent_at = '2026-11-01T09:00:00.123Z'
      where chat_id = 88 and id between 3 and 9 and account_id = any(${[owner.account_id, twin.account_id]})`)
    for (const asked of [{ query: 'pageable' }, { time_after: '2026-11-01T08:00:30Z', chat_id: undefined }]) {
      const seen: unknown[] = []
      const counts = new Set()
      let cursor: unknown
      do {
        const { status, body } = await post('/search', { ...asked, limit: 5, ...(cursor ? { cursor } : {}) })
        expect([status, body.error]).toEqual([200, undefined])
        for (const { account_id, chat_id, message_id } of body.matches as Record<string, string>[]) {
          seen.push(`${account_id} ${chat_id} ${message_id}`)
        }
        counts.add(body.match_count)
        expect(body.has_more).toBe(body.next_cursor !== null)
        cursor = body.next_cursor
      } while (cursor)
      expect(new Set(seen).size).toBe(seen.length)
      expect([...counts]).toEqual([seen.length])
      expect(seen.length).toBeGreaterThanOrEqual(24)
    }
  })

  test('400 invalid_cursor on /search for the cursor of another search', async () => {
    const { body } = await post('/search', { time_after: '2026-01-01', limit: 1 })
    const other = { time_after: '2026-01-02', limit: 1, cursor: body.next_cursor }
    refused(await post('/search', other), 400, 'invalid_cursor')
    expect((await post('/search', { ...other, time_after: '2026-01-01', limit: 2 })).status).toBe(200)
  })

  test('400 for a forged cursor, and for two that differ', async () => {
    refused(await get('/events?cursor=x'), 400, 'invalid_cursor')
    refused(await get('/events?cursor=1&after=2'), 400, 'invalid_request')
    expect((await get('/events?cursor=1&after=1')).status).toBe(200)
  })
})

describe('V8: what a refusal says', () => {
  const read = (key: string) =>
    post(`/chats/${chat_id}/read-state`, { account_id, unread: false }, { 'idempotency-key': key })

  test.each([
    ['', 'is empty'],
    ['"  "', 'is empty'],
    ['a'.repeat(256), 'has 256 characters'],
    ['clé', 'not printable ASCII'],
  ])('400 invalid_request for the key %j, with the reason', async (key, said) => {
    const answer = await read(key)
    refused(answer, 400, 'invalid_request')
    expect(answer.body.error).toContain(
      `Idempotency-Key ${said.startsWith('not') ? 'contains a character that is ' : ''}${said}`,
    )
  })

  test('200 changed: false for a stage that was hidden since, 400 for a move into it', async () => {
    const stage = { workspace_id: own.workspace_id, key: 'fading' }
    await createStage(service.app, 'system', { ...stage, label: 'Fading' })
    const move = (chat: string) => post('/pipeline/move', { account_id, chat_id: chat, stage_key: 'fading' })
    expect(await move(chat_id)).toMatchObject({ status: 200, body: { changed: true } })
    await updateStage(service.app, 'system', { ...stage, hidden: true })
    expect(await move(chat_id)).toMatchObject({ status: 200, body: { changed: false, stage_key: 'fading' } })
    const other = await service.chat({ account_id, workspace_id: own.workspace_id, id: '43' })
    refused(await move(other), 400, 'invalid_stage')
    const detail = await get(`/chats/${other}?account_id=${account_id}`)
    expect(detail.body).toMatchObject({ chat: { stage_key: 'new' } })
  })

  test('404 for an unknown phone number or id does not mention a username alone', async () => {
    await service.open('extended')
    for (const identifier of ['+4915112345678', '987654321']) {
      const answer = await post('/chats/start', { account_id, identifier })
      refused(answer, 404, 'username_not_found')
      expect(answer.body.error).toMatch(/phone number or id/)
    }
    await service.shut('extended')
  })
})

describe('V9: without a key', () => {
  /** Unchanged: `fetch` would normalise the address. */
  function statusOf(path: string, key?: string): Promise<string> {
    const { hostname, port } = new URL(service.url)
    return new Promise((resolve, reject) => {
      let heard = ''
      const lines = key ? `Authorization: Bearer ${key}\r\n` : ''
      const socket = connect(Number(port), hostname, () =>
        socket.write(`GET ${path} HTTP/1.1\r\nHost: parley\r\nConnection: close\r\n${lines}\r\n`),
      )
      socket.on('data', (bytes) => {
        heard += bytes
      })
      socket.on('error', reject)
      socket.on('close', () => resolve(heard.slice(9, 12)))
    })
  }

  const malformed = ['/api/v1/%', '/api/v1/chats/%zz', '/api/v1/chats/%E0%A4', '/api/v1/me%']

  test('401 for everything under /api/v1, malformed paths included', async () => {
    for (const path of [
      ...malformed,
      '/api/v1',
      '/api/v1/',
      '/api/v1//',
      '/%61pi/v1/nothing',
      '/api/v1?x=%',
    ]) {
      expect([path, await statusOf(path)]).toEqual([path, '401'])
    }
  })

  test('400 for a malformed path with a key, 404 outside, and the document needs no key', async () => {
    for (const path of malformed) expect([path, await statusOf(path, own.key)]).toEqual([path, '400'])
    expect(await statusOf('/nothing')).toBe('404')
    expect(await statusOf('/%')).toBe('400')
    expect(await statusOf('/api/v1/openapi.json')).toBe('200')
  })
})
