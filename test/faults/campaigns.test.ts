/**
 * Crash points with campaigns: a process dies while it prepares a message, inside the locked boundary, on either side
 * of the call, inside the sweep, a cancel or a pause; and a database that is restored, also to before the campaign.
 */
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { readCampaignEvidence } from '../harness/campaign-evidence.ts'
import { insertCampaign, type NewCampaign } from '../harness/campaigns.ts'
import { endProcesses, hangMs, until } from '../harness/process.ts'
import { judgeCampaigns } from './campaign-oracle.ts'
import { openPlant, type Plant } from './plant.ts'
import { dieAt, Scene } from './scene.ts'

let plant: Plant
let scene: Scene
beforeAll(async () => {
  plant = await openPlant({ accounts: 2, people: 2, env: { PARLEY_PACING_SECONDS: '0' } })
  scene = new Scene(plant)
}, 120_000)
let restored = false
beforeEach(() => {
  restored = false
})
afterEach(async () => {
  expect(await scene.judge({ restored })).toEqual([])
  const journal = await plant.journal()
  expect(judgeCampaigns(await readCampaignEvidence(plant.db, { journal }))).toEqual([])
})
afterAll(async () => {
  await plant?.close()
  await endProcesses()
})

let named = 0

function campaign(given: NewCampaign = {}): Promise<string> {
  const [account_id = ''] = plant.accounts
  const chats = [{ account_id, person_id: plant.people[0] ?? 0 }]
  return insertCampaign(plant.db, plant.tenant, { chats, message_text: `Campaign ${named++}`, ...given })
}

interface Look {
  readonly recipient: string
  readonly operation: string | null
  readonly accepted: number
}

async function look(id: string): Promise<Look> {
  const row = await plant.db.one<Omit<Look, 'accepted'> & { text: string }>(sql`
    select r.status as recipient, k.message_text as text,
      (select state from operations o where o.recipient_id = r.id) as operation
    from campaign_recipients r join campaigns k on k.id = r.campaign_id where k.id = ${id}`)
  const accepted = (await plant.journal()).filter(({ text }) => text === row.text).length
  return { recipient: row.recipient, operation: row.operation, accepted }
}

async function statusOf(id: string): Promise<string> {
  const row = await plant.db.one<{ status: string }>(sql`select status from campaigns where id = ${id}`)
  return row.status
}

async function untilFinal(id: string): Promise<Look> {
  await until('the recipient is final', hangMs, async () =>
    ['completed', 'ambiguous', 'failed', 'cancelled'].includes((await look(id)).recipient),
  )
  return look(id)
}

/** The worker dies there with the message in flight, and another takes over. */
async function dieWith(marker: string, given: NewCampaign = {}): Promise<{ id: string; died: Look }> {
  await scene.arm(dieAt(marker))
  const id = await campaign(given)
  await plant.work(0).ended()
  const died = await look(id)
  await scene.recover()
  return { id, died }
}

describe('3: the worker dies before the boundary is committed', () => {
  test.each([
    ['everything locked', 'crash point 3b'],
    ['everything written', 'crash point 3c'],
  ])('%s: nothing happened, and it is sent once', async (_, marker) => {
    const { id, died } = await dieWith(marker)
    expect(died).toEqual({ recipient: 'queued', operation: null, accepted: 0 })
    expect(await untilFinal(id)).toEqual({ recipient: 'completed', operation: 'completed', accepted: 1 })
  })

  test('after a look-up: the contact is looked up again, and gets one message', async () => {
    const { username } = await plant.addPerson()
    const [account_id = ''] = plant.accounts
    const contacts = [{ contact: `username:${username}` }]
    const { id, died } = await dieWith('crash point 3d', {
      kind: 'contacts',
      chats: [],
      pool: [account_id],
      contacts,
    })
    expect(died).toEqual({ recipient: 'queued', operation: null, accepted: 0 })
    expect(await untilFinal(id)).toEqual({ recipient: 'completed', operation: 'completed', accepted: 1 })
  })
})

describe('5 to 8: the worker dies after the boundary', () => {
  test('before the journal: the outcome is unknown, and no worker sends it again', async () => {
    const { id, died } = await dieWith('crash point 5')
    expect(died).toEqual({ recipient: 'submitting', operation: 'submitting', accepted: 0 })
    expect(await untilFinal(id)).toEqual({ recipient: 'ambiguous', operation: 'ambiguous', accepted: 0 })
  })

  test('after the answer was read: the platform shows the message, and the outcome is known', async () => {
    const { id } = await dieWith('crash point 7')
    expect(await untilFinal(id)).toMatchObject({ accepted: 1 })
    await until('it is known', hangMs, async () => (await look(id)).recipient === 'completed')
  })

  test('with the outcome in the journal: it is recovered from there', async () => {
    const { id } = await dieWith('crash point 8')
    await until('it is known', hangMs, async () => (await look(id)).recipient === 'completed')
    expect(await look(id)).toEqual({ recipient: 'completed', operation: 'completed', accepted: 1 })
  })
})

