import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { runVerb } from '../../../test/harness/operator.ts'
import { hangMs, until } from '../../../test/harness/process.ts'
import type { Service, Tenant } from '../../../test/harness/service.ts'
import { Receiver, WebhookPlace } from '../../../test/harness/webhooks.ts'
import { openNeighbour, testSecret } from '../../../test/harness/worker.ts'
import type { OpenApp } from '../../cli/open.ts'
import { sql } from '../../db/sql.ts'
import { noteDrives, noteHeartbeat, noteOwing } from '../../ledger/workers.ts'
import { newId } from '../../lib/ids.ts'
import { setAccountEnabled } from '../accounts/accounts.ts'
import { setDispatch } from '../gates/gates.ts'

import { makeAlertLoops } from './alerts.ts'
import { beatOutside } from './heartbeat.ts'
import { deliverPosts } from './posts.ts'
import { noteProblems } from './state.ts'

interface Alert {
  readonly text: string
  readonly kind: string
  readonly at: string
}

let receiver: Receiver
let place: WebhookPlace
let service: Service
let tenant: Tenant
let env: Record<string, string>
beforeAll(async () => {
  receiver = await Receiver.open()
  env = { PARLEY_ALERT_URL: receiver.url, PARLEY_WEBHOOK_ALLOW: '127.0.0.1' }
  place = await WebhookPlace.open(env)
  service = place.service
  tenant = await service.tenant('canary workspace')
})
afterEach(async () => {
  receiver.received.length = 0
  receiver.status(200)
  await service.app.db.pool.query(`delete from alerts; delete from alert_posts; delete from workers;
    update accounts set status = 'READY'; update webhooks set active = true, disabled_at = null`)
  await setDispatch(service.app, 'system', true)
})
afterAll(async () => {
  await place.close()
  await receiver.close()
})

/** The worker that drives the accounts of every test but one. */
const healthy = newId()
let hasWorker = true

/** What a process does in one turn of its two loops. */
async function turn(app: OpenApp = service.app): Promise<void> {
  if (hasWorker) await noteHeartbeat(app.db, { worker_id: healthy, platforms: ['sandbox'] })
  await noteProblems(app)
  while (await deliverPosts(app, receiver.url));
}

const alerts = () => receiver.received.map(({ body }) => JSON.parse(body) as Alert)
const heard = () => alerts().map(({ kind, text }) => `${kind}: ${text}`)

/** Lets this much time pass for what is stored. */
async function pass(interval: string): Promise<void> {
  await service.app.db.pool.query(
    `update alerts set wrong_since = wrong_since - $1::interval, right_since = right_since - $1::interval,
       begun_at = begun_at - $1::interval, begins = array(select at - $1::interval from unnest(begins) as at)`,
    [interval],
  )
  await service.app.db.pool.query(`update alert_posts set due_at = due_at - $1::interval`, [interval])
}

interface Kind {
  readonly kind: string
  begin(): Promise<unknown>
  end(): Promise<unknown>
  /** How long it lasts before it is posted. */
  readonly patience?: string
  /** It concerns the whole instance: each begin is posted, up to three an hour. */
  readonly instance?: true
  readonly said: RegExp
  readonly over: RegExp
}

const worker_id = newId()
const beat = (more: object) => noteHeartbeat(service.app.db, { worker_id, platforms: ['sandbox'], ...more })
let account_id: string
let held_id: string
let webhook_id: string

