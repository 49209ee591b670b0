import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { copyDatabase } from '../../../test/harness/database.ts'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { openNeighbour } from '../../../test/harness/worker.ts'
import { writeBackup } from '../../db/backup.ts'
import { openBackup } from '../../db/backup-file.ts'
import { openDatabase } from '../../db/pool.ts'
import { requireSteps, restoreBackup } from '../../db/restore.ts'
import { sql } from '../../db/sql.ts'
import { claimAccounts, revokeLease } from '../../ledger/leases.ts'
import { createAccount, noteConnected, noteTrouble } from './accounts.ts'
import { openAccountStore, sealSession } from './platform-store.ts'

let service: Service
let tenant: Tenant

beforeAll(async () => {
  service = await openService()
  tenant = await service.tenant()
})
afterAll(() => service.close())

/** A new account, held by a worker of its own. */
async function hold() {
  const { app } = service
  const { workspace_id } = tenant
  const { id: account_id } = await createAccount(app, 'system', {
    workspace_id,
    platform: 'telegram',
    name: 'Sales',
  })
  const worker_id = randomUUID()
  const claim = { worker_id, platform: 'telegram', limit: 100, takeover_seconds: 0, neighbours: [] }
  const lease = (await claimAccounts(app.db, claim)).find((each) => each.account_id === account_id)
  const held = { worker_id, account_id, workspace_id, epoch: lease?.epoch ?? '' }
  return { account_id, held, store: openAccountStore(app, held) }
}

let users = 100

async function keepSession(account_id: string, session: string): Promise<void> {
  const sealed = sealSession(service.app.secrets, account_id, Buffer.from(session))
  await service.app.db.run(sql`
    insert into platform_sessions (account_id, platform, platform_user_id, sealed)
    values (${account_id}, 'telegram', ${users++}, ${sealed})`)
}

async function textOf(session: Promise<Uint8Array | null>): Promise<string | null> {
  const bytes = await session
  return bytes && Buffer.from(bytes).toString()
}

describe('the session of an account', () => {
  test('is null before a login, and then what the login stored', async () => {
    const { account_id, store } = await hold()
    expect(await store.readSession()).toBeNull()
    await keepSession(account_id, 'a canary key')
    expect(await textOf(store.readSession())).toBe('a canary key')
  })

  test('is sealed: a copy of the database without the secret opens no session', async () => {
    const { account_id, held } = await hold()
    await keepSession(account_id, 'a canary key')
    const { row } = await service.app.db.one<{ row: string }>(sql`
      select encode(sealed, 'escape') as row from platform_sessions where account_id = ${account_id}`)
    expect(row).not.toContain('canary')
    const other = await openNeighbour(service.database.url, {
      PARLEY_SECRET: 'another secret that is long enough',
    })
    expect(await openAccountStore(other, held).readSession()).toBeNull()
    await other.close()
  })

  test('comes back with a backup, and opens where the secret is', async () => {
    const { account_id, held, store } = await hold()
    await keepSession(account_id, 'a canary key')
    await store.writePeers([{ number: '9', text: 'nine' }])
    const directory = await mkdtemp(join(tmpdir(), 'parley-platform-store-'))
    const file = join(directory, 'one.backup')
    const header = async () => ({ parley_version: '0.0.0', secret: null, secret_id: 'which' })
    await writeBackup(service.app.db, file, { header, made: async () => {} })
    const copy = await copyDatabase()
    const db = openDatabase({ connectionString: copy.url }, { pool_size: 2 })
    const backup = await openBackup(file)
    await restoreBackup(db, backup, { steps: await requireSteps(backup), finish: async () => {} })
    const restored = openAccountStore({ ...service.app, db }, held)
    expect(await textOf(restored.readSession())).toBe('a canary key')
    expect(await restored.listPeers({ after: null, limit: 9 })).toEqual([{ number: '9', text: 'nine' }])
    await backup.close()
    await db.close()
    await copy.drop()
    await rm(directory, { recursive: true })
  })

  test('is replaced by its holder alone', async () => {
    const { account_id, store } = await hold()
    await keepSession(account_id, 'a canary key')
    await store.writeSession(Buffer.from('with one more'))
    expect(await textOf(store.readSession())).toBe('with one more')
    await service.app.db.transaction((tx) => revokeLease(tx, account_id))
    await expect(store.writeSession(Buffer.from('too late'))).rejects.toThrow('lease')
    expect(await textOf(store.readSession())).toBe('with one more')
  })

  test('is bound to its row: copied to another account it does not open', async () => {
    const one = await hold()
    const two = await hold()
    await keepSession(one.account_id, 'the key of one')
    await keepSession(two.account_id, 'the key of two')
    await service.app.db.run(sql`
      update platform_sessions set
        sealed = (select sealed from platform_sessions where account_id = ${one.account_id})
      where account_id = ${two.account_id}`)
    expect(await textOf(one.store.readSession())).toBe('the key of one')
    expect(await two.store.readSession()).toBeNull()
  })
})

