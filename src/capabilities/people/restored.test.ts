/** People after a restore: their names, entries of the list and taken keys count as before, whatever the database has forgotten. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { CampaignPlace, openCampaigns } from '../../../test/harness/campaigns.ts'
import { copyDatabase } from '../../../test/harness/database.ts'
import { openService, type Service } from '../../../test/harness/service.ts'
import { Workplace } from '../../../test/harness/worker.ts'
import { writeBackup } from '../../db/backup.ts'
import { openBackup } from '../../db/backup-file.ts'
import { moveClock } from '../../db/domain-clock.ts'
import { openDatabase } from '../../db/pool.ts'
import { requireSteps, restoreBackup } from '../../db/restore.ts'
import { sql } from '../../db/sql.ts'
import { renewGeneration } from '../../ledger/restore-counter.ts'
import { writeFromPhone } from '../../platform/sandbox/person-acts.ts'
import { setDispatch } from '../gates/gates.ts'
import { addSuppression } from '../suppressions/suppressions.ts'

const env = { PARLEY_PACING_SECONDS: '0', PARLEY_START_CHAT_PER_MINUTE: '1000' }
const hour = 3_600
let before: CampaignPlace
let directory: string
/** The service on the restored database, and its worker: on the disk of the first one, with the same people. */
let service: Service | undefined
let after: CampaignPlace | undefined
let made = 0
beforeEach(async () => {
  service = undefined
  after = undefined
  directory = await mkdtemp(join(tmpdir(), 'parley-restored-'))
  before = await openCampaigns(env)
})
afterEach(async () => {
  await after?.end()
  await service?.close()
  await before.close()
  await rm(directory, { recursive: true, force: true })
})

const backUp = () =>
  writeBackup(before.db, join(directory, 'backup'), {
    header: async () => ({ parley_version: '0.0.0', secret: 's'.repeat(43), secret_id: 'which' }),
    made: async () => {},
  })

/** Its worker ends, and another one on its disk finds the backup. A standby keeps the generation. */
async function restore(how: 'a backup' | 'a standby'): Promise<CampaignPlace> {
  const { now } = await before.db.one<{ now: Date }>(sql`select domain_now() as now`)
  await before.end()
  const { begun } = await before.db.one<{ begun: Date }>(sql`select clock_timestamp() as begun`)
  const database = await copyDatabase()
  const db = openDatabase({ connectionString: database.url }, { pool_size: 2 })
  const backup = await openBackup(join(directory, 'backup'))
  const steps = await requireSteps(backup)
  await restoreBackup(db, backup, {
    steps,
    finish: async (tx) => {
      if (how === 'a backup') await renewGeneration(tx)
    },
  })
  await backup.close()
  await moveClock(db, now)
  await db.close()
  service = await openService({ database, env: { PARLEY_CLOCK: 'manual', ...env } })
  const { sandbox, directory: disk } = before.work
  after = new CampaignPlace(new Workplace(service, sandbox, disk), before.tenant)
  await after.begin()
  await after.until('the worker has put its journal back', async () => {
    const row = await after?.db.maybe(sql`select from workers where owes`)
    return row === undefined
  })
  await setDispatch(service.app, 'system', true)
  // The backup has leases of the worker that has ended; only then are there updates to wait for.
  await after.until('the worker drives every account', async () => {
    const row = await after?.db.maybe(sql`
      select from account_hosts h where not exists (
        select from workers w where w.id = h.lease_owner and w.started_at > ${begun} and h.lease_until > clock_timestamp())`)
    return row === undefined
  })
  return after
}

function someone(given: { readonly phone_visible_to?: readonly string[] } = {}) {
  const username = `restored_${made++}`
  const phone = `4930888${1_000 + made}`
  const { person_id } = before.work.sandbox.world.addPerson({
    ...{ name: 'Mara', username, phone: `+${phone}` },
    ...given,
  })
  return { person_id, username, phone }
}

/** The person has written to the account, which has stored what they are called. */
async function meets(account_id: string, person_id: number, username: string): Promise<void> {
  before.work.write(account_id, person_id, 'Hello, who is this?')
  await before.until('the name is stored', async () => {
    const row = await before.db.maybe(sql`
      select from contacts where account_id = ${account_id} and provider_id = ${person_id} and username = ${username}`)
    return row !== undefined
  })
}