const kinds: readonly Kind[] = [
  {
    kind: 'account_needs_person',
    async begin() {
      account_id ??= await service.account(tenant.workspace_id)
      await service.app.db.run(
        sql`update accounts set name = 'canary name', status = 'NEEDS_LOGIN' where id = ${account_id}`,
      )
    },
    end: () => service.app.db.run(sql`update accounts set status = 'READY' where id = ${account_id}`),
    said: /^The account acc_\S+ \(sandbox\) needs attention: its status is NEEDS_LOGIN\.$/,
    over: /^Over: the account acc_\S+ \(sandbox\) no longer needs attention\.$/,
  },
  {
    kind: 'campaigns_held',
    async begin() {
      held_id ??= await service.account(tenant.workspace_id)
      const { workspace_id } = tenant
      await service.app.db.run(sql`
        insert into account_hosts (account_id, workspace_id, campaigns_held_at, campaigns_held_by)
        values (${held_id}, ${workspace_id}, now(), 'NEW_LIMIT')
        on conflict (account_id) do update set campaigns_held_at = now(), campaigns_held_by = 'NEW_LIMIT'`)
    },
    end: () => setAccountEnabled(service.app, 'system', { id: held_id, enabled: true }),
    said: /^Sends kept ending with the unknown error NEW_LIMIT, so the campaign messages of the account acc_\S+ \(sandbox\) wait\. /,
    over: /^Over: the campaign messages of the account acc_\S+ \(sandbox\) no longer wait for a person\.$/,
  },
  {
    kind: 'sending_off',
    instance: true,
    begin: () => setDispatch(service.app, 'system', false, 'canary reason'),
    end: () => setDispatch(service.app, 'system', true),
    said: /^Sending is off\. /,
    over: /^Over: sending is on again\.$/,
  },
  {
    kind: 'worker_owes',
    instance: true,
    begin: () => noteOwing(service.app.db, worker_id, true),
    end: () => noteOwing(service.app.db, worker_id, false),
    said: new RegExp(`^Nothing is sent before the worker ${worker_id} has replayed its journals\\. `),
    over: new RegExp(`^Over: sending no longer waits for the worker ${worker_id}\\.$`),
  },
  {
    kind: 'webhook_disabled',
    async begin() {
      webhook_id ??= (await place.endpoint(tenant, 'https://example.com/canary')).id
      await service.app.db.run(
        sql`update webhooks set active = false, disabled_at = now() where id = ${webhook_id}`,
      )
    },
    end: () => place.call('PATCH', tenant, webhook_id, { active: true }),
    said: /^The webhook \S+ was disabled after too many failures\.$/,
    over: /^Over: the webhook \S+ is active again, or was deleted\.$/,
  },
  {
    kind: 'disk_short',
    instance: true,
    begin: () => beat({ disk_free: 5 * 1024 ** 2 }),
    end: () => beat({ disk_free: 5 * 1024 ** 3 }),
    said: new RegExp(`^The disk of the worker ${worker_id} has 5 MiB left\\.$`),
    over: /^Over: the disk of every worker has room again\.$/,
  },
  {
    kind: 'database_short',
    instance: true,
    begin: () => limitConnections(6),
    end: () => limitConnections(-1),
    said: /^The database has -?\d of 6 connections left\.$/,
    over: /^Over: the database has connections left again\.$/,
  },
  {
    kind: 'loop_failing',
    begin: () => beat({ failing: ['sweep'] }),
    end: () => beat({ failing: [] }),
    patience: '5 minutes',
    said: /^The background loop sweep has failed for five minutes\. /,
    over: /^Over: the background loop sweep works again\.$/,
  },
  {
    kind: 'accounts_without_worker',
    instance: true,
    async begin() {
      await service.account(tenant.workspace_id)
      hasWorker = false
      await service.app.db.run(sql`delete from workers`)
    },
    async end() {
      hasWorker = true
    },
    said: /^No running worker can drive \d+ accounts?: nothing is sent from there, and nothing arrives\. Start a worker\.$/,
    over: /^Over: every account has a worker again\.$/,
  },
  {
    kind: 'journal_unwritable',
    instance: true,
    async begin() {
      await beat({})
      await noteDrives(service.app.db, worker_id, false)
    },
    end: () => noteDrives(service.app.db, worker_id, true),
    said: new RegExp(
      `^The worker ${worker_id} cannot write its journal, and drives no account\\. Its log says why\\.$`,
    ),
    over: /^Over: every worker can write its journal again\.$/,
  },
  {
    kind: 'queue_old',
    instance: true,
    async begin() {
      const { workspace_id } = tenant
      const account = await service.account(workspace_id)
      await service.app.db.run(sql`
        insert into operations (id, workspace_id, kind, effect, idempotency_key, fingerprint, state, account_id, chat_id,
          payload, random_id, queued_no, expires_at, created_at)
        values (${newId()}, ${workspace_id}, 'send_message', 'platform', ${newId()}, ${Buffer.alloc(32)}, 'queued', ${account},
          42, '{"text": "canary", "file": null}', 1, 1, real_now() + interval '1 hour', domain_now() - interval '20 seconds')`)
    },
    // The ledger refuses to delete an operation that is not over.
    end: () => service.app.db.pool.query('truncate operations cascade'),
    said: /^An operation has waited for a worker for \d+ s: the workers do not keep up\.$/,
    over: /^Over: no operation waits long for a worker any more\.$/,
  },
]

