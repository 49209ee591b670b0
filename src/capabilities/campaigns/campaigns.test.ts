import type { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { sql } from '../../db/sql.ts'
import { addSuppression } from '../suppressions/suppressions.ts'
import { createUser } from '../users/users.ts'
import { readStanding } from './facts.ts'

let service: Service
let own: Tenant
let account_id: string
let serial = 0

beforeAll(async () => {
  service = await openService({
    env: { PARLEY_CAMPAIGN_CREATE_PER_MINUTE: '10000', PARLEY_CAMPAIGN_CANCEL_PER_MINUTE: '10000' },
  })
  await service.open('extended')
  own = await service.tenant('Own')
  await service.allow(own)
  account_id = await service.account(own.workspace_id)
})
afterAll(() => service.close())

const db = () => service.app.db
const nothing = { sent: 0, failed: 0, ambiguous: 0, replies: 0, opted_out: 0 }
const step = { branch: 'no_reply', wait_hours: 24, variants: ['Again'] }

interface ShownCampaign {
  readonly id: string
  readonly status: string
  readonly totals: Readonly<Record<string, number>>
  readonly recipients: readonly Record<string, unknown>[]
}

/** A chat with a new person. */
function chat(given: { name?: string; texts?: readonly string[]; account?: string; id?: `${number}` } = {}) {
  const id = given.id ?? (`${1_000 + serial++}` as const)
  return service.chat({
    account_id: given.account ?? account_id,
    workspace_id: own.workspace_id,
    id,
    ...(given.name !== undefined && { name: given.name }),
    ...(given.texts && { texts: given.texts }),
  })
}

function create(
  body: object,
  { key = own.key, idempotency }: { key?: string; idempotency?: string | null } = {},
) {
  const header = idempotency === null ? {} : { 'idempotency-key': idempotency ?? `create-${serial++}` }
  return service.post('/campaigns', { key, headers: header, body: { message_text: 'Hello', ...body } })
}

async function scoped(body: object = {}): Promise<ShownCampaign> {
  const answer = await create({ recipients: [{ account_id, chat_id: await chat() }], ...body })
  expect(answer.status, answer.body.error).toBe(201)
  return answer.body.campaign as ShownCampaign
}

async function contacts(identifiers: readonly string[], body: object = {}): Promise<Answer> {
  return create({ account_id, contacts: identifiers.map((identifier) => ({ identifier })), ...body })
}

async function detail(id: string, query = ''): Promise<ShownCampaign & Record<string, unknown>> {
  const answer = await service.get(`/campaigns/${id}${query}`, { key: own.key })
  expect(answer.status, answer.body.error).toBe(200)
  return answer.body.campaign as ShownCampaign & Record<string, unknown>
}

function control(id: string, verb: string, key = own.key, idempotency = `control-${serial++}`) {
  return service.post(`/campaigns/${id}/${verb}`, { key, headers: { 'idempotency-key': idempotency } })
}

const code = ({ status, body }: Answer) => [status, body.code]
async function campaignCount(): Promise<number> {
  const { count } = await db().one<{ count: number }>(sql`select count(*)::int as count from campaigns`)
  return count
}

describe('POST /campaigns', () => {
  test('201 with a queue of recipients; duplicates collapse, names come from the platform', async () => {
    const [one, other] = [await chat({ name: 'Ada' }), await chat({ name: 'Bo' })]
    const recipients = [one, other, one].map((chat_id) => ({ account_id, chat_id }))
    const answer = await create({ name: 'Autumn', recipients, message_text: 'Hi [[name]]', steps: [step] })
    expect(answer.status).toBe(201)
    expect(answer.body).toMatchObject({
      queued: true,
      warnings: [],
      campaign: { name: 'Autumn', status: 'queued', kind: 'scoped', max_followups: 2, totals: { queued: 2 } },
    })
    const shown = await detail((answer.body.campaign as ShownCampaign).id)
    expect(shown.recipients).toMatchObject([
      { account_id, chat_id: one, name: 'Ada', status: 'queued', step: 0, timeline: [] },
      { account_id, chat_id: other, name: 'Bo' },
    ])
    expect(shown).toMatchObject({
      steps: [step],
      operations: [],
      reporting: [
        { step: 0, branch: null, variant: 0, ...nothing },
        { step: 1, branch: 'no_reply', variant: 0, ...nothing },
      ],
      can: { create: true, cancel: true, pause: true, resume: false },
    })
  })

  test('201: reports have the texts of every track, up to the last follow-up that a recipient can get', async () => {
    const three = ['One', 'Two', 'Three']
    const texts = async (body: object) => {
      const { id } = await scoped(body)
      const { reporting } = await detail(id)
      return (reporting as Record<string, unknown>[]).map(({ step, branch, variant }) => [
        step,
        branch,
        variant,
      ])
    }
    const steps = three.map((text) => ({ ...step, variants: [text, `${text}!`] }))
    const tracks = ['seen', 'unseen', 'seen'].map((branch) => ({ ...step, branch }))
    expect(await texts({ steps })).toEqual([
      [0, null, 0],
      ...[1, 2].flatMap((at) => [0, 1].map((variant) => [at, 'no_reply', variant])),
    ])
    expect(await texts({ steps: tracks, branching_enabled: true })).toEqual([
      [0, null, 0],
      [1, 'seen', 0],
      [1, 'unseen', 0],
      [2, 'seen', 0],
    ])
  })

  test('200 for the same request, 409 for another under the same key, and one campaign', async () => {
    const body = { recipients: [{ account_id, chat_id: await chat() }] }
    const first = await create(body, { idempotency: 'same' })
    const before = await campaignCount()
    const again = await create(body, { idempotency: 'same' })
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true'])
    expect(again.body).toEqual(first.body)
    expect(code(await create({ ...body, name: 'Other' }, { idempotency: 'same' }))).toEqual([
      409,
      'idempotency_collision',
    ])
    expect(await campaignCount()).toBe(before)
  })

  test('200 for a replay although account, chat and start are gone by then', async () => {
    const busy = await service.account(own.workspace_id)
    const chat_id = await chat({ account: busy })
    const body = { recipients: [{ account_id: busy, chat_id }], scheduled_at: '2999-01-01T00:00:00Z' }
    expect(code(await create(body, { idempotency: 'gone' }))).toEqual([400, 'invalid_request'])
    const soon = { ...body, scheduled_at: new Date(Date.now() + 60_000).toISOString() }
    expect((await create(soon, { idempotency: 'gone' })).status).toBe(201)
    await db().run(sql`update accounts set status = 'DISABLED' where id = ${busy}`)
    await db().run(sql`delete from chats where account_id = ${busy}`)
    await service.settle()
    expect((await create(soon, { idempotency: 'gone' })).status).toBe(200)
    expect(code(await create(soon))).toEqual([409, 'account_not_ready'])
  })

  test('400 for every invalid field, and nothing is written', async () => {
    const chat_id = await chat()
    const recipients = [{ account_id, chat_id }]
    const before = await campaignCount()
    const bad: Record<string, object> = {
      'no recipients': {},
      'an empty list': { recipients: [] },
      'too many': { recipients: Array.from({ length: 101 }, () => recipients[0]) },
      'both kinds': { recipients, contacts: [{ identifier: '@ada' }], account_id },
      'an account beside recipients': { recipients, account_id },
      'a pool beside recipients': { recipients, account_pool: [account_id] },
      'contacts without an account': { contacts: [{ identifier: '@ada' }] },
      'contacts with both': { contacts: [{ identifier: '@ada' }], account_id, account_pool: [account_id] },
      'an empty pool': { contacts: [{ identifier: '@ada' }], account_pool: [] },
      'a large pool': { contacts: [{ identifier: '@ada' }], account_pool: Array(101).fill(account_id) },
      'too many contacts': { account_id, contacts: Array(5_001).fill({ identifier: '@ada' }) },
      'a negative chat': { recipients: [{ account_id, chat_id: 'platform:chat:-5' }] },
      'a blank text': { recipients, message_text: '  ' },
      'a long text': { recipients, message_text: 'x'.repeat(4_097) },
      'a long name': { recipients, name: 'x'.repeat(201) },
      'a short wait': { recipients, steps: [{ ...step, wait_hours: 0.08 }] },
      'a long wait': { recipients, steps: [{ ...step, wait_hours: 87_601 }] },
      'no variants': { recipients, steps: [{ ...step, variants: [] }] },
      'six variants': { recipients, steps: [{ ...step, variants: Array(6).fill('x') }] },
      'a branch without branching': { recipients, steps: [{ ...step, branch: 'seen' }] },
      'no branch with branching': { recipients, steps: [step], branching_enabled: true },
      'a sixth step': { recipients, steps: Array(6).fill(step) },
      'a sixth step of a track': {
        recipients,
        branching_enabled: true,
        steps: Array(6).fill({ ...step, branch: 'seen' }),
      },
      'no quota': { recipients, daily_quota_per_account: 0 },
      'a large quota': { recipients, daily_quota_per_account: 201 },
      'many follow-ups': { recipients, max_followups: 6 },
      'an unknown zone': { recipients, schedule_timezone: 'Mars/Olympus' },
      'a date': { recipients, scheduled_at: '2027-01-01' },
      'the past': { recipients, scheduled_at: '2020-01-01T00:00:00Z' },
      'over a year ahead': {
        recipients,
        scheduled_at: new Date(Date.now() + 367 * 86_400_000).toISOString(),
      },
      'an unknown field': { recipients, attachments: [] },
    }
    for (const [what, body] of Object.entries(bad)) {
      expect([what, ...code(await create(body))]).toEqual([what, 400, 'invalid_request'])
    }
    expect(await campaignCount()).toBe(before)
  })

  test('400 branching_disabled unless both of its gates are open', async () => {
    const body = {
      recipients: [{ account_id, chat_id: await chat() }],
      branching_enabled: true,
      steps: [
        { ...step, branch: 'seen' },
        { ...step, branch: 'unseen' },
      ],
    }
    for (const gate of ['branching', 'read_receipts'] as const) {
      await service.shut(gate)
      expect(code(await create(body))).toEqual([400, 'branching_disabled'])
      await service.open(gate)
    }
    expect((await create(body)).status).toBe(201)
  })

  test('400 for contacts while extended is closed, before the scope', async () => {
    const { key } = await service.key({ ...own, scopes: ['campaigns'] })
    await service.shut('extended')
    const body = { account_id, contacts: [{ identifier: '@ada' }] }
    expect(code(await create(body, { key }))).toEqual([400, 'invalid_request'])
    await service.open('extended')
    expect(code(await create(body, { key }))).toEqual([403, 'missing_scope'])
  })

  test('403 for a foreign account, 409 for one that is not READY, 404 for a chat it does not have', async () => {
    const other = await service.tenant('Other')
    const foreign = await service.account(other.workspace_id)
    const asleep = await service.account(own.workspace_id, 'NEEDS_LOGIN')
    const chat_id = await chat()
    const refusals = {
      account_unavailable: foreign,
      account_not_ready: asleep,
      chat_not_found: await service.account(own.workspace_id),
    }
    const before = await campaignCount()
    for (const [wanted, id] of Object.entries(refusals)) {
      const answer = await create({ recipients: [{ account_id: id, chat_id }] })
      expect(answer.body.code).toBe(wanted)
      expect(answer.body.error).toContain(wanted === 'chat_not_found' ? chat_id : id)
    }
    for (const [status, id] of [
      [403, foreign],
      [409, asleep],
    ] as const) {
      expect(
        (await contacts(['@ada'], { account_id: undefined, account_pool: [account_id, id] })).status,
      ).toBe(status)
    }
    // A foreign account is refused before one that is not READY.
    const both = [asleep, foreign].map((id) => ({ account_id: id, chat_id }))
    expect(code(await create({ recipients: both }))).toEqual([403, 'account_unavailable'])
    expect(await campaignCount()).toBe(before)
  })

  test('400 for a chat that is not with a person', async () => {
    const chat_id = await chat()
    const number = chat_id.slice('platform:chat:'.length)
    await db().run(sql`
      update chats set participants = jsonb_build_array(jsonb_build_object('id', ${number}::text, 'kind', 'bot'))
      where account_id = ${account_id} and chat_id = ${number}`)
    expect(code(await create({ recipients: [{ account_id, chat_id }] }))).toEqual([400, 'invalid_request'])
    const self = await chat()
    await db().run(sql`
      update accounts set platform_user_id = ${self.slice('platform:chat:'.length)} where id = ${account_id}`)
    expect(code(await create({ recipients: [{ account_id, chat_id: self }] }))).toEqual([
      400,
      'invalid_request',
    ])
    await db().run(sql`update accounts set platform_user_id = null where id = ${account_id}`)
  })

  test('400 for the whole request when one recipient is suppressed, by id, username or phone', async () => {
    const chats = [await chat(), await chat(), await chat(), await chat()]
    const [id = '', name = '', phone = ''] = chats.map((one) => one.slice('platform:chat:'.length))
    await db().run(sql`update contacts set phone = '+49 (0)170 555-01 01' where provider_id = ${phone}`)
    const given = [{ platform_id: id }, { username: `person_${name}` }, { phone: '+491705550101' }]
    for (const [at, identity] of given.entries()) {
      await addSuppression(service.app, 'system', { workspace_id: own.workspace_id, ...identity })
      const recipients = [chats[3], chats[at]].map((chat_id) => ({ account_id, chat_id }))
      const answer = await create({ recipients })
      expect(code(answer)).toEqual([400, 'suppressed_recipient'])
      expect(answer.body.error).toContain(chats[at])
      expect(answer.body.error).not.toContain(chats[3])
    }
    expect(code(await contacts(['@bo_ok', `@Person_${name}`]))).toEqual([400, 'suppressed_recipient'])
    for (const written of ['+49 170 555 01 01', '+49 (0) 170-555-0101', '0049 170.555.0101']) {
      expect(code(await contacts([written])), written).toEqual([400, 'suppressed_recipient'])
    }
  })

  test('400 also when the store knows that a contact is on the list under another name', async () => {
    const ids = [await chat(), await chat(), await chat()].map((one) => one.slice('platform:chat:'.length))
    const [byId = '', byName = '', byPhone = ''] = ids
    const phones = ['+491705550211', '+491705550212', '+491705550213']
    for (const [at, id] of ids.entries()) {
      await db().run(sql`update contacts set phone = ${phones[at] ?? null} where provider_id = ${id}`)
    }
    for (const identity of [{ platform_id: byId }, { username: `person_${byName}` }, { phone: phones[2] }]) {
      await addSuppression(service.app, 'system', { workspace_id: own.workspace_id, ...identity })
    }
    const others = [`@Person_${byId}`, phones[0], byName, phones[1], byPhone, `@person_${byPhone}`].map(
      String,
    )
    for (const identifier of others) {
      expect(code(await contacts(['@bo_ok', identifier])), identifier).toEqual([400, 'suppressed_recipient'])
    }
    const asked = {
      message_text: 'Hello',
      account_id,
      contacts: others.map((identifier) => ({ identifier })),
    }
    const { status, body } = await service.post('/campaigns/preview', { key: own.key, body: asked })
    expect([status, body.creatable, (body.excluded as object[]).length]).toEqual([200, false, others.length])
    // Larger than any number of the platform.
    expect(code(await contacts(['9999999999999999999']))).toEqual([400, 'unsupported_identifier'])
    // A person of that name on another platform is another person.
    for (const table of [sql`people`, sql`person_names`]) {
      await db().run(sql`update ${table} set platform = 'telegram' where workspace_id = ${own.workspace_id}`)
    }
    expect((await contacts([`@person_${byId}`])).status).toBe(201)
    for (const table of [sql`people`, sql`person_names`]) {
      await db().run(sql`update ${table} set platform = 'sandbox' where workspace_id = ${own.workspace_id}`)
    }
  })

  test('503 while the suppression list cannot be read', async () => {
    const recipients = [{ account_id, chat_id: await chat() }]
    await db().run(sql`alter table suppressions rename to suppressions_away`)
    try {
      expect(code(await create({ recipients }))).toEqual([503, 'suppression_unavailable'])
    } finally {
      await db().run(sql`alter table suppressions_away rename to suppressions`)
    }
  })

  test('400 unresolved_personalization for a missing name, an unknown word, or the other form', async () => {
    const named = { account_id, chat_id: await chat({ name: 'Ada' }) }
    const nameless = { account_id, chat_id: await chat({ name: '' }) }
    const unresolved = [400, 'unresolved_personalization']
    expect(code(await create({ recipients: [named, nameless], message_text: 'Hi [[name]]' }))).toEqual(
      unresolved,
    )
    expect(code(await create({ recipients: [named], message_text: 'Hi {{name}}' }))).toEqual(unresolved)
    expect(code(await create({ recipients: [named], message_text: 'Hi [[company]]' }))).toEqual(unresolved)
    const late = { ...step, variants: ['fine', 'Hi [[company]]'] }
    expect(code(await create({ recipients: [named], steps: [late] }))).toEqual(unresolved)
    expect(code(await contacts(['@ada'], { message_text: 'Hi {{username}}' }))).toEqual(unresolved)
    // Also in a step that no recipient gets.
    expect(code(await create({ recipients: [named], steps: [step, step, late] }))).toEqual(unresolved)
    const cut = [step, step, { ...step, variants: ['Hi [[name]]'] }]
    expect((await create({ recipients: [nameless], steps: cut })).status).toBe(201)
    const fallback = { recipients: [named, nameless], message_text: 'Hi [[name|there]]' }
    expect((await create(fallback)).status).toBe(201)
    const long = { recipients: [named], message_text: `${'x'.repeat(4_088)}[[name]]` }
    expect((await create(long)).status).toBe(201)
    const grown = { account_id, chat_id: await chat({ name: 'Adalbertine' }) }
    const answer = await create({ ...long, recipients: [named, grown] })
    expect(code(answer)).toEqual([400, 'invalid_request'])
    expect(answer.body.error).toContain(grown.chat_id)
  })

  test("400 for any other word in the campaign's brackets, and for the other form in any spelling", async () => {
    const unresolved = [400, 'unresolved_personalization']
    const ada = { account_id, chat_id: await chat({ name: 'Ada' }) }
    for (const inside of ['first name', 'name1', 'name|a[b', '']) {
      const [brackets, braces] = [`Hi [[${inside}]]`, `Hi {{${inside}}}`]
      expect(code(await create({ recipients: [ada], message_text: brackets })), brackets).toEqual(unresolved)
      expect(code(await contacts(['@ada_l'], { message_text: braces })), braces).toEqual(unresolved)
    }
    for (const inside of [' Name ', 'NAME|x', 'username']) {
      const [brackets, braces] = [`Hi [[${inside}]]`, `Hi {{${inside}}}`]
      expect(code(await create({ recipients: [ada], message_text: braces })), braces).toEqual(unresolved)
      expect(code(await contacts(['@ada_l'], { message_text: brackets })), brackets).toEqual(unresolved)
    }
    const answer = await create({ recipients: [ada], message_text: 'Hi [[first name]]' })
    expect(answer.body.error).toContain(
      '"[[first name]]" is not a placeholder here. Use [[name]] or [[username]];',
    )
    expect((await create({ recipients: [ada], message_text: 'Hi [[ Name ]]' })).status).toBe(201)
  })

  test('201 for contacts without a key: identifiers in one form, names given first', async () => {
    const chat_id = await chat({ name: 'Ada Platform' })
    const answer = await create(
      {
        account_pool: [account_id, account_id],
        message_text: 'Hi {{name|there}}',
        contacts: [
          { identifier: '@Ada_L', name: 'Ada', chat_id },
          { identifier: 'https://t.me/ada_l' },
          { identifier: '+49 170 1234567' },
          { identifier: '0049 (0)170 1234567' },
          { identifier: '77' },
        ],
        steps: [step, step, step],
      },
      { idempotency: null },
    )
    expect(answer.status, answer.body.error).toBe(201)
    const campaign = answer.body.campaign as ShownCampaign
    expect(campaign).toMatchObject({ kind: 'contacts', max_followups: 3, totals: { queued: 3 } })
    expect(answer.body.warnings).toEqual([])
    expect((await detail(campaign.id)).recipients).toMatchObject([
      { identifier: '@Ada_L', name: 'Ada', account_id, chat_id },
      { identifier: '+49 170 1234567', account_id: null, chat_id: null, name: null },
      { identifier: '77', account_id: null },
    ])
    const rows = await db().rows<{ contact: string }>(sql`
      select contact from campaign_recipients where campaign_id = ${campaign.id} order by position`)
    expect(rows.map(({ contact }) => contact)).toEqual([
      'username:ada_l',
      'phone:491701234567',
      'platform_id:77',
    ])
  })

  test('400 for an identifier of no person, 404 for a chat that no account of the pool has', async () => {
    expect(code(await contacts(['@ok_name', '@no']))).toEqual([400, 'invalid_username'])
    expect(code(await contacts(['@ok_name', 'https://example.com/ada']))).toEqual([
      400,
      'unsupported_identifier',
    ])
    const lost = [{ identifier: '@ok_name', chat_id: 'platform:chat:999999' }]
    expect(code(await create({ account_id, contacts: lost }))).toEqual([404, 'chat_not_found'])
  })

  test('a schedule uses the later of two instants and warns about it; the status is scheduled', async () => {
    const year = new Date().getUTCFullYear()
    const recipients = [{ account_id, chat_id: await chat() }]
    // The last Sunday of October, when clocks in Berlin show 02:30 twice; of this year or the next.
    const sunday = (of: number) => {
      const day = new Date(Date.UTC(of, 9, 31))
      day.setUTCDate(31 - day.getUTCDay())
      return day
    }
    const day = sunday(year) > new Date() ? sunday(year) : sunday(year + 1)
    const local = `${day.toISOString().slice(0, 10)}T02:30:00`
    const answer = await create({ recipients, scheduled_at: local, schedule_timezone: 'Europe/Berlin' })
    expect(answer.body, answer.body.error).toMatchObject({
      warnings: ['scheduled_at_adjusted'],
      campaign: { status: 'scheduled', scheduled_at: `${day.toISOString().slice(0, 10)}T01:30:00.000Z` },
    })
    const shown = await detail((answer.body.campaign as ShownCampaign).id)
    expect(shown.recipients[0]).toMatchObject({ blocked_by: 'scheduled', next_action_at: shown.scheduled_at })
  })

  test('a schedule with an offset is that instant, whatever the zone', async () => {
    const recipients = [{ account_id, chat_id: await chat() }]
    const day = new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, 10)
    for (const offset of ['+01:00', ' 01:00']) {
      const scheduled_at = `${day}T09:00:00${offset}`
      const answer = await create({ recipients, scheduled_at, schedule_timezone: 'America/New_York' })
      expect(answer.body.campaign, offset).toMatchObject({ scheduled_at: `${day}T08:00:00.000Z` })
    }
  })

  test('warns about a sequence that is cut, and about a person who is in another campaign', async () => {
    const chat_id = await chat()
    const recipients = [{ account_id, chat_id }]
    const cut = await create({ recipients, steps: [step, step, step] })
    expect(cut.body.warnings).toEqual(['steps_truncated'])
    expect((await create({ recipients })).body.warnings).toEqual(['already_in_campaign'])
    await control((cut.body.campaign as ShownCampaign).id, 'cancel')
  })

  test('429 above the limit per minute, not counting replays', async () => {
    const limited = await openService({ env: { PARLEY_CAMPAIGN_CREATE_PER_MINUTE: '2' } })
    try {
      const tenant = await limited.tenant()
      await limited.allow(tenant)
      const id = await limited.account(tenant.workspace_id)
      const chat_id = await limited.chat({ account_id: id, workspace_id: tenant.workspace_id })
      const body = { message_text: 'Hello', recipients: [{ account_id: id, chat_id }] }
      const ask = (key: string, more: object = {}) =>
        limited.post('/campaigns', {
          key: tenant.key,
          body: { ...body, ...more },
          headers: { 'idempotency-key': key },
        })
      const nowhere = { recipients: [{ account_id: id, chat_id: 'platform:chat:987654' }] }
      const foreign = { recipients: [{ account_id: 'acc_00000000000000000000', chat_id }] }
      // A missing chat is refused before the limit, and does not count.
      const tellAll = async () => {
        for (const at of ['1', '2', '3']) {
          expect(code(await ask(`nowhere-${at}`, nowhere))).toEqual([404, 'chat_not_found'])
        }
        expect(code(await ask('foreign', foreign))).toEqual([403, 'account_unavailable'])
        expect(code(await ask('late', { scheduled_at: '2001-01-01T00:00:00Z' }))).toEqual([
          400,
          'invalid_request',
        ])
      }
      await tellAll()
      expect([(await ask('a')).status, (await ask('a')).status, (await ask('a')).status]).toEqual([
        201, 200, 200,
      ])
      expect((await ask('b')).status).toBe(201)
      const refused = await ask('c')
      expect(code(refused)).toEqual([429, 'rate_limited'])
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      expect((await ask('b')).status).toBe(200)
      await tellAll()
    } finally {
      await limited.close()
    }
  })

  test('429 counts repeats at the same time as one', async () => {
    const limited = await openService({ env: { PARLEY_CAMPAIGN_CREATE_PER_MINUTE: '2' } })
    try {
      const tenant = await limited.tenant()
      await limited.allow(tenant)
      const id = await limited.account(tenant.workspace_id)
      const chat_id = await limited.chat({ account_id: id, workspace_id: tenant.workspace_id })
      const ask = (key: string) =>
        limited.post('/campaigns', {
          key: tenant.key,
          body: { message_text: 'Hello', recipients: [{ account_id: id, chat_id }] },
          headers: { 'idempotency-key': key },
        })
      const answers = await Promise.all(Array.from({ length: 60 }, () => ask('a')))
      const created = answers.filter(({ status }) => status === 201)
      expect(created).toHaveLength(1)
      for (const answer of answers) {
        if (answer.status === 409) expect(answer.body.code).toBe('operation_in_progress')
        else expect(answer.body.campaign).toEqual(created[0]?.body.campaign)
      }
      expect((await ask('b')).status).toBe(201)
      expect(code(await ask('c'))).toEqual([429, 'rate_limited'])
    } finally {
      await limited.close()
    }
  })

  test('the same key makes the same recipients, another key makes others', async () => {
    const recipients = [{ account_id, chat_id: await chat() }]
    const idOf = async (key: string) => {
      const answer = await create({ recipients }, { idempotency: key })
      const { id } = answer.body.campaign as ShownCampaign
      return (await detail(id)).recipients[0]?.id
    }
    const first = await idOf('derived')
    // A restore that lost the creation: its rows are gone, and so is the key.
    await db().run(sql`delete from campaign_recipients where id = ${first}`)
    await db().run(sql`alter table operations disable trigger operations_guard`)
    await db().run(sql`delete from operations where idempotency_key = 'derived'`)
    await db().run(sql`alter table operations enable trigger operations_guard`)
    expect(await idOf('derived')).toBe(first)
    expect(await idOf('derived-2')).not.toBe(first)
  })

  test('201 for 5,000 contacts in one request', async () => {
    const many = Array.from({ length: 5_000 }, (_, at) => `@contact_${at}`)
    const answer = await contacts(many, { message_text: 'Hi {{name|there}}' })
    expect(answer.status).toBe(201)
    const { id } = answer.body.campaign as ShownCampaign
    const page = await service.get(`/campaigns/${id}`, { key: own.key })
    expect((page.body.campaign as ShownCampaign).recipients).toHaveLength(1_000)
    expect(page.body.has_more).toBe(true)
    const seen = new Set<unknown>()
    let cursor: unknown = null
    do {
      const query = cursor === null ? '?limit=900' : `?limit=900&cursor=${String(cursor)}`
      const next = await service.get(`/campaigns/${id}${query}`, { key: own.key })
      for (const one of (next.body.campaign as ShownCampaign).recipients) seen.add(one.identifier)
      cursor = next.body.next_cursor
    } while (cursor !== null)
    expect(seen.size).toBe(5_000)
    await control(id, 'cancel')
    expect((await detail(id)).totals).toMatchObject({ cancelled: 5_000, queued: 0 })
  })
})

