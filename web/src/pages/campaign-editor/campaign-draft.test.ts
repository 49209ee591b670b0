/** The campaign editor's own rules: placeholders, pasted lists, local starts, faults before a request, and previews. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { readContactList, withoutLines } from '../../../../src/rules/contact-table.ts'
import { contactOf, parseIdentifier } from '../../../../src/rules/identifier.ts'
import {
  bodyOf,
  type CampaignDraft,
  type Circumstances,
  changeBranching,
  changeWho,
  emptyDraft,
  faultsOf,
  missingOf,
  startOf,
} from './campaign-draft.ts'

const person = (number: number, name: string) => ({
  ...{ account_id: 'acc_a', chat_id: `platform:chat:${number}`, name, username: null },
  ...{ reason: null, sentence: null },
})
const about: Circumstances = {
  people: [person(1, 'Ines'), person(2, 'Jonas')],
  ...{
    chats: 2,
    contacts: [],
    bad_lines: 0,
    timezone: 'Europe/Berlin',
    now: new Date('2026-03-01T00:00:00Z'),
  },
}
const draftWith = (more: Partial<CampaignDraft>): CampaignDraft => ({
  ...emptyDraft,
  filter: { ...emptyDraft.filter, stage_key: 'new' },
  message_text: 'Hello [[name|there]]',
  ...more,
})

describe('placeholders', () => {
  test('are written in the form of what they are for', () => {
    const written = draftWith({
      message_text: 'Hello [[ Name | you ]] and [[username]]',
      steps: [{ id: 'a', branch: 'no_reply', wait: '2', unit: 'days', variants: ['Again, [[name]]'] }],
    })
    const list = changeWho(written, 'list')
    expect(list.message_text).toBe('Hello {{name| you }} and {{username}}')
    expect(list.steps[0]?.variants).toEqual(['Again, {{name}}'])
    // Contacts have no username: the page says so at the field.
    expect(faultsOf(list, about).get('message_text')).toMatch(/^\{\{username\}\} is not a placeholder here/)
  })
})

describe('a pasted list', () => {
  const sentences = (text: string) =>
    readContactList(text).skipped.map(({ line, reason }) => `${line}: ${reason}`)

  test('names each line that is no contact, and guesses nothing', () => {
    const text = [
      '@ines_keller, Ines',
      '',
      'INES_KELLER',
      'p\u0430vel, Pavel',
      '+49 170 1234567,"Keller, Jonas"',
      '0170 1234567',
      'jonas,=HYPERLINK("x")',
      'anna, Anna, Berlin',
      't.me/bertha,Bertha',
      'www.example.org',
      'dora;Dora',
      '"emil\nemil",Emil',
      '4,91701E+11;Name',
      '4.91701E+11,Name',
      '9223372036854775808',
    ].join('\n')
    expect(sentences(text)).toEqual([
      '3: Duplicate of line 1.',
      '4: "p\u0430vel" has the letter \u0430 (U+0430). A username has only a to z.',
      '6: "0170 1234567" is not a username, a link to one, a phone number with its country code, or a platform id.',
      '7: The name "=HYPERLINK(\\"x\\")" starts with “=”, like a formula. It would be sent exactly like this.',
      '8: This row has 3 columns. Only two are used here: who, and their name.',
      '10: "www.example.org" is not a username, a link to one, a phone number with its country code, or a platform id.',
      '11: "dora;Dora" is not a username: 3 to 32 letters, digits and underscores, a letter first.',
      '12: "emil\\nemil" is not a username: 3 to 32 letters, digits and underscores, a letter first.',
      expect.stringMatching(/^14: "4,91701E\+11" is scientific notation, .* Format the column as text there/),
      expect.stringMatching(/^15: "4.91701E\+11" is scientific notation, /),
      '16: "9223372036854775808" is not a username, a link to one, a phone number with its country code, or a platform id.',
    ])
    const { contacts, skipped } = readContactList(text)
    expect(contacts).toEqual([
      { identifier: '@ines_keller', name: 'Ines' },
      { identifier: '+49 170 1234567', name: 'Keller, Jonas' },
      { identifier: 't.me/bertha', name: 'Bertha' },
    ])
    expect(readContactList(withoutLines(text, skipped))).toMatchObject({ contacts, skipped: [] })
  })

  test('with a quote that is never closed has no contact until that line is gone', () => {
    const text = 'ines,Ines\nanna, "Anna\njonas,Jonas\n'
    expect(sentences(text)).toEqual(['2: The quote that begins on line 2 is never closed.'])
    const { contacts, skipped } = readContactList(text)
    expect(contacts).toEqual([])
    const rest = readContactList(withoutLines(text, skipped))
    expect(rest).toMatchObject({ contacts: [{ name: 'Ines' }, { name: 'Jonas' }], skipped: [] })
  })

  test('may name its columns in the first line, and a line that looks like it is no contact', () => {
    const contacts = [{ identifier: 'ines', name: 'Ines' }]
    expect(readContactList('\ufeffName;Identifier\r\nInes;ines\r\n')).toMatchObject({ contacts, skipped: [] })
    expect(sentences('Name,Telefon\nInes,+49 170 1234567')).toEqual([
      '1: The first line must name the columns: one of identifier, username, phone, platform_id, and optionally name.',
    ])
  })

  test('has at most 5,000 contacts', () => {
    const { contacts, skipped } = readContactList(
      Array.from({ length: 5_001 }, (_, at) => `person_${at}`).join('\n'),
    )
    expect(contacts).toHaveLength(5_000)
    expect(skipped).toEqual([{ line: 5_001, reason: 'A campaign can have at most 5,000 contacts.' }])
  })

  test('takes no identifier that the service refuses, and merges the same ones', () => {
    const given = [
      ...['ines', '@Ines', 't.me/ines', 'https://t.me/ines/', 'telegram.me/@ines', '42', '042', '0'],
      ...['+49 (0)170 1234567', '0049 170 1234567', '+4917', '12.5', 'in', 'ines keller', 'ines!', 'a/b'],
      ...['t.me/+491701234567', 't.me/ines/5', '@ines keller', 'ines.t.me', '(030) 123 456 78', '-', '1-2-3'],
    ]
    for (const identifier of given) {
      const read = readContactList(identifier)
      const parsed = parseIdentifier(identifier)
      if (typeof parsed === 'string') expect(read.contacts, identifier).toEqual([])
      for (const other of given) {
        const [one, same] = [parsed, parseIdentifier(other)]
        if (read.contacts.length === 0 || typeof one === 'string' || typeof same === 'string') continue
        if (readContactList(other).contacts.length === 0 || other === identifier) continue
        const count = contactOf(one) === contactOf(same) ? 1 : 2
        expect(readContactList(`${identifier}\n${other}`).contacts, `${identifier} ${other}`).toHaveLength(
          count,
        )
      }
    }
  })
})

test('a local start is the instant that the service takes', () => {
  const kinds = (local: string) => startOf(local, 'Europe/Berlin')?.kind
  expect(startOf('2026-03-29T02:30', 'Europe/Berlin')?.at).toEqual(new Date('2026-03-29T01:30:00Z'))
  expect(['2026-03-29T02:30', '2026-10-25T02:30', '2026-10-25T12:00'].map(kinds)).toEqual([
    'skipped',
    'repeated',
    'plain',
  ])
  expect(startOf('', 'UTC')).toBeUndefined()
})

describe('a draft', () => {
  test('has its faults at the field, before a request', () => {
    const faults = faultsOf(
      draftWith({
        name: 'x'.repeat(201),
        message_text: `${'a'.repeat(4_092)}[[name]]`,
        steps: [
          { id: 'a', branch: 'no_reply', wait: '0', unit: 'days', variants: ['[[nme]]', 'b'.repeat(4_097)] },
          { id: 'b', branch: 'no_reply', wait: 'two', unit: 'days', variants: ['c'] },
        ],
        quota: '201',
        start_at: '2026-02-01T09:00',
      }),
      about,
    )
    expect(Object.fromEntries(faults)).toEqual({
      name: 'A name has at most 200 characters.',
      message_text: '4,097 characters with the name “Jonas”: a message has at most 4,096.',
      'wait 0': 'Wait at least 5 minutes.',
      'wait 1': 'Write the wait as a number.',
      'text 0 0': '[[nme]] is not a placeholder here. Use [[name]] or [[username]].',
      'text 0 1': '4,097 characters: a message has at most 4,096.',
      quota: 'From 1 to 200 messages.',
      start_at: 'This time has passed.',
    })
    // Left out, Jonas makes the text too long for no one.
    const left_out = ['acc_a platform:chat:2']
    expect(faultsOf(draftWith({ message_text: `${'a'.repeat(4_092)}[[name]]`, left_out }), about).size).toBe(
      0,
    )
  })

  test('becomes the request of the contract, for chats and for contacts', () => {
    const step = { id: 'a', branch: 'no_reply', wait: '1,5', unit: 'days', variants: ['A', 'B'] } as const
    const written = draftWith({
      name: ' Lamps ',
      steps: [step],
      left_out: ['acc_a platform:chat:2'],
      start_at: '2026-03-29T02:30',
    })
    expect(bodyOf(written, about)).toEqual({
      name: 'Lamps',
      message_text: 'Hello [[name|there]]',
      recipients: [{ account_id: 'acc_a', chat_id: 'platform:chat:1' }],
      steps: [{ branch: 'no_reply', wait_hours: 36, variants: ['A', 'B'] }],
      max_followups: 1,
      daily_quota_per_account: 30,
      scheduled_at: '2026-03-29T02:30:00',
      schedule_timezone: 'Europe/Berlin',
    })
    const contacts = [
      { identifier: 'ines', name: 'Ines' },
      { identifier: 'jonas', name: null },
    ]
    const branched = changeBranching(
      changeWho({ ...written, start_at: '', accounts: ['acc_a', 'acc_b'] }, 'list'),
      true,
    )
    expect(bodyOf({ ...branched, left_out: [] }, { ...about, contacts })).toEqual({
      name: 'Lamps',
      message_text: 'Hello {{name|there}}',
      contacts: [{ identifier: 'ines', name: 'Ines' }, { identifier: 'jonas' }],
      account_pool: ['acc_a', 'acc_b'],
      steps: ['seen', 'unseen'].map((branch) => ({ branch, wait_hours: 36, variants: ['A', 'B'] })),
      max_followups: 1,
      branching_enabled: true,
      stop_on_own_message: true,
      daily_quota_per_account: 30,
    })
    // A draft that the browser has kept from before the setting has it on.
    const { stop_on_own_message: _, ...older } = branched
    expect(bodyOf(older, { ...about, contacts })).toMatchObject({ stop_on_own_message: true })
    const off = { ...branched, stop_on_own_message: false }
    expect(bodyOf(off, { ...about, contacts })).toMatchObject({ stop_on_own_message: false })
    expect(bodyOf({ ...off, steps: [] }, { ...about, contacts })).not.toHaveProperty('stop_on_own_message')
  })

  test('writes to no group, whether it is among the chats or all of them', () => {
    const group = { ...person(1, 'Friends of lamps'), chat_id: 'platform:chat:-100' }
    const among = { ...about, people: [person(1, 'Ines'), group] }
    expect(bodyOf(draftWith({}), among)).toMatchObject({
      recipients: [{ account_id: 'acc_a', chat_id: 'platform:chat:1' }],
    })
    expect(missingOf(draftWith({}), { ...about, people: [group] })).toBe('Nobody is left to write to.')
  })

  test('says what is missing, in the order of the page', () => {
    const missing = (more: Partial<CampaignDraft>, differs: Partial<Circumstances> = {}) =>
      missingOf(draftWith(more), { ...about, ...differs })
    expect(missing({})).toBeUndefined()
    expect(missing({ filter: emptyDraft.filter })).toBe('Choose a stage or a column.')
    expect(missing({}, { chats: 101 })).toBe('Choose at most 100 chats.')
    expect(missing({ newest: true }, { chats: 101 })).toBeUndefined()
    expect(missing({}, { people: [] })).toBe('Nobody is left to write to.')
    expect(missing({ message_text: ' ' })).toBe('Write the first message.')
    expect(missing({ who: 'list' }, { bad_lines: 1 })).toBe('Some lines of the list are not contacts.')
  })
})

describe('previews', () => {
  // By a name that the compiler does not follow: the service's own types know no browser.
  const load = (path: string) => import(path)
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  let web: any
  beforeEach(async () => {
    vi.useFakeTimers()
    web = {
      ...(await load('./previews.ts')),
      ...(await load('../../data/api.ts')),
    }
  })
  afterEach(() => void vi.useRealTimers())

  function setUp(count: number) {
    const asked: {
      count: number
      text: string
      answer: (value: unknown) => void
      refuse: (error: unknown) => void
    }[] = []
    // biome-ignore lint/suspicious/noExplicitAny: see above.
    const seen: { state: any } = { state: undefined }
    const previews = new web.Previews(
      (body: { message_text: string; recipients: unknown[] }) =>
        new Promise((answer, refuse) =>
          asked.push({ count: body.recipients.length, text: body.message_text, answer, refuse }),
        ),
      (state: unknown) => {
        seen.state = state
      },
    )
    const want = (text: string) =>
      previews.want({ message_text: text, recipients: Array.from({ length: count }, (_, at) => at) }, text)
    return { asked, seen, want, previews }
  }
  const answer = async (asked: { answer: (value: unknown) => void } | undefined, value: unknown) => {
    asked?.answer(value)
    await vi.advanceTimersByTimeAsync(0)
  }

  test('ask for the first twenty soon and for all after a second of quiet, one request at a time', async () => {
    const { asked, seen, want } = setUp(97)
    want('a')
    expect(asked.map(({ count }) => count)).toEqual([20])
    want('ab')
    await vi.advanceTimersByTimeAsync(5_000)
    expect(asked).toHaveLength(1)
    await answer(asked[0], { of: 'a' })
    expect(seen.state).toMatchObject({ of: 'a', whole: false })
    expect(asked.map(({ text, count }) => [text, count])).toEqual([
      ['a', 20],
      ['ab', 20],
    ])
    want('abc')
    await answer(asked[1], { of: 'ab' })
    await vi.advanceTimersByTimeAsync(500)
    await answer(asked[2], { of: 'abc' })
    expect(asked).toHaveLength(3)
    await vi.advanceTimersByTimeAsync(499)
    expect(asked).toHaveLength(3)
    await vi.advanceTimersByTimeAsync(1)
    expect(asked.at(-1)).toMatchObject({ text: 'abc', count: 97 })
    await answer(asked[3], { of: 'abc, all' })
    expect(seen.state).toMatchObject({ of: 'abc', whole: true, forecast: { of: 'abc, all' }, busy: false })
    await vi.advanceTimersByTimeAsync(60_000)
    expect(asked).toHaveLength(4)
  })

  test('are of a draft only if they are of its very text, with everyone in it', () => {
    const state = { ...web.noPreview, forecast: {}, of: 'ab', whole: true }
    expect(web.isOf(state, 'ab')).toBe(true)
    expect(web.isOf(state, 'abc')).toBe(false)
    expect(web.isOf({ ...state, whole: false }, 'ab')).toBe(false)
    expect(web.isOf({ ...state, error: new Error('refused') }, 'ab')).toBe(false)
  })

  test('wait as long as a 429 says, and ask again when another thing has changed', async () => {
    const { asked, seen, want, previews } = setUp(3)
    want('a')
    const headers = new Headers({ 'retry-after': '7' })
    asked[0]?.refuse(new web.Refused(429, { code: 'rate_limited', error: 'Wait.' }, headers))
    await vi.advanceTimersByTimeAsync(6_999)
    expect(asked).toHaveLength(1)
    expect(seen.state.until).toBeDefined()
    await vi.advanceTimersByTimeAsync(1)
    expect(asked.map(({ count }) => count)).toEqual([3, 3])
    previews.again()
    await answer(asked[1], {})
    // That answer is from before the change.
    expect(seen.state.of).toBeUndefined()
    await vi.advanceTimersByTimeAsync(500)
    expect(asked).toHaveLength(3)
    asked[2]?.refuse(new web.Refused(400, { code: 'branching_disabled', error: 'Closed.' }))
    await vi.advanceTimersByTimeAsync(60_000)
    expect(asked).toHaveLength(3)
    expect(seen.state.error).toMatchObject({ code: 'branching_disabled' })
  })
})
