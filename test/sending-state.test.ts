/** Where an operator, a load balancer and a caller see that nothing can be sent: /readyz, /me, the accounts, the log. */
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { App } from '../src/app.ts'
import { createAccount, listAccounts, noWorker } from '../src/capabilities/accounts/accounts.ts'
import { setDispatch } from '../src/capabilities/gates/gates.ts'
import { sql } from '../src/db/sql.ts'
import type { Readiness } from '../src/http/health.ts'
import { readInstance } from '../src/ledger/restore-counter.ts'
import { noteHeartbeat, noteOwing } from '../src/ledger/workers.ts'
import { newId } from '../src/lib/ids.ts'
import { loops } from '../src/lists/loops.ts'
import { undrivenLoop } from '../src/worker/undriven.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { hangMs, until } from './harness/process.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'
import { openWorkplace, type Workplace } from './harness/worker.ts'

const platformRoutes = ['send_message', 'start_chat', 'set_read_state']

async function capabilities(service: Service, key: string): Promise<Record<string, boolean>> {
  return (await service.get('/me', { key })).body.capabilities as Record<string, boolean>
}

async function readyz(service: Service) {
  const response = await fetch(`${service.url}/readyz`)
  const { checks } = (await response.json()) as { checks: Record<string, string> }
  return { status: response.status, checks }
}

describe('sending is switched off', () => {
  let service: Service
  let tenant: Tenant
  let journal = 'elsewhere'
  beforeAll(async () => {
    const readiness: Readiness = { worker: () => 'elsewhere', journal: () => journal, stopping: () => false }
    service = await openService({ readiness })
    tenant = await service.tenant()
    await service.account(tenant.workspace_id)
    await service.app.db.run(sql`
      insert into account_hosts (account_id, workspace_id, lease_owner, lease_epoch, lease_until, observed_at)
      select id, workspace_id, ${newId()}, 1, real_now() + interval '1 day', real_now() + interval '1 day' from accounts`)
  })
  afterAll(() => service.close())

  test('200 from /readyz, which says so, and /me says what is not possible', async () => {
    const before = await capabilities(service, tenant.key)
    expect(await readyz(service)).toMatchObject({
      status: 200,
      checks: { dispatch: 'on', journal: 'elsewhere' },
    })
    await setDispatch(service.app, 'system', false)
    expect(await readyz(service)).toMatchObject({ status: 200, checks: { dispatch: 'off' } })
    const off = await capabilities(service, tenant.key)
    for (const [name, possible] of Object.entries(before)) {
      expect([name, off[name]]).toEqual([name, possible && !platformRoutes.includes(name)])
    }
    expect(before).toMatchObject({ send_message: true, start_chat: true, set_read_state: true })
    await setDispatch(service.app, 'system', true)
    expect(await capabilities(service, tenant.key)).toEqual(before)
  })

  test('200 from /readyz while a worker still has to put its journals back, and nothing is possible', async () => {
    const worker_id = newId()
    await noteOwing(service.app.db, worker_id, true)
    expect(await readyz(service)).toMatchObject({ status: 200, checks: { dispatch: 'owing' } })
    expect(await capabilities(service, tenant.key)).toMatchObject({ send_message: false, list_chats: true })
    await noteOwing(service.app.db, worker_id, false)
    expect(await capabilities(service, tenant.key)).toMatchObject({ send_message: true })
  })

  test('200 from /readyz with a journal that cannot be written', async () => {
    journal = 'unwritable'
    expect(await readyz(service)).toMatchObject({ status: 200, checks: { journal: 'unwritable' } })
  })

  test('200 from /me without the list of workers, and nothing is possible', async () => {
    await service.app.db.run(sql`alter table workers rename to workers_away`)
    expect(await capabilities(service, tenant.key)).toMatchObject({ send_message: false, list_chats: true })
    expect(await readyz(service)).toMatchObject({ status: 200, checks: { dispatch: 'unknown' } })
    await service.app.db.run(sql`alter table workers_away rename to workers`)
  })
})

describe('/readyz?role=send', () => {
  let service: Service
  beforeAll(async () => {
    const readiness: Readiness = {
      worker: () => 'elsewhere',
      journal: () => 'elsewhere',
      stopping: () => false,
    }
    service = await openService({ readiness })
  })
  afterAll(() => service.close())

  test('503 while sending is off or no worker is alive, and 200 otherwise', async () => {
    const ask = async (query: string) => {
      const response = await fetch(`${service.url}/readyz${query}`)
      const { checks } = (await response.json()) as { checks?: Record<string, string> }
      return [response.status, checks?.sending]
    }
    expect(await ask('')).toEqual([200, undefined])
    expect(await ask('?role=send')).toEqual([503, 'unavailable'])
    const worker_id = newId()
    await noteHeartbeat(service.app.db, { worker_id, platforms: ['sandbox'] })
    expect(await ask('?role=send')).toEqual([200, 'ok'])
    await setDispatch(service.app, 'system', false)
    expect(await ask('?role=send')).toEqual([503, 'unavailable'])
    await setDispatch(service.app, 'system', true)
    await service.app.db.run(sql`update workers set beat_at = real_now() - interval '1 minute'`)
    expect(await ask('?role=send')).toEqual([503, 'unavailable'])
    expect(await ask('')).toEqual([200, undefined])
    expect(await ask('?role=other')).toEqual([400, undefined])
  })
})