describe('GET /campaigns', () => {
  test('200 newest first, of the whole workspace, page by page, without legacy campaigns and broadcasts', async () => {
    const tenant = await service.tenant('Pages')
    await service.allow(tenant)
    const id = await service.account(tenant.workspace_id)
    const chat_id = await service.chat({ account_id: id, workspace_id: tenant.workspace_id })
    const made: string[] = []
    for (let n = 0; n < 5; n++) {
      const answer = await create({ recipients: [{ account_id: id, chat_id }] }, { key: tenant.key })
      made.unshift((answer.body.campaign as ShownCampaign).id)
    }
    for (const [kind, quota] of [
      ['legacy', 30],
      ['broadcast', null],
    ] as const) {
      await db().run(sql`
        insert into campaigns (id, workspace_id, user_id, kind, status, message_text, daily_quota_per_account,
          audience_total)
        values (gen_random_uuid(), ${tenant.workspace_id}, ${tenant.user_id}, ${kind}, 'queued', 'x', ${quota},
          ${quota === null ? 0 : null})`)
    }
    const ids: string[] = []
    let cursor: unknown = null
    do {
      const query = cursor === null ? '?limit=2' : `?limit=2&cursor=${String(cursor)}`
      const page = await service.get(`/campaigns${query}`, { key: tenant.key })
      expect(page.status).toBe(200)
      expect(page.body.coverage).toMatchObject({ scope: 'internal', legacy_excluded: true })
      ids.push(...(page.body.campaigns as ShownCampaign[]).map((one) => one.id))
      cursor = page.body.next_cursor
    } while (cursor !== null)
    expect(ids).toEqual(made)
    const first = await service.get('/campaigns?limit=2', { key: tenant.key })
    const stolen = await service.get(`/campaigns?cursor=${String(first.body.next_cursor)}`, { key: own.key })
    expect(code(stolen)).toEqual([400, 'invalid_cursor'])
  })
})

