/**
 * A thousand interleavings of crossing with everything that forbids it: a cancel, an opt-out, a reply, the last of
 * the quota. Whichever came first, the recipient and its operation agree, and nothing crosses afterwards.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { noteReplies } from '../src/capabilities/campaigns/running/running.ts'
import { addSuppression } from '../src/capabilities/suppressions/suppressions.ts'
import { sql } from '../src/db/sql.ts'
import type { HeldLease } from '../src/ledger/leases.ts'
import { settle } from '../src/ledger/settle.ts'
import type { Message } from '../src/platform/port.ts'
import { judgeCampaigns } from './faults/campaign-oracle.ts'
import { readCampaignEvidence } from './harness/campaign-evidence.ts'
import { openPickedRows, type PickedRecipient, type PickedRows } from './harness/picked.ts'

const times = 250

let place: PickedRows
let held: HeldLease
beforeAll(async () => {
  place = await openPickedRows()
  held = await place.rows.account()
})
afterAll(() => place.close())

/** An hour later, so that it answers whatever crosses before it is received. */
const later = new Date(Date.now() + 3_600_000).toISOString()
const answer: Message = {
  ...{ id: '9000', text: 'Yes', is_sender: false, sender_id: null, timestamp: later },
  ...{ edited_at: null, attachments: [], random_id: null },
}

/** Prepared beforehand, so that only the act itself is in the race. */
const acts: Record<string, (one: PickedRecipient) => Promise<() => Promise<unknown>>> = {
  cancel:
    async ({ campaign_id }) =>
    () =>
      place.control(campaign_id, 'cancel'),
  'an opt-out':
    async ({ person_id }) =>
    () =>
      addSuppression(place.rows.app, 'system', {
        workspace_id: place.rows.tenant.workspace_id,
        platform_id: String(person_id),
      }),
  'a reply':
    async ({ person_id }) =>
    () =>
      place.rows.db.transaction((tx) =>
        noteReplies(place.rows.app, tx, held, [{ chat_id: `${person_id}`, message: answer }]),
      ),
  quota: async () => (await place.picked({ quota: 1 }, held)).cross,
}

/** The account is live, with nothing in flight and its full daily quota. */
async function clear(): Promise<void> {
  const { db } = place.rows
  const { account_id } = held
  const open = await db.rows<{ id: string; token: string }>(sql`
    select id, attempt_token as token from operations where account_id = ${account_id} and state = 'submitting'`)
  await db.transaction((tx) =>
    settle(
      tx,
      place.rows.app.operations,
      open.map((row) => ({ ...row, ending: { to: 'refused', refusal: 'message_invalid' } as const })),
    ),
  )
  await place.rows.host(held, sql`next_campaign_at = null, observed_at = real_now()`)
  await db.run(sql`
    update campaign_recipients set status = 'cancelled', next_action_at = null, ended_at = domain_now()
    where account_id = ${account_id} and status in ('queued', 'waiting')`)
}

/** It has received its first message, and the second is due. */
async function makeWaiting(one: PickedRecipient): Promise<() => Promise<string>> {
  await one.cross()
  const { id, attempt_token: token } = await place.operation(one)
  const reply = { message_id: '5', timestamp: new Date(Date.now() - 7_200_000).toISOString() }
  const { db, app } = place.rows
  await db.transaction((tx) =>
    settle(tx, app.operations, [{ id, token, ending: { to: 'completed', reply } }]),
  )
  await db.run(sql`update operations set quota_day = null where id = ${id}`)
  await db.run(sql`update account_days set used = used - 1 where account_id = ${held.account_id}`)
  await place.rows.host(held, sql`next_campaign_at = null`)
  return place.pick(held, one.campaign_id)
}

/** Of five, one has the act first and one the crossing; the others start together, a little apart. */
async function race(name: string, n: number): Promise<string> {
  const one = await place.picked({ quota: 1, steps: [{ wait_hours: 1 }] }, held)
  const cross = name === 'a reply' ? await makeWaiting(one) : one.cross
  const act = await acts[name]?.(one)
  const after = (ms: number) => new Promise((done) => setTimeout(done, ms))
  const first = n % 5 === 0 ? act?.() : undefined
  await first
  const crossing = after((n % 7) * 0.7).then(cross)
  if (n % 5 === 1) await crossing
  await Promise.all([crossing, first ?? after((n % 11) * 0.7).then(act)])
  const status = await crossing
  const { status: now, used } = await place.stateOf(one)
  const crossed = status === 'crossed'
  expect(now === 'submitting', `${name} ${n}: ${status}, and the recipient is ${now}`).toBe(crossed)
  if (name === 'quota') expect(used).toBe(1)
  else if (!crossed) expect(['cancelled', 'suppressed', 'replied']).toContain(now)
  await clear()
  return crossed ? 'crossed' : 'stopped'
}

test.each(Object.keys(acts))(
  `%s against crossing, ${times} times`,
  async (name) => {
    const seen = new Set<string>()
    for (let n = 0; n < times; n++) seen.add(await race(name, n))
    expect([...seen].sort()).toEqual(['crossed', 'stopped'])
  },
  300_000,
)

test("finally the totals equal the rows, the day's use equals what crossed, and everything agrees", async () => {
  const violations = judgeCampaigns(await readCampaignEvidence(place.rows.db, { journal: [] }))
  expect(violations.filter(({ promise }) => promise !== 'P3')).toEqual([])
})
