/** Clearing recipients and their operations: no name and no text stays, and every figure does. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CampaignPlace, openCampaigns } from '../../../test/harness/campaigns.ts'
import { sql } from '../../db/sql.ts'
import { clearOperations } from '../../ledger/clearing.ts'
import { clearRecipientNames } from './campaigns.ts'
import { readReporting } from './reporting.ts'
import { verifyCampaign } from './verify.ts'

let place: CampaignPlace
beforeAll(async () => {
  place = await openCampaigns()
})
afterAll(() => place.close())

const day = 24 * 3_600

test('an ended campaign keeps its figures, its places and its proofs without a name and without a text', async () => {
  await place.fresh()
  const account_id = await place.account()
  const [first = 0, second = 0] = await place.people(account_id, 2)
  const third = place.work.sandbox.world.addPerson({ name: 'Canary', username: 'canary_w' }).person_id
  const steps = [
    { wait_hours: 24, branch: 'unseen', variants: ['canary two', 'canary two or so'] },
    { wait_hours: 24, branch: 'seen', variants: ['canary three'] },
  ] as const
  const id = await place.campaign({
    ...{ kind: 'contacts', pool: [account_id], branching: true, message_text: 'canary one', steps },
    contacts: [
      { contact: 'username:canary_w', name: 'Canary' },
      { contact: `platform_id:${first}`, name: 'Canary the first' },
      { contact: `platform_id:${second}`, name: 'Canary the second' },
    ],
  })
  await place.advance(day / 2)
  place.work.write(account_id, first, 'Tell me more')
  await place.until('the reply is heard', async () => (await place.statuses(id)).includes('replied'))
  await place.advance(5 * day)
  expect(await place.status(id)).toBe('completed')
  expect(place.sent().map(({ person }) => person)).toContain(third)

  const figures = async () => ({
    reporting: await readReporting(place.db, id),
    verification: await verifyCampaign(place.db, id),
    recipients: (await place.recipients(id)).map(({ version: _, ...row }) => row),
    people: await place.db.rows(
      sql`select * from campaign_people where campaign_id = ${id} order by recipient_id`,
    ),
    counts: await place.db.rows(sql`select * from campaign_accounts where campaign_id = ${id}`),
  })
  const before = await figures()
  expect(before.verification.ok).toBe(true)
  expect(new Set(before.reporting.filter(({ sent }) => sent > 0).map(({ branch }) => branch)).size).toBe(2)

  const recipients = await place.recipients(id)
  const rows = await place.db.rows<{ id: string }>(
    sql`select id from operations where campaign_id = ${id} order by id`,
  )
  await place.db.transaction(async (tx) => {
    expect(await clearRecipientNames(tx, recipients)).toBe(3)
    expect(
      await clearOperations(
        tx,
        rows.map((row) => row.id),
      ),
    ).toBe(rows.length)
  })
  expect(await figures()).toEqual(before)
  const { left } = await place.db.one<{ left: number }>(sql`
    select (select count(*) from campaign_recipients r where r.campaign_id = ${id} and r::text ilike '%canary%')::int
      + (select count(*) from operations o where o.campaign_id = ${id} and o::text ilike '%canary%')::int as left`)
  expect(left).toBe(0)
  await place.db.transaction(async (tx) => {
    expect(await clearRecipientNames(tx, recipients)).toBe(0)
  })
})

test('a recipient who is still to be written to keeps their name, and no recipient gets another one', async () => {
  await place.fresh()
  const account_id = await place.account()
  const id = await place.campaign({
    ...{ kind: 'contacts', pool: [account_id], scheduled_at: new Date('2027-06-01T00:00:00Z') },
    contacts: [{ contact: 'username:nobody_yet', name: 'Nobody' }],
  })
  const [recipient] = await place.recipients(id)
  if (!recipient) throw new Error('There is no recipient.')
  expect(await place.db.transaction((tx) => clearRecipientNames(tx, [recipient]))).toBe(0)
  const rename = (contact: string) =>
    place.db.run(sql`update campaign_recipients set contact = ${contact} where id = ${recipient.id}`)
  await expect(rename('cleared:x')).rejects.toThrow('must keep its identity')
  await place.control(id, 'cancel')
  await place.until('the recipient is cancelled', async () => (await place.statuses(id))[0] === 'cancelled')
  await expect(rename('username:somebody_else')).rejects.toThrow('must keep its identity')
  const tombstone = { id: recipient.id, contact: 'cleared:b5bb9d8014a0f9b1' }
  expect(await place.db.transaction((tx) => clearRecipientNames(tx, [tombstone]))).toBe(1)
})