describe('GET /campaigns/{campaign_id}', () => {
  test('404 for a malformed, unknown, legacy or foreign id', async () => {
    const { id } = await scoped()
    const other = await service.tenant('Stranger')
    await service.allow(other)
    for (const path of ['nothing', '0199a1f0-0000-7000-8000-00000000ffff']) {
      expect(code(await service.get(`/campaigns/${path}`, { key: own.key }))).toEqual([
        404,
        'campaign_not_found',
      ])
    }
    expect(code(await service.get(`/campaigns/${id}`, { key: other.key }))).toEqual([
      404,
      'campaign_not_found',
    ])
    await db().run(sql`update campaigns set kind = 'legacy' where id = ${id}`)
    expect(code(await service.get(`/campaigns/${id}`, { key: own.key }))).toEqual([404, 'campaign_not_found'])
    for (const verb of ['pause', 'resume', 'cancel']) {
      expect(code(await control(id, verb))).toEqual([404, 'campaign_not_found'])
    }
  })

  test('200: every recipient says why it has not moved', async () => {
    const writer = await colleague()
    // Other tests count what waits on the account of all.
    const account = await service.account(own.workspace_id)
    const made = await create(
      { recipients: [{ account_id: account, chat_id: await chat({ account }) }], steps: [step] },
      { key: writer.key },
    )
    const { id } = made.body.campaign as ShownCampaign
    const blocked = async () => (await detail(id)).recipients[0]
    // No worker drives the account here.
    expect(await blocked()).toMatchObject({ blocked_by: 'account_not_ready', next_action_at: null })
    await db().run(sql`
      insert into account_hosts (account_id, workspace_id, observed_at, next_campaign_at)
      values (${account}, ${own.workspace_id}, clock_timestamp(), domain_now() + interval '1 hour')
      on conflict (account_id) do update set observed_at = excluded.observed_at,
        next_campaign_at = excluded.next_campaign_at`)
    expect(await blocked()).toMatchObject({ blocked_by: 'pacing', next_action_at: expect.any(String) })
    await db().run(sql`update account_hosts set next_campaign_at = null where account_id = ${account}`)
    expect(await blocked()).toMatchObject({ blocked_by: null, next_action_at: expect.any(String) })
    await control(id, 'pause', writer.key)
    expect(await blocked()).toMatchObject({ blocked_by: 'paused', next_action_at: null })
    await control(id, 'resume', writer.key)
    await db().run(sql`
      update users set disabled_at = now() where id = (select user_id from campaigns where id = ${id})`)
    expect(await blocked()).toMatchObject({ blocked_by: 'gate', next_action_at: null })
  })

  test('200: events and counts, by step and variant and for each recipient, without texts', async () => {
    const { id } = await scoped({ steps: [step] })
    const recipient = (await detail(id)).recipients[0] as { id: string; chat_id: string }
    const operation_id = '0199a1f0-0000-7000-8000-0000000000f1'
    await db().run(sql`
      insert into operations (id, workspace_id, kind, effect, fingerprint, state, reply_status, reply_body, account_id,
        chat_id, payload, campaign_id, recipient_id, step_no, quota_day, crossed_at, finished_at)
      values (${operation_id}, ${own.workspace_id}, 'campaign_message', 'platform', ${Buffer.alloc(32)}, 'completed', 200,
        '{"message_id": "900"}', ${account_id}, ${recipient.chat_id.slice('platform:chat:'.length)},
        '{"text": "secret text", "branch": null, "variant": 0}', ${id}, ${recipient.id}, 0, '2026-01-01',
        '2026-01-01T10:00Z', '2026-01-01T10:00Z')`)
    await db().run(sql`
      update campaign_recipients set status = 'waiting', step = 1, variant = 0, last_message_id = 900,
        last_sent_at = '2026-01-01T10:00Z', next_action_at = '2026-01-02T10:00Z', reads = '{2026-01-01T11:00Z}'
      where id = ${recipient.id}`)
    await db().run(sql`
      update campaign_recipients set status = 'replied', replied_at = '2026-01-01T12:00Z', reply_message_id = 901,
        reply_step = 0, reply_variant = 0, opted_out = true, ended_at = '2026-01-01T12:00Z', next_action_at = null
      where id = ${recipient.id}`)
    const shown = await detail(id)
    expect(shown.totals).toMatchObject({ replied: 1, queued: 0, waiting: 0 })
    expect(shown.reporting).toEqual([
      { step: 0, branch: null, variant: 0, sent: 1, failed: 0, ambiguous: 0, replies: 1, opted_out: 1 },
      { step: 1, branch: 'no_reply', variant: 0, ...nothing },
    ])
    const of = { step: 0, variant: 0, operation_id }
    expect(shown.recipients[0]).toMatchObject({
      status: 'replied',
      blocked_by: null,
      next_action_at: null,
      timeline: [
        { type: 'message', at: '2026-01-01T10:00:00.000Z', message_id: '900', ...of },
        { type: 'read', at: '2026-01-01T11:00:00.000Z', message_id: '900', ...of },
        { type: 'reply', at: '2026-01-01T12:00:00.000Z', message_id: '901', ...of },
      ],
    })
    expect(shown.operations).toMatchObject([
      { id: operation_id, recipient_id: recipient.id, state: 'completed' },
    ])
    expect(JSON.stringify(shown)).not.toContain('secret text')
    await service.shut('read_receipts')
    const [one] = (await detail(id)).recipients
    expect(one?.timeline).toMatchObject([{ type: 'message' }, { type: 'reply' }])
    await service.open('read_receipts')
  })
})

