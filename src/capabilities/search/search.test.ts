import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import type { Chat, Message, Person } from '../../platform/port.ts'
import { storeChats } from '../chats/chats.ts'
import { storeContacts } from '../contacts/contacts.ts'
import { deleteMessages, storeEdits, storeMessages } from '../messages/messages.ts'
import { contextMax, excerptMax, excerptOf } from './excerpt.ts'
import { findPending, indexPending } from './index/search-index.ts'

let service: Service
let own: Tenant
let other: Tenant
let first: string
let second: string

/** Whether stored messages are indexed immediately. */
let listed: boolean

function open(inLists = false) {
  beforeAll(async () => {
    listed = inLists
    service = await openService({ env: { PARLEY_RATE_LIMIT: '100000' } })
    own = await service.tenant('Own')
    other = await service.tenant('Other')
    first = await service.account(own.workspace_id)
    second = await service.account(own.workspace_id)
  })
  afterAll(() => service.close())
}

interface Match {
  readonly account_id: string
  readonly chat_id: string
  readonly message_id: string
  readonly excerpt: string
  readonly is_sender: boolean
  readonly timestamp: string
}

interface Result {
  readonly matches: readonly Match[]
  readonly match_count: number
  readonly match_count_capped?: true
  readonly has_more: boolean
  readonly chats: readonly { chat_id: string; chat_name: string }[]
  readonly platforms_searched: readonly string[]
  readonly context: string
  readonly completeness: { complete: boolean; accounts: readonly Record<string, unknown>[] }
}

async function search(body: unknown, key = own.key): Promise<Result> {
  const answer = await service.post('/search', { key, body })
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body as unknown as Result
}

async function texts(body: unknown, key = own.key): Promise<string[]> {
  return (await search(body, key)).matches.map(({ excerpt }) => excerpt)
}

async function refused(body: unknown, sentence: RegExp): Promise<void> {
  const answer = await service.post('/search', { key: own.key, body })
  expect([answer.status, answer.body.code]).toEqual([400, 'invalid_request'])
  expect(answer.body.error).toMatch(sentence)
}

interface NewMessage {
  readonly text: string
  readonly at?: string
  readonly sender?: Person
  readonly sent?: boolean
}

let lastId = 0
const start = Date.UTC(2026, 5, 1)

function person(id: string, name: string): Person {
  return { id, name, username: null, phone: null, kind: 'person' }
}

/** Messages of a chat, as ingest stores them; returns their numbers. */
async function store(
  { account_id = first, tenant = own, id, name = `Chat ${id}` }: Partial<SearchedChat> & { id: Chat['id'] },
  messages: readonly (NewMessage | string)[],
): Promise<string[]> {
  const owner = { account_id, workspace_id: tenant.workspace_id }
  const group = id.startsWith('-')
  const stored = messages.map((given): Message => {
    const { text, at, sender, sent = false } = typeof given === 'string' ? { text: given } : given
    lastId++
    const timestamp = at ?? new Date(start + lastId * 60_000).toISOString()
    const rest = { edited_at: null, attachments: [], random_id: null }
    return { id: String(lastId), text, is_sender: sent, sender_id: sender?.id ?? null, timestamp, ...rest }
  })
  const senders = messages.flatMap((given) =>
    typeof given === 'string' || !given.sender ? [] : [given.sender],
  )
  const people = group ? senders : [person(id, name)]
  const chat: Chat = {
    id,
    kind: group ? 'group' : 'private',
    name,
    username: null,
    unread_count: 0,
    participants: people,
  }
  await service.app.db.transaction(async (tx) => {
    await storeMessages(
      tx,
      owner,
      stored.map((message) => ({ chat_id: id, message, announce: false })),
    )
    await storeChats(tx, owner, [{ chat, last: stored.at(-1) ?? null }])
    await storeContacts(tx, owner, [...new Map(people.map((one) => [one.id, one])).values()])
  })
  if (listed) await indexPending(service.app.db, owner)
  return stored.map((message) => message.id)
}

