/** The campaign editor's own rules: placeholders, pasted lists, local starts, faults before a request, and previews. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { contactOf } from '../src/capabilities/campaigns/campaign-request.ts'
import { parseTemplate } from '../src/capabilities/campaigns/planning/personalize.ts'
import { laterInstant } from '../src/lib/zones.ts'
import { parseIdentifier } from '../src/platform/identifier.ts'
import {
  bodyOf,
  type CampaignDraft,
  type Circumstances,
  changeBranching,
  changeWho,
  emptyDraft,
  faultsOf,
  missingOf,
} from '../web/src/pages/campaign-editor/campaign-draft.ts'
import { readContacts, withoutLines } from '../web/src/pages/campaign-editor/contact-lines.ts'
import { startOf } from '../web/src/pages/campaign-editor/local-start.ts'
import { findPlaceholders } from '../web/src/pages/campaign-editor/placeholders.ts'

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
  const pieces = [
    '[[',
    ']]',
    '{{',
    '}}',
    'name',
    'NAME ',
    ' username',
    '|',
    'there',
    '[',
    '}',
    ' x',
    '\n',
    '[[name|a b]]',
  ]
  test('are those that the service finds, in texts made of their parts', () => {
    let seed = 7
    const next = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return seed % below
    }
    for (let round = 0; round < 2_000; round++) {
      const text = Array.from({ length: next(9) }, () => pieces[next(pieces.length)]).join('')
      for (const form of ['brackets', 'braces'] as const) {
        const { parts, unknown } = parseTemplate(text, form)
        const found = findPlaceholders(text, form)
        const words = parts.filter((part) => typeof part === 'object')
        expect(
          found.known.map(({ word, fallback }) => ({ word, fallback })),
          text,
        ).toEqual(words)
        expect(found.unknown, text).toBe(unknown)
      }
    }
  })

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
    readContacts(text).faults.map(({ line, sentence }) => `${line}: ${sentence}`)

  test('names each line that is no contact, and guesses nothing', () => {
    const text = [
      '@ines_keller, Ines',
      '',
      'INES_KELLER',
      'p\u0430vel, Pavel',
      '+49 170 1234567;"Keller, Jonas"',
      '0170 1234567',
      'jonas,=HYPERLINK("x")',
      'anna, "Anna',
      'anna, Anna, Berlin',
      't.me/bertha\tBertha',
      'www.example.org',
    ].join('\n')
    expect(sentences(text)).toEqual([
      '2: The line is empty.',
      '3: This is the same contact as in line 1.',
      '4: “p\u0430vel” has the letter \u0430 (U+0430). A username has only a to z.',
      '6: “0170 1234567” is not a username, a link to one, a phone number with its country code, or an id.',
      '7: The name begins with =, as a formula does. It would be sent as it is written.',
      '8: A quotation mark is not closed on this line.',
      '9: The line has 3 columns: an identifier and a name are two.',
      '11: “www.example.org” is not a username, a link to one, a phone number with its country code, or an id.',
    ])
    const { contacts, faults } = readContacts(text)
    expect(contacts).toEqual([
      { identifier: '@ines_keller', name: 'Ines' },
      { identifier: '+49 170 1234567', name: 'Keller, Jonas' },
      { identifier: 't.me/bertha', name: 'Bertha' },
    ])
    expect(readContacts(withoutLines(text, faults))).toEqual({ contacts, faults: [] })
  })

  test('may name its columns in the first line', () => {
    const contacts = [{ identifier: 'ines', name: 'Ines' }]
    expect(readContacts('\ufeffName;Identifier\r\nInes;ines\r\n')).toEqual({ contacts, faults: [] })
    expect(sentences('identifier,phone\nines,1')).toEqual([
      '1: “phone” is not a column. Use identifier and name.',
    ])
  })

  test('has at most 5,000 contacts', () => {
    const { contacts, faults } = readContacts(
      Array.from({ length: 5_001 }, (_, at) => `person_${at}`).join('\n'),
    )
    expect(contacts).toHaveLength(5_000)
    expect(faults).toEqual([{ line: 5_001, sentence: 'A campaign has at most 5,000 contacts.' }])
  })

  test('takes no identifier that the service refuses, and merges the same ones', () => {
    const given = [
      ...['ines', '@Ines', 't.me/ines', 'https://t.me/ines/', 'telegram.me/@ines', '42', '042', '0'],
      ...['+49 (0)170 1234567', '0049 170 1234567', '+4917', '12.5', 'in', 'ines keller', 'ines!', 'a/b'],
      ...['t.me/+491701234567', 't.me/ines/5', '@ines keller', 'ines.t.me', '(030) 123 456 78', '-', '1-2-3'],
    ]
    for (const identifier of given) {
      const read = readContacts(identifier)
      const parsed = parseIdentifier(identifier)
      if (typeof parsed === 'string') expect(read.contacts, identifier).toEqual([])
      for (const other of given) {
        const [one, same] = [parsed, parseIdentifier(other)]
        if (read.contacts.length === 0 || typeof one === 'string' || typeof same === 'string') continue
        if (readContacts(other).contacts.length === 0 || other === identifier) continue
        const count = contactOf(one) === contactOf(same) ? 1 : 2
        expect(readContacts(`${identifier}\n${other}`).contacts, `${identifier} ${other}`).toHaveLength(count)
      }
    }
  })
})

test('a local start is the instant that the service takes', () => {
  const zones = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'UTC']
  const kinds = new Set<string>()
  for (const zone of zones) {
    for (const day of ['2026-03-29', '2026-10-25', '2026-03-08', '2026-11-01', '2026-04-05', '2026-10-04']) {
      for (const clock of ['00:30', '01:30', '01:45', '02:10', '02:30', '03:00', '12:00']) {
        const { at, changed } = laterInstant(new Date(`${day}T${clock}:00Z`), zone)
        const start = startOf(`${day}T${clock}`, zone)
        expect(start?.at, `${day} ${clock} ${zone}`).toEqual(at)
        expect(start?.kind !== 'plain', `${day} ${clock} ${zone}`).toBe(changed)
        kinds.add(start?.kind ?? '')
      }
    }
  }
  expect([...kinds].sort()).toEqual(['plain', 'repeated', 'skipped'])
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
      daily_quota_per_account: 30,
    })
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
      ...(await load('../web/src/pages/campaign-editor/previews.ts')),
      ...(await load('../web/src/api.ts')),
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