/** Of the service's own database, so that other tests of the cluster keep theirs. */
async function limitConnections(most: number): Promise<void> {
  const { name } = await service.app.db.one<{ name: string }>(sql`select current_database() as name`)
  // Two connections of this test are open, so at most four are left.
  await service.app.db.pool.query(`alter database ${name} connection limit ${most}`)
  if (most > 0) await Promise.all([1, 2, 3].map(() => service.app.db.pool.query('select pg_sleep(0.1)')))
}

describe.each(kinds)('an alert of the kind $kind', ({ kind, begin, end, patience, instance, said, over }) => {
  const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  const beginning = { kind, text: expect.stringMatching(said), at }
  const ending = { kind, text: expect.stringMatching(over), at }
  async function beginOnce(): Promise<void> {
    await begin()
    await turn()
    if (patience) await pass(patience)
    await turn()
  }
  async function endOnce(): Promise<void> {
    await end()
    await turn()
    await pass('61 seconds')
    await turn()
  }

  test('is posted when it begins and when it is over, once each, and not again and again within an hour', async () => {
    await turn()
    expect(heard()).toEqual([])
    await begin()
    await turn()
    if (patience) {
      expect(heard()).toEqual([])
      await pass(patience)
      await turn()
    }
    expect(alerts()).toEqual([beginning])
    await turn()
    expect(alerts()).toHaveLength(1)
    await endOnce()
    const once = [beginning, ending]
    expect(alerts()).toEqual(once)
    await beginOnce()
    const more = instance ? [...once, ...once] : []
    if (instance) {
      expect(alerts()).toEqual([...once, beginning])
      await endOnce()
      await beginOnce()
      expect(alerts()).toEqual([...once, ...once, beginning])
      await endOnce()
      // The fourth within an hour is one too many.
      await beginOnce()
    }
    expect(alerts()).toEqual([...once, ...more])
    await pass('1 hour')
    await turn()
    expect(alerts()).toEqual([...once, ...more, beginning])
    await endOnce()
    expect(alerts()).toEqual([...once, ...more, ...once])
    expect(JSON.stringify(alerts())).not.toContain('canary')
  })
})

