import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { insertCampaign } from '../../../test/harness/campaigns.ts'
import { until } from '../../../test/harness/process.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { readZip } from '../../../test/harness/zip.ts'
import { sql } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import { storeFileChunk } from '../media/media.ts'
import { addSuppression } from '../suppressions/suppressions.ts'

let service: Service
let own: Tenant
let other: Tenant
let account_id: string
let person_id: string

const hostile = `<script>alert("x")</script> & 'quotes' \u202e`

beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  other = await service.tenant('Other')
  const { workspace_id } = own
  account_id = await service.account(workspace_id)
  await service.chat({ account_id, workspace_id, id: '42', name: 'Ines <b>', texts: ['hello'] })
  await service.chat({
    account_id,
    workspace_id,
    id: '43',
    name: 'Somebody',
    texts: ['canary of another chat'],
  })
  const foreign = await service.account(other.workspace_id)
  await service.chat({
    account_id: foreign,
    workspace_id: other.workspace_id,
    id: '42',
    texts: ['canary elsewhere'],
  })
  const { body } = await service.get('/people?q=platform:chat:42', { key: own.key })
  person_id = (body.people as { id: string }[])[0]?.id ?? ''
})
afterAll(() => service.close())

const pathOf = (id: string) => `/people/${id}/export`

