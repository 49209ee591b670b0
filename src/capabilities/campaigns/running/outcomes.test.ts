/** A reply that arrives while a message is in flight: whatever the message's outcome, nothing follows it. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type CampaignPlace, openCampaigns } from '../../../../test/harness/campaigns.ts'
import { sql } from '../../../db/sql.ts'
import type { Outcome, Sent, Session } from '../../../platform/port.ts'

type Send = () => Promise<Outcome<Sent>>

let place: CampaignPlace
let account_id: string
let person_id: number
/** What the platform does with the next message. */
let during: ((send: Send) => Promise<Outcome<Sent>>) | undefined
beforeAll(async () => {
  place = await openCampaigns()
  const { platform } = place.work.sandbox
  const connect = platform.connect.bind(platform)
  platform.connect = async (account, listener) => {
    const connected = await connect(account, listener)
    if (connected.kind === 'accepted') interrupt(connected.value)
    return connected
  }
})
beforeEach(async () => {
  during = undefined
  await place.fresh()
  account_id = await place.account()
  const [person = 0] = await place.people(account_id, 1)
  person_id = person
})
afterEach(async () => {
  expect(await place.judge()).toEqual([])
})
afterAll(() => place.close())

function interrupt(session: Session): void {
  const send = session.send.bind(session)
  Object.assign(session, {
    send: (message: Parameters<Session['send']>[0]) => {
      const interrupted = during
      during = undefined
      return interrupted ? interrupted(() => send(message)) : send(message)
    },
  })
}

const hour = 3_600
const day = 24 * hour
const daily = [{ wait_hours: 24 }, { wait_hours: 24 }]

/** The person writes, and the reply is stored before the message in flight has an outcome. */
async function reply(campaign_id: string): Promise<void> {
  place.work.write(account_id, person_id, 'Tell me more')
  await place.until('the reply is heard', async () => {
    const { at } = await place.db.one<{ at: Date | null }>(
      sql`select replied_at as at from campaign_recipients where campaign_id = ${campaign_id}`,
    )
    return at !== null
  })
  expect(await place.statuses(campaign_id)).toEqual(['submitting'])
}

async function repliedSteps(): Promise<unknown[]> {
  const all = await place.work.events(place.tenant.workspace_id)
  return all
    .filter(({ type }) => type === 'campaign.replied')
    .map(({ data }) => (data as unknown as { step: number }).step)
}

const flood: Outcome<Sent> = { kind: 'flood_wait', retry_after_seconds: 60, stops: 'sends' }

describe('a reply', () => {
  test.each<[string, (send: Send) => Promise<Outcome<Sent>>, number]>([
    ['meets a flood wait', async () => flood, 1],
    ['is refused', async () => ({ kind: 'refused', reason: 'blocked_by_person' }), 1],
    ['is accepted', (send) => send(), 2],
  ])('to message 1 while message 2 is in flight, which %s: nothing follows', async (_, finish, sent) => {
    const id = await place.campaign({ chats: [{ account_id, person_id }], steps: daily })
    await place.advance(hour)
    during = async (send) => {
      await reply(id)
      return finish(send)
    }
    await place.advance(day)
    expect(await place.statuses(id)).toEqual(['replied'])
    await place.advance(4 * day)
    expect(place.sent()).toHaveLength(sent)
    expect(await repliedSteps()).toEqual([0])
  })

  test('to message 1 while message 2 is in flight stays the reply when the person writes again', async () => {
    const id = await place.campaign({ chats: [{ account_id, person_id }], steps: daily })
    await place.advance(hour)
    const stored = (text: string) =>
      place.db.maybe<{ id: string }>(sql`
        select id::text from messages where account_id = ${account_id} and text = ${text}`)
    during = async () => {
      await reply(id)
      place.work.write(account_id, person_id, 'One more thing')
      await place.until('it is stored', async () => (await stored('One more thing')) !== undefined)
      return flood
    }
    await place.advance(day)
    expect(await place.statuses(id)).toEqual(['replied'])
    const all = await place.work.events(place.tenant.workspace_id)
    const { id: message_id } = (await stored('Tell me more')) ?? {}
    expect(all.filter(({ type }) => type === 'campaign.replied')).toMatchObject([
      { data: { message_id, step: 0 } },
    ])
  })

  test('that overtakes our answer, which is then accepted: nothing follows', async () => {
    const id = await place.campaign({ chats: [{ account_id, person_id }], steps: daily })
    during = async (send) => {
      const answer = await send()
      await reply(id)
      return answer
    }
    await place.advance(hour)
    expect(await place.statuses(id)).toEqual(['replied'])
    await place.advance(4 * day)
    expect(place.sent()).toHaveLength(1)
    expect(await repliedSteps()).toEqual([0])
  })

  test('that was written before our first message does not end the sequence', async () => {
    const id = await place.campaign({ chats: [{ account_id, person_id }], steps: daily })
    during = async (send) => {
      await reply(id)
      return send()
    }
    await place.advance(4 * day)
    expect(place.sent()).toHaveLength(3)
    expect(await place.statuses(id)).toEqual(['completed'])
    expect(await repliedSteps()).toEqual([])
  })
})