interface SearchedChat {
  readonly account_id: string
  readonly tenant: Tenant
  readonly id: Chat['id']
  readonly name: string
}

describe.each([
  ['pending', false],
  ['in lists', true],
])('POST /search, messages %s', (_, inLists) => {
  open(inLists)

  test('200 in the shape of both documents, newest first', async () => {
    const [older, newer] = await store({ id: '100', name: 'Ines García' }, [
      { text: 'Is the quokka still there?', at: '2026-03-01T08:00:00.000Z' },
      { text: 'A quokka sleeps.', at: '2026-03-01T09:00:00.000Z', sent: true },
    ])
    const result = await search({ query: 'quokka' })
    const place = { account_id: first, chat_id: 'platform:chat:100' }
    expect(result).toEqual({
      matches: [
        {
          ...place,
          message_id: newer,
          excerpt: 'A quokka sleeps.',
          is_sender: true,
          timestamp: '2026-03-01T09:00:00.000Z',
        },
        {
          ...place,
          message_id: older,
          excerpt: 'Is the quokka still there?',
          is_sender: false,
          timestamp: '2026-03-01T08:00:00.000Z',
        },
      ],
      match_count: 2,
      next_cursor: null,
      has_more: false,
      chats: [{ ...place, chat_name: 'Ines García', provider: 'sandbox' }],
      platforms_searched: ['sandbox'],
      context:
        '[2026-03-01T09:00:00.000Z] Ines García, sent: A quokka sleeps.\n' +
        '[2026-03-01T08:00:00.000Z] Ines García, received: Is the quokka still there?',
      completeness: {
        complete: false,
        accounts: [
          {
            account_id: first,
            history_complete: false,
            oldest_at: '2026-03-01T08:00:00.000Z',
            newest_at: '2026-03-01T09:00:00.000Z',
          },
          { account_id: second, history_complete: false, oldest_at: null, newest_at: null },
        ],
      },
    })
  })

  test('200 with all words in any order, the last one as a prefix', async () => {
    await store({ id: '101' }, ['green lanterns hang here', 'a green door', 'lanterns are red'])
    expect(await texts({ query: 'lanterns green' })).toEqual(['green lanterns hang here'])
    expect(await texts({ query: 'GREEN lant' })).toEqual(['green lanterns hang here'])
    expect(await texts({ query: 'lant green' })).toEqual([])
    expect(await texts({ query: 'green -lanterns' })).toEqual(['a green door'])
    expect(await texts({ query: 'green -lant' })).toEqual(['a green door', 'green lanterns hang here'])
  })

  test('200 with a phrase, and without one', async () => {
    await store({ id: '102' }, ['big apple pie', 'apple big pie', 'big, apple! pies'])
    expect(await texts({ query: '"big apple"' })).toEqual(['big, apple! pies', 'big apple pie'])
    expect(await texts({ query: '"big apple" -"apple pie"' })).toEqual(['big, apple! pies'])
    expect(await texts({ query: '"apple p"' })).toEqual([])
    expect(await texts({ query: 'apple-p' })).toEqual(['big, apple! pies', 'big apple pie'])
  })

  test.each([
    ['Cyrillic', 'Счёт за ДОСТАВКУ отправлен', ['счет', 'доставку', 'ОТПРАВ', '"за доставку"']],
    ['Greek', 'Η οδός είναι κλειστή', ['ΟΔΟΣ', 'κλειστη', 'είναι']],
    ['accents', 'Žluťoučký kůň pěl ódy', ['zlutoucky', 'KUN', 'ódy']],
    ['German', 'Die Straße ist groß', ['strasse', 'STRASSE', 'groß', 'gross']],
    ['Turkish', 'İstanbul’da ışık var', ['istanbul', 'ISIK', 'ışık']],
    ['Arabic', 'مُحَمَّد في المكتب', ['محمد', 'المكتب']],
    ['Hebrew', 'שָׁלוֹם עולם', ['שלום']],
    ['Hindi', 'नमस्ते दुनिया', ['नमस्ते', 'दुनि']],
    ['Chinese', '请问明天的会议几点开始', ['会议', '明天的会', '议', '"几点开始"', '始']],
    ['Japanese', '東京タワーへ行きました', ['東京', 'タワー', '京タ', '行き']],
    ['Korean', '내일 회의가 있습니다', ['회의', '의가', '있습']],
    ['Thai', 'สวัสดีชาวโลก', ['ชาว', 'สวัส']],
    ['emoji', 'Well done 🎉👍🏽 from 🇩🇪', ['🎉', '👍', '"done 🎉"', '🇩🇪']],
    ['full width', 'Ｆｕｌｌ ｗｉｄｔｈ', ['full width']],
  ])('200 in any script: %s', async (script, text, queries) => {
    await store({ id: `${Number(`1${script.length}${text.length}`)}` }, [text])
    for (const query of queries) expect(await texts({ query }), query).toContain(text)
  })

  test('200 without a match when characters are in another order', async () => {
    await store({ id: '104' }, ['京东商城'])
    expect(await texts({ query: '东京' })).toEqual([])
    expect(await texts({ query: '京商' })).toEqual([])
  })

  test('200 treats everything that has a meaning to PostgreSQL as text', async () => {
    await store({ id: '105' }, ["it's 100% zig_zag \\ (zag) : zug"])
    for (const query of [
      "it's",
      'zig_zag',
      '100%',
      "zug') --",
      'zug & !',
      'zug:*',
      'zug <-> ',
      'zug | ',
      "'zug'",
      'zug\\',
      '((zug',
      'zug %',
      '.*zug',
      "zug'; drop table messages",
    ]) {
      const { match_count } = await search({ query })
      expect([query, match_count]).toEqual([query, query.includes('drop') ? 0 : 1])
    }
    expect(await texts({ query: 'z_g' })).toEqual([])
    expect(await texts({ query: 'z%g' })).toEqual([])
    expect(await texts({ query: 'z.g' })).toEqual([])
  })

  test('200 or 400 for any query, never a 500', async () => {
    const odd = fc.string({
      unit: fc.constantFrom(...'\'"\\:*&|!()<->%_ ab漢́🎉‍'),
      minLength: 1,
      maxLength: 40,
    })
    await fc.assert(
      fc.asyncProperty(odd, odd, async (query, name) => {
        const body = { query, people: [name], keywords: [name] }
        const { status } = await service.post('/search', { key: own.key, body })
        expect([200, 400]).toContain(status)
      }),
      { numRuns: 150 },
    )
  })

  test("200 with an edited message's new text, and without deleted messages", async () => {
    const [edited = '', deleted = ''] = await store({ id: '106' }, ['walrus before', 'walrus twice'])
    const owner = { account_id: first, workspace_id: own.workspace_id }
    const [row] = await service.app.db.rows<{ sent_at: Date }>(sql`
      select sent_at from messages where account_id = ${first} and id = ${edited}`)
    const message: Message = {
      id: edited,
      text: 'narwhal after',
      is_sender: false,
      sender_id: null,
      timestamp: (row?.sent_at ?? new Date()).toISOString(),
      edited_at: new Date(start).toISOString(),
      attachments: [],
      random_id: null,
    }
    await service.app.db.transaction((tx) =>
      storeEdits(tx, owner, [{ chat_id: '106', message, announce: false }]),
    )
    expect(await texts({ query: 'walrus' })).toEqual(['walrus twice'])
    expect(await texts({ query: 'narwhal' })).toEqual(['narwhal after'])
    await service.app.db.transaction((tx) =>
      deleteMessages(tx, owner, [{ chat_id: '106', message_ids: [deleted] }]),
    )
    expect(await texts({ query: 'walrus' })).toEqual([])
    expect(await texts({ chat_id: 'platform:chat:106', time_after: '2020-01-01' })).toEqual(['narwhal after'])
  })

  test('200 with nothing of another workspace or another account', async () => {
    const theirs = await service.account(other.workspace_id)
    const hidden = await service.account(own.workspace_id, 'DISABLED')
    await store({ id: '107', account_id: theirs, tenant: other }, ['secret xylophone of others'])
    await store({ id: '107', account_id: hidden }, ['xylophone of a disabled account'])
    await store({ id: '107' }, ['xylophone of the first'])
    await store({ id: '108', account_id: second }, ['xylophone of the second'])
    expect(await texts({ query: 'xylophone' })).toEqual(['xylophone of the second', 'xylophone of the first'])
    expect(await texts({ query: 'xylophone', account_id: second })).toEqual(['xylophone of the second'])
    expect(await texts({ query: 'xylophone' }, other.key)).toEqual(['secret xylophone of others'])
    expect(await texts({ time_after: '2020-01-01', limit: 100 }, other.key)).toEqual([
      'secret xylophone of others',
    ])
    const result = await search({ query: 'xylophone', account_id: second })
    expect(result.completeness.accounts.map(({ account_id }) => account_id)).toEqual([second])
    for (const account_id of [theirs, hidden, 'acc_unknown']) {
      const answer = await service.post('/search', { key: own.key, body: { query: 'xylophone', account_id } })
      expect([answer.status, answer.body.code]).toEqual([403, 'account_unavailable'])
    }
  })

  test('200 in one chat only, 400 for an unknown chat', async () => {
    await store({ id: '109' }, ['pelican here'])
    await store({ id: '110' }, ['pelican there'])
    expect(await texts({ query: 'pelican', chat_id: 'platform:chat:109' })).toEqual(['pelican here'])
    expect(await texts({ query: 'pelican', chat_id: 'platform:chat:110', account_id: first })).toEqual([
      'pelican there',
    ])
    await refused({ query: 'pelican', chat_id: 'platform:chat:999999' }, /platform:chat:999999/)
    await refused({ query: 'pelican', chat_id: 'platform:chat:109', account_id: second }, /platform:chat:109/)
    await store({ id: '109', account_id: second }, ['pelican elsewhere'])
    const answer = await service.post('/search', {
      key: own.key,
      body: { query: 'pelican', chat_id: 'platform:chat:109' },
    })
    expect([answer.status, answer.body.code]).toEqual([400, 'account_scope_required'])
  })

  test('200 between two times: from the first on, until before the second', async () => {
    await store({ id: '111' }, [
      { text: 'ibis one', at: '2026-01-01T00:00:00.000Z' },
      { text: 'ibis two', at: '2026-01-02T00:00:00.000Z' },
      { text: 'ibis three', at: '2026-01-03T00:00:00.000Z' },
    ])
    expect(await texts({ query: 'ibis', time_after: '2026-01-02' })).toEqual(['ibis three', 'ibis two'])
    expect(await texts({ query: 'ibis', time_before: '2026-01-02' })).toEqual(['ibis one'])
    expect(await texts({ query: 'ibis', time_after: '2026-01-02', time_before: '2026-01-03' })).toEqual([
      'ibis two',
    ])
    expect(
      await texts({ query: 'ibis', time_after: '2026-01-02T01:00:00+01:00', time_before: '2026-01-03' }),
    ).toEqual(['ibis two'])
    expect(await texts({ time_before: '2026-01-02T12:00:00Z', time_after: '2026-01-01' })).toEqual([
      'ibis two',
      'ibis one',
    ])
    expect(await texts({ query: 'ibis', time_after: '2026-01-03', time_before: '2026-01-02' })).toEqual([])
  })

  test('200 for people: by the name of the chat or of the sender', async () => {
    const ramon = person('7001', 'Ramón Núñez')
    await store({ id: '112', name: 'Élodie Dubois' }, ['toucan private'])
    await store({ id: '-113', name: 'Bird watchers' }, [
      { text: 'toucan from Ramon', sender: ramon },
      { text: 'toucan from somebody', sender: person('7002', 'Olga') },
    ])
    await store({ id: '7001', name: 'Ramón Núñez' }, ['toucan in private with Ramon'])
    const query = 'toucan'
    expect(await texts({ people: ['elodie'], query })).toEqual(['toucan private'])
    expect(await texts({ people: ['DUB elo'] })).toEqual(['toucan private'])
    expect(await texts({ people: ['elodie nunez'] })).toEqual([])
    expect(await texts({ people: ['nunez'] })).toEqual(['toucan in private with Ramon', 'toucan from Ramon'])
    expect(await texts({ people: ['bird watch'] })).toEqual(['toucan from somebody', 'toucan from Ramon'])
    expect(await texts({ people: ['Ramon', 'Élodie'], query: 'private' })).toEqual([
      'toucan in private with Ramon',
      'toucan private',
    ])
    expect(await texts({ people: ['nobody of this name'] })).toEqual([])
  })

  test('200 for keywords: any of them, together with all other conditions', async () => {
    await store({ id: '114', name: 'Keyword Kim' }, [
      'invoice due',
      'refund please',
      'late invoice refund',
      'nothing',
    ])
    const chat_id = 'platform:chat:114'
    expect(await texts({ keywords: ['invoice', 'refund'], chat_id })).toEqual([
      'late invoice refund',
      'refund please',
      'invoice due',
    ])
    expect(await texts({ keywords: ['late refund', 'due'], chat_id })).toEqual([
      'late invoice refund',
      'invoice due',
    ])
    expect(await texts({ keywords: ['invo'], query: 'late', people: ['kim'] })).toEqual([
      'late invoice refund',
    ])
    expect(await texts({ keywords: ['refund'], query: '-late please', chat_id })).toEqual(['refund please'])
  })

  test('200 with nothing for mailboxes', async () => {
    await store({ id: '115' }, ['cormorant'])
    const result = await search({ query: 'cormorant', account_types: 'email' })
    expect(result).toEqual({
      matches: [],
      match_count: 0,
      next_cursor: null,
      has_more: false,
      chats: [],
      platforms_searched: [],
      context: '',
      completeness: { complete: true, accounts: [] },
    })
    for (const account_types of ['messaging', 'all']) {
      expect(await texts({ query: 'cormorant', account_types })).toEqual(['cormorant'])
    }
  })

  test('200 with as many as the limit says, and whether there are more', async () => {
    await store(
      { id: '116' },
      Array.from({ length: 60 }, (_, at) => `heron ${at}`),
    )
    const five = await search({ query: 'heron', limit: 5 })
    expect([five.matches.length, five.match_count, five.has_more]).toEqual([5, 60, true])
    expect(five.matches[0]?.excerpt).toBe('heron 59')
    const standard = await search({ query: 'heron' })
    expect([standard.matches.length, standard.has_more]).toEqual([50, true])
    const all = await search({ query: 'heron', limit: 100 })
    expect([all.matches.length, all.match_count, all.has_more]).toEqual([60, 60, false])
    expect(all.match_count_capped).toBeUndefined()
  })

  test('200 with messages of the same moment in a fixed order, each once', async () => {
    const at = '2026-02-02T02:02:02.000Z'
    await store(
      { id: '117' },
      Array.from({ length: 30 }, (_, n) => ({ text: `stork ${n}`, at })),
    )
    const ids = (await search({ query: 'stork', limit: 30 })).matches.map(({ message_id }) =>
      Number(message_id),
    )
    expect(ids).toEqual([...ids].sort((a, b) => b - a))
    expect(new Set(ids).size).toBe(30)
  })
})