describe('11: a process dies inside the sweep, a cancel or a pause', () => {
  test('the sweep: all or nothing, and the recipient with its operation', async () => {
    await scene.arm(dieAt('crash point 5'))
    const id = await campaign({ steps: [{ wait_hours: 24 }] })
    await plant.work(0).ended()
    // The next one dies when the operation is written and its recipient is not.
    await plant.work(0).restart([dieAt('crash point 11')])
    await plant.expireLeases()
    await plant.work(0).ended()
    expect(await look(id)).toEqual({ recipient: 'submitting', operation: 'submitting', accepted: 0 })
    await scene.recover()
    expect(await look(id)).toEqual({ recipient: 'submitting', operation: 'ambiguous', accepted: 0 })
  })

  test.each([
    ['cancel', { status: 'cancelled', recipient: 'cancelled' }],
    ['pause', { status: 'paused', recipient: 'waiting' }],
  ])('an uncommitted %s has stopped nothing, and repeating its key does', async (control, stopped) => {
    await plant.work(0).kill()
    const id = await campaign({ steps: [{ wait_hours: 24 }] })
    const key = `${control}-${named++}`
    const ask = () =>
      fetch(`${plant.serve(0).url}/api/v1/campaigns/${id}/${control}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${plant.tenant.key}`, 'idempotency-key': key },
      })
    await plant.serve(0).restart([dieAt('crash point 11a')])
    await expect(ask()).rejects.toThrow()
    await plant.serve(0).ended()
    expect(await statusOf(id)).toBe('queued')
    expect(await look(id)).toEqual({ recipient: 'queued', operation: null, accepted: 0 })
    await plant.serve(0).start()
    await scene.recover()
    await until('it goes on', hangMs, async () => (await look(id)).recipient === 'waiting')
    expect(await look(id)).toEqual({ recipient: 'waiting', operation: 'completed', accepted: 1 })
    for (const status of [200, 200]) expect((await ask()).status).toBe(status)
    const { recipient } = await look(id)
    expect({ status: await statusOf(id), recipient }).toEqual(stopped)
  })
})

describe('15: the database is restored', () => {
  async function goBack(change: () => Promise<void>): Promise<void> {
    const copy = join(plant.directory, `copy-${named++}`)
    await plant.work(0).kill()
    await plant.postgres.stop()
    await plant.postgres.copy(copy)
    await plant.postgres.start()
    await plant.work(0).start()
    await plant.expireLeases()
    await plant.untilReady()
    await change()
    await plant.work(0).kill()
    await plant.postgres.stop()
    await plant.postgres.restore(copy)
    await plant.postgres.start()
    await plant.work(0).start()
    await plant.db.run(sql`update settings set value = 'true' where name = 'dispatch'`)
    await plant.expireLeases()
    await plant.untilReady()
    restored = true
  }

  test('to before a message: the journal restores it with its recipient and its day, and it is not sent again', async () => {
    await plant.db.run(sql`update settings set value = 'false' where name = 'dispatch'`)
    const id = await campaign({ steps: [{ wait_hours: 24 }] })
    expect(await look(id)).toEqual({ recipient: 'queued', operation: null, accepted: 0 })
    await goBack(async () => {
      await plant.db.run(sql`update settings set value = 'true' where name = 'dispatch'`)
      await until('it is sent', hangMs, async () => (await look(id)).recipient === 'waiting')
    })
    await until('it is known', hangMs, async () => (await look(id)).operation === 'completed')
    expect(await look(id)).toEqual({ recipient: 'waiting', operation: 'completed', accepted: 1 })
  })

  test('to before the campaign: repeating its key finds what the journal restored, and no person gets a second message', async () => {
    const key = `campaign-${named++}`
    const create = async () => {
      const response = await fetch(`${plant.serve(0).url}/api/v1/campaigns`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${plant.tenant.key}`,
          'content-type': 'application/json',
          'idempotency-key': key,
        },
        body: JSON.stringify({
          message_text: `Forgotten ${key}`,
          recipients: [{ account_id: plant.accounts[0], chat_id: `platform:chat:${plant.people[0]}` }],
          steps: [{ branch: 'no_reply', wait_hours: 24, variants: ['Again'] }],
        }),
      })
      const body = (await response.json()) as { campaign: { id: string } }
      return { status: response.status, id: body.campaign?.id, body }
    }
    let first = ''
    await goBack(async () => {
      const made = await create()
      expect(made).toMatchObject({ status: 201 })
      first = made.id
      await until('it is sent', hangMs, async () => (await look(first)).recipient === 'waiting')
    })
    const again = await create()
    expect(again).toMatchObject({ status: 201 })
    expect(again.id).not.toBe(first)
    await until('its recipient knows', hangMs, async () => (await look(again.id)).recipient === 'waiting')
    expect(await look(again.id)).toEqual({ recipient: 'waiting', operation: 'completed', accepted: 1 })
  })
})