/** Another user of the same workspace, who may also manage campaigns. */
async function colleague() {
  const email = `colleague-${serial++}@acme.example`
  const user = await createUser(service.app, 'system', { email, workspace_id: own.workspace_id })
  await service.allow({ workspace_id: own.workspace_id, user_id: user.id })
  return service.key({ workspace_id: own.workspace_id, user_id: user.id })
}

describe('POST /campaigns/{campaign_id}/pause, resume and cancel', () => {
  test('200 from status to status, and whether it changed', async () => {
    const { id } = await scoped({ steps: [step] })
    const resultOf = async (verb: string) => {
      const { status, body } = await control(id, verb)
      return [status, (body.campaign as ShownCampaign | undefined)?.status ?? body.code, body.changed]
    }
    expect(await resultOf('resume')).toEqual([409, 'campaign_not_paused', undefined])
    expect(await resultOf('pause')).toEqual([200, 'paused', true])
    expect((await detail(id)).pause_reason).toBe('requested')
    expect(await resultOf('pause')).toEqual([200, 'paused', false])
    expect(await resultOf('resume')).toEqual([200, 'queued', true])
    await db().run(sql`update campaigns set status = 'sending', started_at = domain_now() where id = ${id}`)
    expect(await resultOf('pause')).toEqual([200, 'paused', true])
    expect(await resultOf('resume')).toEqual([200, 'sending', true])
    expect(await resultOf('cancel')).toEqual([200, 'cancelled', true])
    expect(await resultOf('cancel')).toEqual([200, 'cancelled', false])
    expect(await resultOf('pause')).toEqual([409, 'invalid_sequence_status', undefined])
    expect(await resultOf('resume')).toEqual([409, 'campaign_not_paused', undefined])
    expect(await detail(id)).toMatchObject({
      totals: { cancelled: 1, queued: 0 },
      cancelled_at: expect.any(String),
    })
  })

  test('200 back to sending once a message was sent, also before the loop has recorded it', async () => {
    const { id } = await scoped({ steps: [step] })
    await db().run(sql`
      update campaign_recipients set status = 'waiting', step = 1, last_sent_at = domain_now(),
        next_action_at = domain_now() + interval '1 day'
      where campaign_id = ${id}`)
    await control(id, 'pause')
    expect((await control(id, 'resume')).body.campaign).toMatchObject({ status: 'sending' })
    expect((await detail(id)).started_at).toEqual(expect.any(String))
  })

  test('200 back to scheduled while the start is still ahead', async () => {
    const scheduled_at = new Date(Date.now() + 3_600_000).toISOString()
    const { id } = await scoped({ steps: [step], scheduled_at })
    await control(id, 'pause')
    expect((await control(id, 'resume')).body.campaign).toMatchObject({ status: 'scheduled' })
  })

  test('409 for a campaign without steps, and for cancelling a completed one', async () => {
    const { id } = await scoped()
    expect(code(await control(id, 'pause'))).toEqual([409, 'not_a_sequence'])
    expect(code(await control(id, 'resume'))).toEqual([409, 'not_a_sequence'])
    await db().run(
      sql`update campaigns set status = 'completed', completed_at = domain_now() where id = ${id}`,
    )
    expect(code(await control(id, 'pause'))).toEqual([409, 'not_a_sequence'])
    expect(code(await control(id, 'cancel'))).toEqual([409, 'campaign_completed'])
  })

  test("404 for changing another user's campaign, which may still be read", async () => {
    const { id } = await scoped({ steps: [step] })
    const { key } = await colleague()
    for (const verb of ['pause', 'resume', 'cancel']) {
      expect(code(await control(id, verb, key))).toEqual([404, 'campaign_not_found'])
    }
    const seen = await service.get(`/campaigns/${id}`, { key })
    expect(seen.body.campaign).toMatchObject({
      can: { create: true, cancel: false, pause: false, resume: false },
    })
  })

  test('404 for a malformed id, and 400 on cancel', async () => {
    expect(code(await control('x', 'pause'))).toEqual([404, 'campaign_not_found'])
    expect(code(await control('x', 'resume'))).toEqual([404, 'campaign_not_found'])
    expect(code(await control('x', 'cancel'))).toEqual([400, 'invalid_request'])
    // A UUID of a version that Parley does not make is still well-formed.
    const unknown = '12345678-1234-1234-1234-123456789012'
    expect(code(await control(unknown, 'cancel'))).toEqual([404, 'campaign_not_found'])
  })

  test('200 for a repeat with the same key, 409 for the same key on another campaign', async () => {
    const [one, other] = [await scoped({ steps: [step] }), await scoped({ steps: [step] })]
    const first = await control(one.id, 'pause', own.key, 'pause-once')
    await control(one.id, 'resume')
    const again = await control(one.id, 'pause', own.key, 'pause-once')
    expect([again.status, again.body, again.headers.get('idempotent-replayed')]).toEqual([
      200,
      first.body,
      'true',
    ])
    expect(code(await control(other.id, 'pause', own.key, 'pause-once'))).toEqual([
      409,
      'idempotency_collision',
    ])
  })

  test('200 for a repeat that spells the id in capitals: it is the same campaign', async () => {
    const { id } = await scoped({ steps: [step] })
    for (const [verb, key] of [
      ['pause', 'pause-capitals'],
      ['resume', 'resume-capitals'],
      ['cancel', 'cancel-capitals'],
    ] as const) {
      const first = await control(id, verb, own.key, key)
      const again = await control(id.toUpperCase(), verb, own.key, key)
      expect([again.status, again.body, again.headers.get('idempotent-replayed')]).toEqual([
        200,
        first.body,
        'true',
      ])
      if (verb !== 'resume')
        expect((await control(id.toUpperCase(), verb)).body.campaign).toMatchObject({ id })
    }
  })

  test('200 from GET /operations/{operation_id}: the effect of each change of a campaign', async () => {
    const sentenceOf = async ({ headers }: Answer) => {
      const { body } = await service.get(`/operations/${headers.get('x-operation-id')}`, { key: own.key })
      const { state, detail: sentence } = body.operation as { state: string; detail: string }
      expect(state).toBe('completed')
      return sentence
    }
    const created = await create({ recipients: [{ account_id, chat_id: await chat() }], steps: [step] })
    const { id } = created.body.campaign as ShownCampaign
    expect(await sentenceOf(created)).toBe('The campaign was created. This request sent nothing.')
    expect(await sentenceOf(await control(id, 'pause'))).toBe(
      'The campaign was paused. This request sent nothing.',
    )
    expect(await sentenceOf(await control(id, 'pause'))).toBe(
      'Nothing changed: it already was in that state. This request sent nothing.',
    )
    expect(await sentenceOf(await control(id, 'resume'))).toBe(
      'The campaign was resumed. This request sent nothing.',
    )
    expect(await sentenceOf(await control(id, 'cancel'))).toBe(
      'The campaign was cancelled. This request sent nothing.',
    )
  })

  test('accepts no body and an empty object, and nothing else', async () => {
    const { id } = await scoped({ steps: [step] })
    const ask = (body: unknown) =>
      service.post(`/campaigns/${id}/pause`, {
        key: own.key,
        body,
        headers: { 'idempotency-key': `b-${serial++}` },
      })
    expect((await ask({})).status).toBe(200)
    expect((await ask({ reason: 'x' })).status).toBe(400)
  })

  test('429 above the limit of cancellations per minute, not counting missing campaigns', async () => {
    const limited = await openService({ env: { PARLEY_CAMPAIGN_CANCEL_PER_MINUTE: '1' } })
    try {
      const tenant = await limited.tenant()
      await limited.allow(tenant)
      const account = await limited.account(tenant.workspace_id)
      const chat_id = await limited.chat({ account_id: account, workspace_id: tenant.workspace_id })
      const post = (path: string, body?: object) =>
        limited.post(path, { key: tenant.key, headers: { 'idempotency-key': `limited-${serial++}` }, body })
      const make = async () => {
        const { body } = await post('/campaigns', {
          message_text: 'Hi',
          recipients: [{ account_id: account, chat_id }],
        })
        return (body.campaign as ShownCampaign).id
      }
      const cancel = (id: string) => post(`/campaigns/${id}/cancel`)
      const [one, other] = [await make(), await make()]
      const unknown = async () => {
        for (let at = 0; at < 3; at++) {
          expect((await cancel('0199a1f0-0000-7000-8000-00000000ffff')).status).toBe(404)
        }
      }
      await unknown()
      expect((await cancel(one)).status).toBe(200)
      expect(code(await cancel(other))).toEqual([429, 'rate_limited'])
      await unknown()
    } finally {
      await limited.close()
    }
  })

  test('refuses every status change outside the table, also in plain SQL', async () => {
    const { id } = await scoped({ steps: [step] })
    await control(id, 'cancel')
    const back = db().run(sql`update campaigns set status = 'queued', cancelled_at = null where id = ${id}`)
    await expect(back).rejects.toThrow('must not go from cancelled to queued')
    const recipient = db().run(sql`
      update campaign_recipients set status = 'queued', next_action_at = now() where campaign_id = ${id}`)
    await expect(recipient).rejects.toThrow('must not go from cancelled to queued')
  })
})