describe('POST /search', () => {
  open()

  test.each([
    [/at least one of query, people, keywords, time_after, time_before/, {}],
    [/at least one of/, { limit: 5 }],
    [/^query /, { query: '' }],
    [/^query must not be blank/, { query: '  ' }],
    [/^query /, { query: 5 }],
    [/^query /, { query: ['x'] }],
    [/^query must have at most 1000/, { query: 'x'.repeat(1001) }],
    [/^query and keywords must have at most 128 words/, { query: 'a '.repeat(200) }],
    [/^query must contain a word/, { query: '-only -"these two"' }],
    [/^query must contain a word/, { query: '... !' }],
    [/^limit must be a whole number from 1 to 100/, { query: 'x', limit: 0 }],
    [/^limit /, { query: 'x', limit: 101 }],
    [/^limit /, { query: 'x', limit: 1.5 }],
    [/^limit /, { query: 'x', limit: '5' }],
    [/^limit /, { query: 'x', limit: null }],
    [/^account_id /, { query: 'x', account_id: '' }],
    [/^account_id /, { query: 'x', account_id: 7 }],
    [/^chat_id /, { query: 'x', chat_id: '42' }],
    [/^chat_id /, { query: 'x', chat_id: 'platform:chat:01' }],
    [/^chat_id /, { query: 'x', chat_id: 'platform:chat:9223372036854775808' }],
    [/^chat_id /, { query: 'x', chat_id: 42 }],
    [/at least one of/, { people: [] }],
    [/^people /, { people: 'Mara' }],
    [/^people\[0\] /, { people: [''] }],
    [/^people contains "\?"/, { people: ['?'] }],
    [/^people\[0\] /, { people: [5] }],
    [/^people /, { people: Array(21).fill('x') }],
    [/^people\[0\] /, { people: ['x'.repeat(101)] }],
    [/at least one of/, { keywords: [] }],
    [/^keywords /, { keywords: 'x' }],
    [/^keywords\[1\] /, { keywords: ['x', ' '] }],
    [/^keywords contains "--"/, { keywords: ['--'] }],
    [/^keywords /, { keywords: Array(21).fill('x') }],
    [/^time_after /, { time_after: 'yesterday' }],
    [/^time_after /, { time_after: 5 }],
    [/^time_before /, { time_before: '2026-02-30' }],
    [/^time_before /, { time_before: '2026-01-01T25:00:00Z' }],
    [/^account_types must be messaging, email or all/, { query: 'x', account_types: 'sms' }],
    [/^account_types /, { query: 'x', account_types: ['all'] }],
  ])('400 that says %s', async (sentence, body) => {
    await refused(body, sentence)
  })

  test('400 for text that cannot be stored', async () => {
    for (const body of ['{"query":"a\\u0000b"}', '{"people":["a\\ud800"]}', '{"keywords":["\\u0000"]}']) {
      const answer = await service.post('/search', { key: own.key, body })
      expect([answer.status, answer.body.code]).toEqual([400, 'invalid_text'])
    }
  })
})