describe.runIf(process.platform === 'linux')('a worker whose disk is full', () => {
  let workplace: Workplace
  beforeAll(async () => {
    workplace = await openWorkplace()
  })
  afterAll(() => workplace.close())

  test('is reported: in its metrics, to callers, and for the accounts that it gave up', async () => {
    const { service, directory } = workplace
    const tenant = await service.tenant()
    // Every write to this journal finds the disk full.
    const id = newId()
    await mkdir(join(directory, 'ledger'))
    // A disk that knows its database, so that the journal does not count as another one's.
    const known = JSON.stringify(await readInstance(service.app.db))
    await writeFile(join(directory, 'ledger', 'instance.json'), known)
    await symlink('/dev/full', join(directory, 'ledger', `${id}.0.jsonl`))
    const app: App = { ...service.app, sources: firstId(service.app, id) }
    const platforms = new Map([['sandbox', workplace.sandbox.platform]])
    const worker = await assembleWorker(app, { platforms, directory, loops })
    const running = runWorker(app, worker)
    const account_id = await workplace.connected(tenant)
    const person = workplace.person()
    workplace.write(account_id, person, 'hello')
    await workplace.untilStored(account_id, 1)
    expect(worker.journal()).toBe('ok')
    expect(await app.metrics.metrics()).toContain('\nparley_journal_writable 1\n')
    expect(await capabilities(service, tenant.key)).toMatchObject({ send_message: true })

    const { status } = await service.post('/messages', {
      key: tenant.key,
      body: { account_id, chat_id: `platform:chat:${person}`, text: 'Good morning' },
      headers: { 'idempotency-key': 'full disk' },
    })
    expect(status).toBe(503)
    expect(worker.journal()).toBe('unwritable')
    await until('every process knows it', hangMs, async () => {
      return (await capabilities(service, tenant.key)).send_message === false
    })
    const text = await app.metrics.metrics()
    expect(text).toContain('\nparley_journal_writable 0\n')
    expect(text).toContain('\nparley_workers{state="without_journal"} 1\n')
    expect(text).toContain('\nparley_accounts_without_worker 1\n')
    await until('the account says why', hangMs, async () => {
      const [account] = await listAccounts(service.app.db, tenant.workspace_id)
      return account?.status_reason === noWorker
    })
    const said = () => service.log.filter((line) => line.includes('no worker that could drive')).length
    await until('the log says it', hangMs, () => said() > 0)
    expect(said()).toBe(1)
    await running.stop()
  })
})

/** The worker's own id is the first that it requests. */
function firstId({ sources }: App, id: string): App['sources'] {
  let asked = false
  return {
    ...sources,
    newId: () => {
      if (asked) return sources.newId()
      asked = true
      return id
    },
  }
}

describe('accounts without a worker', () => {
  let service: Service
  let tenant: Tenant
  const loop = undrivenLoop()
  beforeAll(async () => {
    service = await openService()
    tenant = await service.tenant()
    // The first step gives time to workers that start at the same moment.
    await loop.step(service.app, new AbortController().signal)
  })
  afterAll(() => service.close())

  const step = () => loop.step(service.app, new AbortController().signal)
  const logLinesWith = (text: string) =>
    service.log.filter((line) => line.includes(text)).map((line) => JSON.parse(line))
  async function reasons(): Promise<Record<string, string | null>> {
    const accounts = await listAccounts(service.app.db, tenant.workspace_id)
    return Object.fromEntries(accounts.map(({ status, status_reason }) => [status, status_reason]))
  }

  test('a new one reports it immediately, and a warning names those that lose theirs', async () => {
    const made = await createAccount(service.app, 'system', {
      workspace_id: tenant.workspace_id,
      platform: 'sandbox',
      name: 'Sales',
    })
    expect(made).toMatchObject({ status: 'CONNECTING', status_reason: noWorker })
    await service.app.db.run(sql`update accounts set status_reason = null`)
    await service.account(tenant.workspace_id, 'NEEDS_LOGIN')
    await service.app.db.run(
      sql`update accounts set status_reason = 'Somebody signed it out.' where status = 'NEEDS_LOGIN'`,
    )
    await step()
    const undriven = { CONNECTING: noWorker, NEEDS_LOGIN: 'Somebody signed it out.' }
    expect(await reasons()).toEqual(undriven)
    await step()
    expect(logLinesWith('no worker that could drive')).toMatchObject([
      { level: 'warn', platform: 'sandbox', accounts: 1 },
    ])

    const worker_id = newId()
    await noteHeartbeat(service.app.db, { worker_id, platforms: ['another'] })
    await step()
    expect(await reasons()).toEqual(undriven)
    await noteHeartbeat(service.app.db, { worker_id, platforms: ['sandbox'] })
    await step()
    expect(await reasons()).toEqual({ ...undriven, CONNECTING: null })
    expect(logLinesWith('accounts have a worker again')).toMatchObject([{ level: 'info', accounts: 1 }])

    // A worker that restarted a moment ago is not missed; one that has been silent for long is.
    await service.app.db.run(sql`update workers set stopped_at = real_now()`)
    await step()
    expect(await reasons()).toEqual({ ...undriven, CONNECTING: null })
    await service.app.db.run(sql`update workers set beat_at = real_now() - interval '40 s'`)
    await step()
    expect(await reasons()).toEqual(undriven)
    expect(logLinesWith('no worker that could drive')).toHaveLength(2)
  })
})