describe('POST /campaigns/preview and GET /campaigns/{campaign_id}/forecast', () => {
  const preview = (body: object, query = '') =>
    service.post(`/campaigns/preview${query}`, {
      key: own.key,
      body: { message_text: 'Hi [[name|you]]', ...body },
    })

  test('200 for what creation would refuse: which recipient and why, and nothing is stored', async () => {
    const good = await chat({ name: 'Ada' })
    const barred = await chat()
    await addSuppression(service.app, 'system', {
      workspace_id: own.workspace_id,
      platform_id: barred.slice('platform:chat:'.length),
    })
    const before = await campaignCount()
    const lost = 'platform:chat:987654'
    const answer = await preview({
      recipients: [good, barred, lost].map((chat_id) => ({ account_id, chat_id })),
      steps: [{ ...step, variants: ['One', 'Two [[name]]'] }],
    })
    expect(answer.status, answer.body.error).toBe(200)
    expect(answer.body).toMatchObject({
      creatable: false,
      excluded: [
        { chat_id: lost, code: 'chat_not_found' },
        { chat_id: barred, code: 'suppressed_recipient' },
      ],
      texts: [
        {
          chat_id: good,
          messages: [
            { step: 0, branch: null, variants: ['Hi Ada'] },
            { step: 1, branch: 'no_reply', variants: ['One', 'Two Ada'] },
          ],
        },
      ],
      timetable: [
        {
          chat_id: good,
          messages: [
            { step: 0, account_id },
            { step: 1, account_id },
          ],
        },
      ],
      load: [
        { account_id, messages: 1 },
        { account_id, messages: 1 },
      ],
    })
    expect(await campaignCount()).toBe(before)
    expect(code(await preview({ recipients: [] }))).toEqual([400, 'invalid_request'])
    const past = { recipients: [{ account_id, chat_id: good }], scheduled_at: '2020-01-01T00:00:00Z' }
    expect(code(await preview(past))).toEqual([400, 'invalid_request'])
  })

  test("200 without reading the texts of the account's other campaigns, which can be long", async () => {
    const account_id = await service.account(own.workspace_id)
    const long = 'z'.repeat(4_000)
    const steps = Array.from({ length: 5 }, () => ({ ...step, variants: [long, `${long}again`] }))
    const other = { account_id, message_text: `{{ Name }}${long}`, daily_quota_per_account: 200, steps }
    for (let n = 0; n < 5; n++)
      expect((await contacts([`@long_${n}_one`, `@long_${n}_two`], other)).status).toBe(201)
    // Looked up a moment ago, and without a name: the message that needs one fails and uses no quota.
    await db().run(sql`update campaign_recipients set account_id = ${account_id}, chat_id = 5000 + position, name = null,
        asked_at = domain_now()
      where workspace_id = ${own.workspace_id} and contact like 'username:long%two'`)
    const sockets = new Map<Socket, number>()
    const note = (client: object) => {
      const { stream } = (client as { readonly connection: { readonly stream: Socket } }).connection
      if (!sockets.has(stream)) sockets.set(stream, stream.bytesRead)
    }
    db().pool.on('acquire', note)
    const body = { account_id, contacts: [{ identifier: '@short_one' }], daily_quota_per_account: 200 }
    const answer = await preview({ ...body, message_text: 'Hello' })
    db().pool.off('acquire', note)
    expect(answer.status, answer.body.error).toBe(200)
    const read = [...sockets].reduce((sum, [{ bytesRead }, before]) => sum + bytesRead - before, 0)
    expect(read).toBeGreaterThan(1_000)
    expect(read).toBeLessThan(15_000)
    expect(answer.body.load).toMatchObject([{ messages: 1, total: 6 }])
  })

  test('200 with the gates of a preview only: those of creation may be closed', async () => {
    const body = { recipients: [{ account_id, chat_id: await chat() }] }
    await service.shut('campaign_mutation', 'scoped_routing')
    expect((await preview(body)).body).toMatchObject({ creatable: true, has_more: false })
    await service.open('campaign_mutation', 'scoped_routing')
  })

  test("200: the forecast of a created campaign equals its preview, next to the account's other campaigns", async () => {
    const calm = await service.account(own.workspace_id)
    const recipients = [
      await chat({ account: calm }),
      await chat({ account: calm }),
      await chat({ account: calm }),
    ].map((chat_id) => ({ account_id: calm, chat_id }))
    const [one, ...others] = recipients
    expect((await create({ recipients: others })).status).toBe(201)
    const body = { recipients: [one], daily_quota_per_account: 3, steps: [step] }
    const previewed = (await preview(body)).body
    const made = (await create({ ...body, message_text: 'Hi [[name|you]]' })).body.campaign as ShownCampaign
    const { status, body: forecast } = await service.get(`/campaigns/${made.id}/forecast`, { key: own.key })
    expect(status).toBe(200)
    expect(forecast.load).toEqual(previewed.load)
    expect(forecast).toMatchObject({
      load: [
        { messages: 1, total: 3 },
        { messages: 1, total: 1 },
      ],
      creatable: true,
    })
    const at = (answer: typeof forecast) =>
      (answer.timetable as { messages: { at: string }[] }[]).flatMap(({ messages }) =>
        messages.map((message) => Date.parse(message.at)),
      )
    for (const [n, moment] of at(forecast).entries()) {
      expect(Math.abs(moment - (at(previewed)[n] ?? 0))).toBeLessThan(60_000)
    }
    expect(code(await service.get('/campaigns/x/forecast', { key: own.key }))).toEqual([
      404,
      'campaign_not_found',
    ])
  })

  test('200 for further pages of the same play, until something changes on its accounts', async () => {
    const calm = await service.account(own.workspace_id)
    const body = {
      message_text: 'Hi',
      account_id: calm,
      contacts: [{ identifier: '@once_a' }, { identifier: '@once_b' }],
    }
    const { body: first } = await preview(body, '?limit=1')
    const { body: second } = await preview(body, `?limit=1&cursor=${String(first.next_cursor)}`)
    // Another play would start later, and end later.
    expect(second).toMatchObject({ end: first.end, has_more: false, timetable: [{ identifier: '@once_b' }] })
    const elsewhere = await service.account(own.workspace_id)
    await create({ account_id: elsewhere, contacts: [{ identifier: '@once_c' }] })
    expect((await preview(body)).body.end).toBe(first.end)
    await create({ account_id: calm, contacts: [{ identifier: '@once_c' }] })
    expect((await preview(body)).body.end).not.toBe(first.end)
  })

  test('equal accounts of a pool take contacts in the order of their ids, however PostgreSQL reads them', async () => {
    const other = await service.tenant()
    const ids = []
    for (let n = 0; n < 8; n++) ids.push(await service.account(other.workspace_id))
    const standing = await db().transaction(async (tx) => {
      await tx.run(sql`set local enable_indexscan = off`)
      await tx.run(sql`set local enable_bitmapscan = off`)
      return readStanding(service.app, tx, other.workspace_id)
    })
    expect([...standing.accounts.keys()]).toEqual(ids.toSorted())
  })

  test('200 page by page, and a cursor is valid for one body only', async () => {
    const identifiers = Array.from({ length: 25 }, (_, at) => ({ identifier: `@page_${at}` }))
    const body = { message_text: 'Hi {{name|you}}', account_id, contacts: identifiers }
    const seen: unknown[] = []
    let cursor: unknown = null
    do {
      const page = await preview(body, cursor === null ? '?limit=10' : `?limit=10&cursor=${String(cursor)}`)
      expect(page.status, page.body.error).toBe(200)
      expect(page.body.texts).toHaveLength(20)
      seen.push(...(page.body.timetable as { identifier: string }[]).map(({ identifier }) => identifier))
      cursor = page.body.next_cursor
    } while (cursor !== null)
    expect(seen).toEqual(identifiers.map(({ identifier }) => identifier))
    const first = await preview(body, '?limit=10')
    const other = { ...body, name: 'Other' }
    const stolen = await preview(other, `?limit=10&cursor=${String(first.body.next_cursor)}`)
    expect(code(stolen)).toEqual([400, 'invalid_cursor'])
  })
})

