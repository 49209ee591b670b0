/** A reply ends the sequence and an opt-out suppresses, whether an update, an edit or a page of history stores it. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type CampaignPlace, openCampaigns } from '../../../../test/harness/campaigns.ts'
import { sql } from '../../../db/sql.ts'
import type { Chat } from '../../../platform/port.ts'
import { ingest } from '../../../worker/ingest.ts'
import { setAccountEnabled } from '../../accounts/accounts.ts'
import { listSuppressions } from '../../suppressions/suppressions.ts'

let place: CampaignPlace
let account_id: string
beforeAll(async () => {
  place = await openCampaigns()
})
beforeEach(async () => {
  await place.fresh()
  account_id = await synced()
})
afterEach(async () => {
  expect(await place.judge()).toEqual([])
  place.work.sandbox.world.clearFaults()
})
afterAll(() => place.close())

const hour = 3_600
const day = 24 * hour
const daily = [{ wait_hours: 24 }, { wait_hours: 24 }]

interface EmittedEvent {
  readonly type: string
  readonly data: { readonly campaign_id?: string; readonly message?: { readonly text: string } }
}

async function events(): Promise<string[]> {
  const all = (await place.work.events(place.tenant.workspace_id)) as unknown as EmittedEvent[]
  return all.map(({ type, data }) => `${type} ${data.message?.text ?? data.campaign_id}`)
}

/** An account whose first sync is over: the history of a later chat is fetched when the chat is read. */
async function synced(): Promise<string> {
  const id = await place.account()
  await place.until('the account is synced', async () => {
    const row = await place.db.maybe(
      sql`select from account_sync where account_id = ${id} and phase = 'done'`,
    )
    return row !== undefined
  })
  return id
}

/** A person whom a campaign has written to once, with the next message due tomorrow. */
async function writtenTo(): Promise<{ person_id: number; campaign_id: string }> {
  const [person_id = 0] = await place.people(account_id, 1)
  const campaign_id = await place.campaign({ chats: [{ account_id, person_id }], steps: daily })
  await place.advance(hour)
  expect(place.sent()).toHaveLength(1)
  return { person_id, campaign_id }
}

/** The platform has it, and no update ever reports it. */
async function leave(person_id: number, text: string, by = account_id): Promise<void> {
  const { now } = await place.db.one<{ now: Date }>(sql`select domain_now() as now`)
  place.work.sandbox.world.seedMessage({ account_id: by, chat_id: person_id, person_id, text, at: now })
}

/** Reading a chat whose history was never fetched stores what the platform has of it. */
async function read(person_id: number, by = account_id): Promise<string[]> {
  const { status, body } = await place.work.service.get(
    `/chats/platform:chat:${person_id}/messages?account_id=${by}`,
    { key: place.tenant.key },
  )
  expect(status, JSON.stringify(body)).toBe(200)
  return (body as unknown as { messages: { text: string }[] }).messages.map(({ text }) => text)
}

async function suppressed(): Promise<string[]> {
  return (await listSuppressions(place.db, place.tenant.workspace_id)).map(({ value }) => value)
}

/** The platform reports that updates are missing, as after an absence that is too long for it. */
async function lose(chat_id: Chat['id'] | null): Promise<void> {
  const { lease_owner, lease_epoch, position, writes } = await place.db.one<{
    lease_owner: string
    lease_epoch: string
    position: string
    writes: string
  }>(sql`
    select lease_owner, lease_epoch::text, position, writes::text from account_hosts where account_id = ${account_id}`)
  const held = {
    account_id,
    workspace_id: place.tenant.workspace_id,
    worker_id: lease_owner,
    epoch: lease_epoch,
    writes: { seen: writes },
  }
  const batch = { updates: [{ kind: 'gap', chat_id } as const], position, caught_up: true }
  expect(await ingest(place.work.service.app, held, batch)).toBe(true)
}

/** A new session of the account fetches what is missing. */
async function reconnect(): Promise<void> {
  const { app } = place.work.service
  for (const enabled of [false, true]) await setAccountEnabled(app, 'system', { id: account_id, enabled })
  await place.until('what was missing is fetched', async () => {
    const row = await place.db.maybe(sql`
      select from account_hosts h join account_sync s on s.account_id = h.account_id
      where h.account_id = ${account_id} and h.gap_since is null and s.phase = 'done'`)
    return row !== undefined
  })
  await place.work.untilStatus(account_id, 'READY')
}

/** Nothing follows the reply, and only the person's earlier message was announced. */
async function expectEndedByReply(campaign_id: string): Promise<void> {
  expect(await place.statuses(campaign_id)).toEqual(['replied'])
  await place.advance(4 * day)
  expect(place.sent()).toHaveLength(1)
  expect(await events()).toEqual(['message.received Hello, who is this?', `campaign.replied ${campaign_id}`])
}