/** `service.call` reads JSON only. */
async function download(id = person_id, { key = own.key, method = 'GET' } = {}) {
  const response = await fetch(`${service.url}/api/v1${pathOf(id)}`, {
    method,
    headers: { authorization: `Bearer ${key}` },
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: response.headers, bytes }
}

interface Attachment {
  readonly file_name: string
  readonly path: string | null
}
interface Exported {
  readonly text: string
  readonly is_sender: boolean
  readonly account_id: string
  readonly by: { readonly kind: string } | null
  readonly operation_id: string | null
  readonly attachments: readonly Attachment[]
}

async function exported(id = person_id) {
  const { status, bytes } = await download(id)
  expect(status).toBe(200)
  const files = readZip(bytes)
  const json = (name: string) => JSON.parse(String(files.get(name)))
  return {
    files,
    person: json('person.json') as {
      readonly person: Record<string, unknown>
      readonly parts: Record<string, { readonly from: string; readonly rows: Record<string, unknown>[] }>
    },
    messages: json('messages.json').messages as Exported[],
    page: String(files.get('messages.html')),
    listed: json('files.json').files as Record<string, unknown>[],
  }
}

let serial = 1_000
async function write(text: string, more: Record<string, unknown> = {}): Promise<string> {
  const row = { chat_id: 42, is_sender: false, sender_id: null, random_id: null, attachments: [], ...more }
  const id = String(serial++)
  await service.app.db.run(sql`
    insert into messages (account_id, workspace_id, chat_id, id, text, is_sender, sender_id, sent_at, random_id, attachments)
    values (${account_id}, ${own.workspace_id}, ${row.chat_id}, ${id}, ${text}, ${row.is_sender}, ${row.sender_id},
      domain_now() - interval '1 minute', ${row.random_id}, ${JSON.stringify(row.attachments)}::jsonb)`)
  return id
}

async function storeFile(message_id: string, bytes: Buffer): Promise<void> {
  const id = newId()
  await service.app.db.run(sql`
    insert into media_files (id, account_id, chat_id, message_id, index, workspace_id, size, ended_at)
    values (${id}, ${account_id}, 42, ${message_id}, 0, ${own.workspace_id}, ${bytes.length}, now())`)
  await storeFileChunk(service.app.db, { id, n: 0, bytes })
}

const countExports = async () =>
  (
    await service.app.db.one<{ n: number }>(sql`
      select count(*)::int as n from audit where action = 'person.exported' and workspace_id = ${own.workspace_id}`)
  ).n

describe('GET /people/{person_id}/export', () => {
  test('200 as one file, recorded in the audit log by who asked and for whom', async () => {
    const before = await countExports()
    const { status, headers } = await download()
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/zip')
    expect(headers.get('content-disposition')).toBe(`attachment; filename="person-${person_id}.zip"`)
    expect(await countExports()).toBe(before + 1)
    const row = await service.app.db.one(sql`
      select actor, target, detail from audit where action = 'person.exported' order by seq desc limit 1`)
    expect(row).toEqual({ actor: `user:${own.user_id}`, target: person_id, detail: '{}' })
  })

  test('200 with every part and where it comes from, and the messages both ways', async () => {
    const { workspace_id, user_id } = own
    const { db } = service.app
    await addSuppression(service.app, 'cli:ana', { workspace_id, platform_id: '42' })
    await db.run(sql`
      insert into notes (id, workspace_id, account_id, chat_id, author_id, text)
      values (${newId()}, ${workspace_id}, ${account_id}, 42, ${user_id}, 'likes brass'),
        (${newId()}, ${workspace_id}, ${account_id}, 43, ${user_id}, 'canary of a note')`)
    const operation = newId()
    await db.run(sql`
      insert into operations (id, workspace_id, kind, effect, fingerprint, state, reply_status, account_id, chat_id, user_id,
        random_id)
      values (${operation}, ${workspace_id}, 'send_message', 'platform', ${Buffer.alloc(32)}, 'completed', 200,
        ${account_id}, 42, ${user_id}, 77)`)
    await write('ours', { is_sender: true, random_id: 77 })
    const { person, messages, files } = await exported()
    expect(person.person).toMatchObject({
      id: person_id,
      platform: 'sandbox',
      platform_id: '42',
      name: 'Ines <b>',
    })
    expect(Object.keys(person.parts).sort()).toEqual([
      ...[
        'approvals',
        'campaigns',
        'chats',
        'columns',
        'contacts',
        'names',
        'notes',
        'operations',
        'suppressions',
      ],
    ])
    for (const { from } of Object.values(person.parts)) expect(from).toMatch(/^[A-Z].*\.$/)
    expect(person.parts.names?.rows).toContainEqual(
      expect.objectContaining({ kind: 'username', value: 'person_42' }),
    )
    expect(person.parts.contacts?.rows).toMatchObject([
      { account_id, name: 'Ines <b>', username: 'person_42' },
    ])
    expect(person.parts.suppressions?.rows).toMatchObject([{ kind: 'platform_id', value: '42' }])
    expect(person.parts.notes?.rows).toMatchObject([{ text: 'likes brass' }])
    expect(messages).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ text: 'hello', is_sender: false, by: null, operation_id: null }),
        expect.objectContaining({
          text: 'ours',
          is_sender: true,
          by: expect.objectContaining({ kind: 'user' }),
          operation_id: operation,
        }),
      ]),
    )
    for (const content of files.values()) expect(String(content)).not.toContain('canary')
  })

  test('200 with what no page shows of chats and campaigns', async () => {
    const { db } = service.app
    await insertCampaign(db, own, {
      kind: 'contacts',
      pool: [account_id],
      contacts: [{ contact: 'username:person_42' }],
    })
    await db.run(sql`
      update campaign_recipients
      set identifier = '@Person_42', username = 'person_42', found_id = 42, found_username = 'person_42', found_phone = '491701'
      where contact = 'username:person_42'`)
    await db.run(sql`
      update chats set username = 'person_42', read_by_them_at = '2026-03-01T09:00:00Z'
      where account_id = ${account_id} and chat_id = 42`)
    const { person } = await exported()
    expect(person.parts.chats?.rows).toMatchObject([
      { username: 'person_42', participants: [{ id: '42' }], read_by_them_at: '2026-03-01T09:00:00.000Z' },
    ])
    expect(person.parts.campaigns?.rows).toMatchObject([
      {
        contact: 'username:person_42',
        identifier: '@Person_42',
        username: 'person_42',
        ...{ found_id: '42', found_username: 'person_42', found_phone: '491701' },
      },
    ])
  })

  test('200 with texts of strangers as text in the page', async () => {
    await write(hostile, {
      attachments: [{ index: 0, file_name: '../../<img src=x>.PNG', media_type: 'image/png', size: 1 }],
    })
    const { page, messages } = await exported()
    expect(page).toContain('&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &#39;quotes&#39;')
    expect(page).toContain('Messages with <bdi>Ines &lt;b&gt;</bdi>')
    expect(page).not.toMatch(/<script|<img|<b>/)
    expect(messages.map(({ text }) => text)).toContain(hostile)
  })

  test('200 with the files that are stored, under names of our own, and a list of them', async () => {
    const attachment = {
      index: 0,
      file_name: '../../etc/pass wd/..\\x.PNG',
      media_type: 'image/png',
      size: 5,
    }
    const stored = await write('a picture', { attachments: [attachment] })
    const away = await write('another', { attachments: [attachment] })
    await storeFile(stored, Buffer.from('bytes'))
    const { files, messages, listed } = await exported()
    const path = `files/${account_id}/${stored}-0.PNG`
    expect(String(files.get(path))).toBe('bytes')
    expect(listed).toEqual([
      {
        ...{ path, account_id, chat_id: 'platform:chat:42', message_id: stored, index: 0 },
        ...{ file_name: attachment.file_name, media_type: 'image/png', size: 5, included: true },
      },
    ])
    const paths = messages
      .filter(({ text }) => text === 'a picture' || text === 'another')
      .map(({ attachments }) => attachments[0]?.path)
    expect(paths).toEqual([path, null])
    expect([...files.keys()].filter((name) => name.includes('..') || name.includes(away))).toEqual([])
  })

  test("200 with the person's own messages of groups, and none of others", async () => {
    await service.app.db.run(sql`
      insert into chats (account_id, workspace_id, chat_id, kind, name)
      values (${account_id}, ${own.workspace_id}, -700, 'group', 'A group')`)
    await write('theirs in a group', { chat_id: -700, sender_id: 42 })
    await write('canary of a stranger', { chat_id: -700, sender_id: 43 })
    await write('canary of ours in a group', { chat_id: -700, is_sender: true, sender_id: 42 })
    const { messages, files } = await exported()
    expect(messages.map(({ text }) => text)).toContain('theirs in a group')
    expect(messages.filter(({ text }) => text === '')).toEqual([])
    for (const content of files.values()) expect(String(content)).not.toContain('canary')
  })

  test('200 with more messages than one batch, each once', async () => {
    await service.app.db.run(sql`
      insert into messages (account_id, workspace_id, chat_id, id, text, is_sender, sent_at)
      select ${account_id}, ${own.workspace_id}, 42, 100000 + n, 'number ' || n, n % 2 = 0,
        date_trunc('second', domain_now() - interval '1 hour') + (n / 3) * interval '1 millisecond'
      from generate_series(1, 1000) n`)
    const { messages, page } = await exported()
    const numbered = messages.map(({ text }) => text).filter((text) => text.startsWith('number '))
    expect(numbered).toEqual(Array.from({ length: 1_000 }, (_, n) => `number ${n + 1}`))
    expect(page.match(/<p dir="auto">number /g)).toHaveLength(1_000)
    expect(page.match(/<h2>/g)).toHaveLength(2)
  })

  test('404 for a person of another workspace and an id that is none, and nothing is recorded', async () => {
    const before = await countExports()
    const { body } = await service.get('/people?q=platform:chat:42', { key: other.key })
    const [{ id } = { id: '' }] = body.people as { id: string }[]
    for (const asked of [id, newId(), 'x']) expect((await download(asked)).status).toBe(404)
    expect(await countExports()).toBe(before)
  })

  test('429 while another one of the workspace is not read, and 200 once its reader has left', async () => {
    await service.app.db.run(sql`
      insert into messages (account_id, workspace_id, chat_id, id, text, is_sender, sent_at)
      select ${account_id}, ${own.workspace_id}, 43, 200000 + n, repeat('x', 4000), false, domain_now() - interval '1 hour'
      from generate_series(1, 10000) n`)
    const { body } = await service.get('/people?q=platform:chat:43', { key: own.key })
    const [{ id } = { id: '' }] = body.people as { id: string }[]
    const { host, port, hostname } = new URL(service.url)
    const socket = connect(Number(port), hostname)
    socket.write(
      `GET /api/v1${pathOf(id)} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${own.key}\r\n\r\n`,
    )
    await new Promise((resolve) => void socket.once('readable', resolve))
    const before = await countExports()
    const refused = await download()
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '10'])
    expect(JSON.parse(String(refused.bytes)).code).toBe('rate_limited')
    expect(await countExports()).toBe(before)
    socket.destroy()
    await until('its place is free', 30_000, async () => (await download()).status === 200)
  })

  test('HEAD 200 leaves the place of the export free', async () => {
    expect((await download(person_id, { method: 'HEAD' })).status).toBe(200)
    await until('its place is free', 30_000, async () => (await download()).status === 200)
  })
})