describe('completeness', () => {
  open()

  test('200 and not complete while more is pending than a search scans', async () => {
    const tenant = await service.tenant('Busy')
    const account_id = await service.account(tenant.workspace_id)
    await service.app.db.run(sql`
      insert into account_sync (account_id, workspace_id, phase) values (${account_id}, ${tenant.workspace_id}, 'done')`)
    await store({ account_id, tenant, id: '700' }, ['an ibex on the ridge', ...Array(600).fill('others')])
    const before = await search({ query: 'ibex' }, tenant.key)
    expect([before.match_count, before.completeness.complete]).toEqual([0, false])
    expect((await search({ query: 'others' }, tenant.key)).match_count).toBeGreaterThanOrEqual(500)

    const owner = { account_id, workspace_id: tenant.workspace_id }
    expect(await findPending(service.app.db)).toContainEqual(owner)
    expect(await indexPending(service.app.db, owner)).toBe(601)
    const after = await search({ query: 'ibex' }, tenant.key)
    expect([after.match_count, after.completeness.complete]).toEqual([1, true])
    expect((await search({ query: 'others' }, tenant.key)).match_count).toBe(600)
  })

  test('200 and complete once the history of every account is', async () => {
    const tenant = await service.tenant('Complete')
    const account_id = await service.account(tenant.workspace_id)
    await store({ id: '1', account_id, tenant }, [{ text: 'gannet', at: '2025-01-01T00:00:00.000Z' }])
    expect((await search({ query: 'gannet' }, tenant.key)).completeness.complete).toBe(false)
    await service.app.db.run(sql`
      insert into account_sync (account_id, workspace_id, phase) values (${account_id}, ${tenant.workspace_id}, 'done')`)
    expect((await search({ query: 'gannet' }, tenant.key)).completeness).toEqual({
      complete: true,
      accounts: [
        {
          account_id,
          history_complete: true,
          oldest_at: '2025-01-01T00:00:00.000Z',
          newest_at: '2025-01-01T00:00:00.000Z',
        },
      ],
    })
  })
})