describe('alerts', () => {
  const off = () => setDispatch(service.app, 'system', false)
  const on = () => setDispatch(service.app, 'system', true)

  test('what begins and is over within the silence is not posted at all', async () => {
    for (let n = 0; n < 4; n++) {
      await off()
      await turn()
      await on()
      await turn()
    }
    await pass('1 hour')
    await turn()
    expect(heard()).toHaveLength(6)
  })

  test('that an operator tries out do not mute the failure a minute later', async () => {
    await off()
    await turn()
    await on()
    await turn()
    await pass('1 minute')
    await off()
    await turn()
    expect(heard().slice(2)).toEqual([expect.stringMatching(/^sending_off: Sending is off/)])
    await on()
    await turn()
  })

  test('about another subject are posted all the same', async () => {
    const { workspace_id } = tenant
    const one = await service.account(workspace_id, 'NEEDS_LOGIN')
    await turn()
    const other = await service.account(workspace_id, 'RESTRICTED')
    await turn()
    expect(heard()).toEqual([expect.stringContaining(one), expect.stringContaining(other)])
    await service.app.db.run(sql`update accounts set status = 'READY' where id in (${one}, ${other})`)
    await turn()
    expect(heard()).toHaveLength(4)
  })

  test('about more than 1,000 accounts or webhooks: none is over before its own problem is', async () => {
    const { workspace_id } = tenant
    const rows = async () => {
      const { count } = await service.app.db.one<{ count: number }>(
        sql`select count(*)::int as count from alerts where right_since is null`,
      )
      return count
    }
    await service.app.db.run(sql`
      insert into accounts (id, workspace_id, platform, name, status)
      select 'acc_' || lpad(n::text, 20, '0'), ${workspace_id}, 'sandbox', 'many', 'NEEDS_LOGIN'
      from generate_series(1, 1001) n`)
    await service.app.db.run(sql`
      insert into webhooks (id, workspace_id, url, events, secret, position, active, disabled_at)
      select gen_random_uuid(), ${workspace_id}, 'https://acme.example', '{*}', '', 0, false, real_now()
      from generate_series(1, 1001) n`)
    await noteHeartbeat(service.app.db, { worker_id: healthy, platforms: ['sandbox'] })
    await noteProblems(service.app)
    expect(await rows()).toBe(2_002)
    await service.app.db.run(sql`delete from accounts where name = 'many'`)
    await service.app.db.run(sql`delete from webhooks where url = 'https://acme.example'`)
  })

  test('a restart of the worker that reported it ends none', async () => {
    await beat({ disk_free: 1 })
    await turn()
    await beat({ disk_free: null })
    await turn()
    await beat({ disk_free: 1 })
    await turn()
    await pass('61 seconds')
    await turn()
    expect(alerts()).toHaveLength(1)
  })

  test('are retried, in their order, until the receiver accepts them', async () => {
    receiver.status(500)
    await off()
    await turn()
    await on()
    await turn()
    expect(heard()).toHaveLength(1)
    await pass('10 seconds')
    await turn()
    expect(heard()).toHaveLength(2)
    receiver.status(200)
    await pass('1 minute')
    await turn()
    expect(heard().slice(2)).toEqual([
      expect.stringContaining('Sending is off'),
      expect.stringContaining('Over: sending is on'),
    ])
    await pass('2 days')
    await turn()
    expect(heard()).toHaveLength(4)
  })

  test('are lost by no restart, whenever it comes', async () => {
    await off()
    await noteHeartbeat(service.app.db, { worker_id: healthy, platforms: ['sandbox'] })
    await noteProblems(service.app)
    // Claimed by a process that dies before it records what came of it.
    receiver.answer = (response) => void response.destroy()
    await deliverPosts(service.app, receiver.url)
    await service.app.db.pool.query(
      `update alert_posts set due_at = real_now() + interval '1 minute', last_error = null`,
    )
    const next = await openNeighbour(service.database.url, env)
    receiver.received.length = 0
    receiver.status(200)
    await turn(next)
    expect(heard()).toEqual([])
    await pass('1 minute')
    await turn(next)
    expect(heard()).toEqual([expect.stringContaining('Sending is off')])
    await on()
    await turn(next)
    expect(heard()).toHaveLength(2)
    await next.close()
  })

  test('of several processes are posted once', async () => {
    const neighbours = await Promise.all([1, 2, 3].map(() => openNeighbour(service.database.url, env)))
    await off()
    await Promise.all(neighbours.map((app) => turn(app)))
    await turn()
    expect(heard()).toHaveLength(1)
    await on()
    await Promise.all(neighbours.map((app) => turn(app)))
    await turn()
    expect(heard()).toHaveLength(2)
    for (const app of neighbours) await app.close()
  })

  test('are posted by the loops of a worker', async () => {
    await off()
    await place.work()
    // On a busy machine the loops may also find that no worker has beaten lately.
    await until('the alert arrives', hangMs, () => heard().some((text) => text.includes('Sending is off')))
    await place.rest()
    await on()
  })

  test('never reach an address that webhooks may not reach', async () => {
    const refusing = await openNeighbour(service.database.url, { PARLEY_ALERT_URL: receiver.url })
    await off()
    await noteHeartbeat(service.app.db, { worker_id: healthy, platforms: ['sandbox'] })
    await noteProblems(refusing)
    await deliverPosts(refusing, receiver.url)
    expect(heard()).toEqual([])
    const { last_error } = await service.app.db.one<{ last_error: string }>(
      sql`select last_error from alert_posts`,
    )
    expect(last_error).toBe('blocked_address')
    await on()
    await refusing.close()
  })
})

