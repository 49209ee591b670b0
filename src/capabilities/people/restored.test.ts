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
})