describe('excerpts', () => {
  open()

  const filler = 'lorem ipsum dolor sit amet '.repeat(30)
  const phrases = (word: string) => [[{ word, prefix: false }]]

  test('show a short text whole, as it was written', () => {
    expect(excerptOf('Ça va ?\n Très BIEN', phrases('va'))).toBe('Ça va ?\n Très BIEN')
  })

  test('surround the first match, in whole words, with its accents', () => {
    const excerpt = excerptOf(`${filler}the CRÈME brûlée ${filler}`, phrases('creme'))
    expect(excerpt).toMatch(/^….*the CRÈME brûlée.*…$/)
    expect([...excerpt].length).toBeLessThanOrEqual(excerptMax)
    expect(
      excerpt
        .slice(1, -1)
        .split(' ')
        .every((word) => `${filler} the CRÈME brûlée`.includes(word)),
    ).toBe(true)
    expect(excerpt).toMatch(/^…(lorem|ipsum|dolor|sit|amet) /)
  })

  test('work at the beginning and at the end', () => {
    expect(excerptOf(`needle ${filler}`, phrases('needle'))).toMatch(/^needle .*[a-z]…$/)
    const last = excerptOf(`${filler}needle`, phrases('needle'))
    expect(last).toMatch(/^….* needle$/)
    expect([...last].length).toBeGreaterThan(excerptMax - 20)
  })

  test('are limited in length, never cut a character, for any text', () => {
    const piece = fc.constantFrom('漢字', ' ', 'word ', '👩‍👩‍👧', 'é', 'नमस्ते', 'x', 'ß', '\n')
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 300 }),
        fc.array(piece, { maxLength: 300 }),
        (before, after) => {
          const text = `${before.join('')} needle ${after.join('')}`
          const excerpt = excerptOf(text, phrases('needle'))
          expect([...excerpt].length).toBeLessThanOrEqual(excerptMax)
          expect(excerpt).toContain('needle')
          expect(excerpt.isWellFormed()).toBe(true)
          const shown = excerpt.replaceAll(/^…|…$/g, '')
          expect(text.normalize('NFC').includes(shown) || text === excerpt).toBe(true)
        },
      ),
    )
  })

  test('200 with a context that stays short and on one line per match', async () => {
    const long = `pangolin ${'and some more of it '.repeat(20)}`
    await store(
      { id: '118', name: 'Long\nName' },
      Array.from({ length: 40 }, () => `${long}\n\nnew line`),
    )
    const { context, matches } = await search({ query: 'pangolin', limit: 40 })
    expect(matches).toHaveLength(40)
    expect([...context].length).toBeLessThanOrEqual(contextMax)
    const lines = context.split('\n')
    expect(lines.length).toBeGreaterThan(10)
    expect(lines.every((line) => /^\[2026-.*Z\] Long Name, received: pangolin /.test(line))).toBe(true)
  })
})