describe('a message whose update was lost', () => {
  test.each(['in all chats', 'in one chat'])(
    '%s: a reply ends the sequence, and the message is not announced',
    async (where) => {
      const { person_id, campaign_id } = await writtenTo()
      await leave(person_id, 'Tell me more')
      await lose(where === 'in all chats' ? null : `${person_id}`)
      await reconnect()
      await expectEndedByReply(campaign_id)
    },
  )

  test('an opt-out among more messages than a page has suppresses the person', async () => {
    const { person_id, campaign_id } = await writtenTo()
    await leave(person_id, 'STOP')
    for (let n = 0; n < 130; n++) await leave(person_id, `And another thing, ${n}`)
    await lose(null)
    await reconnect()
    expect(await suppressed()).toEqual([String(person_id)])
    await place.advance(4 * day)
    expect(await place.statuses(campaign_id)).toEqual(['replied'])
    expect(place.sent()).toHaveLength(1)
  })

  test('no follow-up is sent before it is fetched, and the page says that the account is not ready', async () => {
    const { campaign_id } = await writtenTo()
    place.work.fault({ on: 'history', fault: 'unavailable', times: 1_000_000 })
    place.work.fault({ on: 'chats', fault: 'unavailable', times: 1_000_000 })
    await lose(null)
    await place.advance(2 * day)
    expect(place.sent()).toHaveLength(1)
    const { body } = await place.work.service.get(`/campaigns/${campaign_id}`, { key: place.tenant.key })
    expect(body).toMatchObject({ campaign: { recipients: [{ blocked_by: 'account_not_ready' }] } })
    place.work.sandbox.world.clearFaults()
    await reconnect()
    await place.advance(2 * day)
    expect(place.sent()).toHaveLength(3)
  })
})

describe('a message that only history contains', () => {
  test('as a reply ends the sequence and emits one event; the message itself is not announced', async () => {
    const { person_id, campaign_id } = await writtenTo()
    await leave(person_id, 'Tell me more')
    expect(await read(person_id)).toContain('Tell me more')
    await expectEndedByReply(campaign_id)
  })

  test('as an opt-out ends the sequence and suppresses the person, with the message as evidence', async () => {
    const { person_id, campaign_id } = await writtenTo()
    await leave(person_id, 'STOP')
    await read(person_id)
    expect(await suppressed()).toEqual([String(person_id)])
    const other = await place.account()
    const elsewhere = await place.campaign({ chats: [{ account_id: other, person_id }] })
    await place.advance(4 * day)
    expect([await place.statuses(campaign_id), await place.statuses(elsewhere)]).toEqual([
      ['replied'],
      ['suppressed'],
    ])
    expect(place.sent()).toHaveLength(1)
    const [entry] = await listSuppressions(place.db, place.tenant.workspace_id)
    expect(entry).toMatchObject({ source: 'opt_out', evidence: { account_id, text: 'STOP' } })
  })

  test('as an opt-out suppresses a person whom the API wrote to', async () => {
    const [person_id = 0] = await place.people(account_id, 1)
    const { status } = await place.work.service.post('/messages', {
      key: place.tenant.key,
      body: { account_id, chat_id: `platform:chat:${person_id}`, text: 'This is Sales.' },
      headers: { 'Idempotency-Key': `to ${person_id}` },
    })
    expect(status).toBe(200)
    await leave(person_id, 'STOP')
    await read(person_id)
    expect(await suppressed()).toEqual([String(person_id)])
  })

  test('from before our first message is neither', async () => {
    const [person_id = 0] = await place.people(account_id, 1)
    await leave(person_id, 'STOP')
    await place.advance(hour)
    const campaign_id = await place.campaign({ chats: [{ account_id, person_id }], steps: daily })
    await place.advance(hour)
    expect(await read(person_id)).toEqual(['Hello, who is this?', 'STOP', 'First message'])
    expect([await suppressed(), await place.statuses(campaign_id)]).toEqual([[], ['waiting']])
    await place.advance(4 * day)
    expect(place.sent()).toHaveLength(3)
  })

  test('is the reply when it came after our message, also on a page that begins before it', async () => {
    const [person_id = 0] = await place.people(account_id, 1)
    await leave(person_id, 'Good morning')
    await place.advance(hour)
    const campaign_id = await place.campaign({ chats: [{ account_id, person_id }], steps: daily })
    await place.advance(hour)
    await leave(person_id, 'Tell me more')
    await read(person_id)
    expect(await place.statuses(campaign_id)).toEqual(['replied'])
  })

  test('is announced when its update arrives later, and counts once', async () => {
    const { person_id, campaign_id } = await writtenTo()
    place.work.fault({ on: 'updates', fault: 'late', seconds: 600, account_id })
    place.work.write(account_id, person_id, 'STOP')
    expect(await read(person_id)).toContain('STOP')
    expect([await place.statuses(campaign_id), await suppressed()]).toEqual([
      ['replied'],
      [String(person_id)],
    ])
    expect(await events()).not.toContain('message.received STOP')
    await place.advance(4 * day)
    expect(place.sent()).toHaveLength(1)
    expect(await events()).toEqual([
      'message.received Hello, who is this?',
      `campaign.replied ${campaign_id}`,
      'message.received STOP',
    ])
    const counts = await place.db.one(sql`
      select replied::int from campaign_counts where campaign_id = ${campaign_id} and at = '-infinity'`)
    expect(counts).toEqual({ replied: 1 })
  })

  test('as an opt-out from a person whom no account wrote to counts when its update arrives', async () => {
    const [person_id = 0] = await place.people(account_id, 1)
    place.work.fault({ on: 'updates', fault: 'late', seconds: 600, account_id })
    place.work.write(account_id, person_id, 'STOP')
    expect([(await read(person_id)).at(-1), await suppressed()]).toEqual(['STOP', []])
    await place.advance(hour)
    expect(await suppressed()).toEqual([String(person_id)])
  })
})