describe('the peers of an account', () => {
  test('are added, replaced, and listed in pages by number', async () => {
    const { store } = await hold()
    const other = await hold()
    await store.writePeers([
      { number: '9', text: 'nine' },
      { number: '-5', text: 'a group' },
      { number: '12', text: 'twelve' },
    ])
    await store.writePeers([{ number: '9', text: 'nine again' }])
    await other.store.writePeers([{ number: '7', text: 'of another account' }])
    const first = await store.listPeers({ after: null, limit: 2 })
    expect(first).toEqual([
      { number: '-5', text: 'a group' },
      { number: '9', text: 'nine again' },
    ])
    expect(await store.listPeers({ after: '9', limit: 2 })).toEqual([{ number: '12', text: 'twelve' }])
  })

  test('are not written by a worker that has lost the lease, whichever worker holds it now', async () => {
    const { account_id, held, store } = await hold()
    await service.app.db.transaction((tx) => revokeLease(tx, account_id))
    const late = store.writePeers([{ number: '1', text: 'late' }])
    await expect(late).rejects.toMatchObject({ name: 'LeaseLost' })
    const again = { worker_id: held.worker_id, platform: 'telegram', limit: 100 }
    await claimAccounts(service.app.db, { ...again, takeover_seconds: 0, neighbours: [] })
    const older = store.writePeers([{ number: '1', text: 'of an older lease' }])
    await expect(older).rejects.toMatchObject({ name: 'LeaseLost' })
    expect(await store.listPeers({ after: null, limit: 9 })).toEqual([])
  })
})

describe('trouble', () => {
  const statusOf = (account_id: string) =>
    service.app.db.one(sql`select status, status_reason from accounts where id = ${account_id}`)

  test('of an ended session counts only while its lease is held', async () => {
    const { account_id, held } = await hold()
    await service.app.db.transaction((tx) => revokeLease(tx, account_id))
    const revoked = { status: 'needs_login', reason: 'Revoked.' } as const
    await noteTrouble(service.app, held, revoked)
    expect(await statusOf(account_id)).toEqual({ status: 'CONNECTING', status_reason: expect.anything() })
    const other = await hold()
    await noteTrouble(service.app, other.held, revoked)
    expect(await statusOf(other.account_id)).toEqual({ status: 'NEEDS_LOGIN', status_reason: 'Revoked.' })
  })

  test('keeps its sentence when a refused call reports the same without one', async () => {
    const { account_id, held } = await hold()
    await noteTrouble(service.app, held, { status: 'restricted', reason: 'Banned.' })
    await noteTrouble(service.app, held, { status: 'restricted', reason: 'restricted' })
    expect(await statusOf(account_id)).toEqual({ status: 'RESTRICTED', status_reason: 'Banned.' })
    await noteTrouble(service.app, held, { status: 'needs_login', reason: 'needs_login' })
    expect(await statusOf(account_id)).toEqual({ status: 'NEEDS_LOGIN', status_reason: 'needs_login' })
  })

  const self = { id: '7', name: 'Sales', username: null, phone: null, kind: 'self' } as const

  test('is not hidden by a session that connected under an earlier lease', async () => {
    const { account_id, held } = await hold()
    await service.app.db.transaction((tx) => revokeLease(tx, account_id))
    await noteConnected(service.app, { held, coldRamp: false }, self)
    expect(await statusOf(account_id)).toMatchObject({ status: 'CONNECTING' })
  })

  test.each(['NEEDS_LOGIN', 'RESTRICTED', 'DISABLED'])(
    'is not undone by a session of a %s account that connects late',
    async (status) => {
      const { account_id, held } = await hold()
      await service.app.db.run(sql`update accounts set status = ${status} where id = ${account_id}`)
      await noteConnected(service.app, { held, coldRamp: false }, self)
      expect(await statusOf(account_id)).toMatchObject({ status })
    },
  )
})