describe('the heartbeat', () => {
  const beats = () => alerts().filter(({ kind }) => kind === 'heartbeat')

  test('is posted while all is well, and is silent while a problem of the instance lasts', async () => {
    await noteHeartbeat(service.app.db, { worker_id: healthy, platforms: ['sandbox'] })
    expect(await beatOutside(service.app, receiver.url)).toBe(true)
    expect(beats()).toMatchObject([{ kind: 'heartbeat', text: 'All is well.' }])
    // A problem of one account is not one of the instance.
    await service.account(tenant.workspace_id, 'NEEDS_LOGIN')
    expect(await beatOutside(service.app, receiver.url)).toBe(true)
    await setDispatch(service.app, 'system', false)
    expect(await beatOutside(service.app, receiver.url)).toBe(false)
    await setDispatch(service.app, 'system', true)
    await service.app.db.run(sql`delete from workers`)
    expect(await beatOutside(service.app, receiver.url)).toBe(false)
    expect(beats()).toHaveLength(2)
  })

  test('is posted by a loop of every process that has its address, and never to one that webhooks may not reach', async () => {
    const beating = await openNeighbour(service.database.url, { ...env, PARLEY_HEARTBEAT_URL: receiver.url })
    const named = makeAlertLoops(beating).map(({ name }) => name)
    expect(named).toEqual(['note-problems', 'post-alerts', 'heartbeat'])
    expect(makeAlertLoops(service.app).map(({ name }) => name)).not.toContain('heartbeat')
    await beating.close()
    const refusing = await openNeighbour(service.database.url, { PARLEY_HEARTBEAT_URL: receiver.url })
    await noteHeartbeat(service.app.db, { worker_id: healthy, platforms: ['sandbox'] })
    await beatOutside(refusing, receiver.url)
    await refusing.close()
    expect(beats()).toEqual([])
  })

  test('has an address that a start checks, and never repeats', async () => {
    const wrong = { PARLEY_HEARTBEAT_URL: 'http://127.0.0.1:8080/token-4711', PARLEY_LOG_LEVEL: 'silent' }
    const { code, stderr } = await runVerb(
      ['start', '--port', '0', '--data-dir', '/tmp/no/parley/here'],
      wrong,
    )
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^PARLEY_HEARTBEAT_URL must begin with https:/)])
    expect(stderr).not.toContain('token-4711')
  })
})

describe('parley doctor --alert', () => {
  async function examine(args: readonly string[], more: Record<string, string>): Promise<string> {
    const own = { DATABASE_URL: service.database.url, PARLEY_SECRET: testSecret }
    const { stdout } = await runVerb(['doctor', '--data-dir', '/tmp/no/parley/here', ...args], {
      ...own,
      ...more,
    })
    return /^.*(?<= )alerts .*$/m.exec(stdout)?.[0] ?? ''
  }

  test('posts a test, and says whether it was accepted', async () => {
    expect(await examine(['--alert'], env)).toMatch(/^ok .* The test was accepted\.$/)
    const tests = alerts().filter(({ kind }) => kind === 'test')
    expect(tests).toMatchObject([{ text: expect.stringMatching(/^This is a test: /) }])
    receiver.status(403)
    expect(await examine(['--alert'], env)).toMatch(/^fault .* The test was not accepted: status 403\.$/)
    expect(await examine(['--alert'], {})).toMatch(/^fault .* PARLEY_ALERT_URL is not set/)
  })

  test('without the option posts nothing, and names alerts that were not accepted', async () => {
    expect(await examine([], {})).toMatch(/^ok .* PARLEY_ALERT_URL is not set/)
    expect(await examine([], env)).toMatch(/^ok .* No alert waits\./)
    await setDispatch(service.app, 'system', false)
    receiver.status(500)
    await turn()
    receiver.received.length = 0
    expect(await examine([], env)).toMatch(/^warning .* has not accepted 1 alert yet: status 500\.$/)
    expect(alerts()).toEqual([])
  })

  test('names an address that alerts may not have, as a start does, and never repeats it', async () => {
    const wrong = { PARLEY_ALERT_URL: 'http://127.0.0.1:8080/token-4711', PARLEY_LOG_LEVEL: 'silent' }
    expect(await examine(['--alert'], wrong)).toMatch(/^fault .* PARLEY_ALERT_URL must begin with https:/)
    const { code, stderr } = await runVerb(
      ['start', '--port', '0', '--data-dir', '/tmp/no/parley/here'],
      wrong,
    )
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^PARLEY_ALERT_URL must begin with https:/)])
    expect(stderr).not.toContain('token-4711')
  })
})