/** POST /campaigns for one contact of the account. Returns the campaign's id. */
async function write(
  { work, tenant: { key } }: CampaignPlace,
  account_id: string,
  { username }: { readonly username: string },
  more: object = {},
): Promise<string> {
  const contacts = [{ identifier: `@${username}` }]
  const body = { account_id, contacts, message_text: 'Hello', daily_quota_per_account: 50, ...more }
  const headers = { 'idempotency-key': `restored-${made++}` }
  const answer = await work.service.post('/campaigns', { key, body, headers })
  expect(answer.status, answer.body.error).toBe(201)
  return (answer.body.campaign as { id: string }).id
}

const ends = async (place: CampaignPlace, id: string) =>
  (await place.recipients(id)).map(({ status, reason }) => [status, reason])
const sent = () => before.sent().map(({ person, text }) => [person, text])

/** Both ways of a first message. */
async function expectRefused(
  { work, tenant: { key } }: CampaignPlace,
  account_id: string,
  identifier: string,
) {
  const ask = (path: string, body: object) =>
    work.service.post(path, { key, body, headers: { 'idempotency-key': `restored-${made++}` } })
  const started = await ask('/chats/start', { account_id, identifier })
  expect([started.status, started.body.code], identifier).toEqual([409, 'identity_suppressed'])
  const body = { account_id, contacts: [{ identifier }], message_text: 'Hello', daily_quota_per_account: 50 }
  const created = await ask('/campaigns', body)
  expect([created.status, created.body.code], identifier).toEqual([400, 'suppressed_recipient'])
}