describe('GET /campaigns/{campaign_id}/verify', () => {
  test('200: a reply whose time the platform gives in whole seconds does not end before our message', async () => {
    const { id } = await scoped()
    await db().run(sql`
      insert into operations (id, workspace_id, kind, effect, fingerprint, state, reply_status, reply_body, account_id,
        chat_id, campaign_id, recipient_id, step_no, crossed_at)
      select gen_random_uuid(), workspace_id, 'campaign_message', 'platform', ${Buffer.alloc(32)}, 'completed', 200,
        '{"message_id": "12345"}', account_id, chat_id, campaign_id, id, 0, '2026-01-01T10:00:00.500Z'
      from campaign_recipients where campaign_id = ${id}`)
    const ended = (at: string) =>
      db().run(sql`
        update campaign_recipients set status = 'completed', step = 1, next_action_at = null,
          replied_at = '2026-01-01T10:00:00Z', ended_at = ${at}::timestamptz
        where campaign_id = ${id}`)
    const isKept = async () => {
      const { body } = await service.get(`/campaigns/${id}/verify`, { key: own.key })
      const checks = body.checks as { name: string; ok: boolean }[]
      return checks.find(({ name }) => name === 'nothing_after_the_end')?.ok
    }
    await ended('2026-01-01T10:00:00.900Z')
    expect(await isKept()).toBe(true)
    await ended('2026-01-01T10:00:00.400Z')
    expect(await isKept()).toBe(false)
  })

  test('200 with every check, naming those that fail', async () => {
    const { id } = await scoped({ steps: [step] })
    const verify = async () => {
      const { status, body } = await service.get(`/campaigns/${id}/verify`, { key: own.key })
      expect(status).toBe(200)
      const failed = (body.checks as { name: string; ok: boolean }[]).filter(({ ok }) => !ok)
      return [body.ok, failed.map(({ name }) => name)]
    }
    const used = await db().rows(
      sql`select 1 from account_days where account_id = ${account_id} and used > 0`,
    )
    expect(used).toEqual([])
    await db().run(sql`alter table operations disable trigger operations_guard`)
    await db().run(sql`delete from operations where campaign_id is not null`)
    await db().run(sql`alter table operations enable trigger operations_guard`)
    expect(await verify()).toEqual([true, []])
    await db().run(sql`update campaign_accounts set queued = queued + 1 where campaign_id = ${id}`)
    expect(await verify()).toEqual([false, ['totals']])
    await db().run(sql`update campaign_accounts set queued = queued - 1 where campaign_id = ${id}`)
    await db().run(sql`
      insert into account_days (account_id, workspace_id, day, used)
      values (${account_id}, ${own.workspace_id}, '2026-01-01', 1)`)
    expect(await verify()).toEqual([false, ['quota']])
    await db().run(sql`
      insert into operations (id, workspace_id, kind, effect, fingerprint, state, reply_status, reply_body, account_id,
        chat_id, campaign_id, recipient_id, step_no, quota_day, crossed_at)
      select gen_random_uuid(), workspace_id, 'campaign_message', 'platform', ${Buffer.alloc(32)}, 'completed', 200,
        '{"message_id": "12345"}', account_id, chat_id, campaign_id, id, 0, '2026-01-01', domain_now()
      from campaign_recipients where campaign_id = ${id}`)
    expect(await verify()).toEqual([false, ['one_operation_per_step', 'messages']])
    await db().run(sql`
      update campaign_recipients set status = 'failed', ended_at = '2020-01-01', next_action_at = null, step = 1
      where campaign_id = ${id}`)
    expect(await verify()).toEqual([false, ['messages', 'nothing_after_the_end']])
    // Written before our message crossed, and received only after it.
    await db().run(sql`
      update campaign_recipients set status = 'replied', replied_at = '2020-01-01', ended_at = domain_now()
      where campaign_id = ${id}`)
    expect(await verify()).toEqual([false, ['messages']])
  })
})