describe.each(['a backup', 'a standby'] as const)('after %s from before has taken over', (how) => {
  test('who was listed under a number that A sees, or a former username, is written to by no account', async () => {
    const [a, b] = [await before.account(), await before.account()]
    const { workspace_id } = before.tenant
    const [seen, renamed] = [someone({ phone_visible_to: [a] }), someone()]
    await meets(a, seen.person_id, seen.username)
    await meets(a, renamed.person_id, renamed.username)
    await addSuppression(before.app, 'cli:ana', { workspace_id, phone: `+${seen.phone}` })
    await addSuppression(before.app, 'cli:ana', { workspace_id, username: renamed.username })
    before.work.sandbox.world.changePerson(renamed.person_id, { username: `${renamed.username}_new` })
    await meets(a, renamed.person_id, `${renamed.username}_new`)
    await backUp()
    const there = await restore(how)
    await there.until('B is ready', async () => (await there.work.status(b)) === 'READY')
    await expectRefused(there, b, `@${seen.username}`)
    await expectRefused(there, b, `@${renamed.username}_new`)
  })

  test.each(['before', 'after'])(
    'whom a campaign wrote to %s it gets no second message under another name',
    async (when) => {
      const account_id = await before.account()
      const { person_id, username, phone } = someone()
      const contacts = [{ contact: `username:${username}` }, { contact: `phone:${phone}` }]
      const { at } = await before.db.one<{ at: Date }>(sql`select domain_now() + interval '1 hour' as at`)
      const pool = [account_id]
      const id = await before.campaign({ kind: 'contacts', pool, contacts, scheduled_at: at })
      await before.db.run(sql`
      update campaign_recipients set next_action_at = next_action_at + interval '2 hours'
      where campaign_id = ${id} and contact = ${contacts[1]?.contact}`)
      if (when === 'after') await backUp()
      await before.advance(hour)
      expect(await before.statuses(id)).toEqual(['completed', 'queued'])
      if (when === 'before') await backUp()
      const there = await restore(how)
      await there.until('the message is known', async () => (await there.statuses(id))[0] === 'completed')
      await there.until('the other name has had its turn', async () => {
        await there.advance(hour)
        return (await there.statuses(id))[1] !== 'queued'
      })
      const ends = (await there.recipients(id)).map(({ status, reason }) => [status, reason])
      expect(ends).toEqual([
        ['completed', null],
        ['failed', 'duplicate'],
      ])
      expect(before.sent().map(({ person }) => person)).toEqual([person_id])
      const taken = await there.db.rows(sql`
      select p.number::text from campaign_people t join people p on p.id = t.person_id where t.campaign_id = ${id}`)
      expect(taken).toEqual([{ number: String(person_id) }])
    },
  )

  /** A knows both. They have swapped their names by the restore, which forgets that. */
  async function swapped() {
    const a = await before.account()
    const [one, other] = [someone(), someone()]
    for (const { person_id, username } of [one, other]) await meets(a, person_id, username)
    const swap = async () => {
      const { world } = before.work.sandbox
      world.changePerson(one.person_id, { username: other.username, phone: `+${other.phone}` })
      world.changePerson(other.person_id, { username: one.username, phone: `+${one.phone}` })
      await meets(a, one.person_id, other.username)
      await meets(a, other.person_id, one.username)
    }
    return { a, one, other, swap }
  }

  test('who was meant before the swap gets nothing in place of the other', async () => {
    const { a, one, swap } = await swapped()
    const { at } = await before.db.one<{ at: Date }>(sql`select domain_now() + interval '2 hours' as at`)
    const id = await write(before, a, one, { scheduled_at: at.toISOString() })
    await backUp()
    await swap()
    const there = await restore(how)
    await there.advance(3 * hour)
    expect(await ends(there, id)).toEqual([['failed', 'name_changed']])
    expect(sent()).toEqual([])
  })

  test('both are on the list if the name of one was, before they swapped', async () => {
    const { a, one, other, swap } = await swapped()
    const { workspace_id } = before.tenant
    await addSuppression(before.app, 'cli:ana', { workspace_id, username: one.username })
    await backUp()
    await swap()
    const there = await restore(how)
    await there.until('the swap is stored again', async () => {
      const row = await there.db.maybe(sql`
        select from contacts where account_id = ${a} and provider_id = ${other.person_id} and username = ${one.username}`)
      return row !== undefined
    })
    await expectRefused(there, a, `@${one.username}`)
    await expectRefused(there, a, `@${other.username}`)
  })

  test.each(['a bot', 'a channel'])('a name that %s has taken gets nothing', async (taker) => {
    const a = await before.account()
    const one = someone()
    await meets(a, one.person_id, one.username)
    await backUp()
    const { world } = before.work.sandbox
    if (taker === 'a bot') {
      const bot = world.addPerson({ name: 'Shop', kind: 'bot', username: `shop_${made++}_bot` })
      world.changePerson(bot.person_id, { username: one.username })
    } else {
      world.changePerson(one.person_id, { username: `${one.username}_2` })
      world.addGroup({ account_id: a, name: 'News', username: one.username, members: [] })
    }
    const there = await restore(how)
    const id = await write(there, a, one)
    await there.advance(hour)
    expect(await ends(there, id)).toEqual([['failed', 'identity_ineligible']])
    expect(sent()).toEqual([])
  })

  describe.each(['the message', 'what follows it'])('from before %s', (what) => {
    const steps = [24, 48].map((wait_hours, at) => ({
      ...{ branch: 'no_reply', wait_hours },
      variants: [`Step ${at + 1}`],
    }))

    const isOver = (status = '') => !['queued', 'submitting', 'waiting'].includes(status)

    /** A campaign of A has written; then comes what is to end it. Returns the end in the restored copy. */
    async function ended(follows: (account_id: string, person_id: number) => unknown) {
      const [a, b] = [await before.account(), await before.account()]
      const one = someone()
      for (const account_id of [a, b]) await meets(account_id, one.person_id, one.username)
      const { at } = await before.db.one<{ at: Date }>(sql`select domain_now() + interval '1 hour' as at`)
      const id = await write(before, a, one, {
        ...{ steps, stop_on_own_message: true, scheduled_at: at.toISOString() },
      })
      if (what === 'the message') await backUp()
      await before.advance(2 * hour)
      expect(await before.statuses(id)).toEqual(['waiting'])
      if (what !== 'the message') await backUp()
      await follows(b, one.person_id)
      await before.until('the sequence has ended', async () => (await before.statuses(id))[0] !== 'waiting')
      const there = await restore(how)
      await there.until('it has ended again', async () => isOver((await there.statuses(id))[0]))
      await there.advance(96 * hour)
      expect(sent()).toEqual([[one.person_id, 'Hello']])
      return ends(there, id)
    }

    test('a reply to another account ends the sequence', async () => {
      const reply = (account_id: string, person_id: number) =>
        before.work.write(account_id, person_id, 'Yes please, call me')
      expect(await ended(reply)).toEqual([['replied', null]])
    })

    test('a message by hand from another account ends the sequence', async () => {
      const byHand = (account_id: string, person_id: number) =>
        writeFromPhone(before.work.sandbox.world, { account_id, person_id, text: 'As we agreed' })
      expect(await ended(byHand)).toEqual([['completed', 'answered_by_hand']])
    })
  })
})
