/** `parley secret rotate`: every sealed and signed place, before, during and after, with several processes and a kill. */
import { existsSync, readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { createAccount } from '../src/capabilities/accounts/accounts.ts'
import { answerLogin, beginLogin } from '../src/capabilities/accounts/login-requests.ts'
import { showStep } from '../src/capabilities/accounts/login-runs.ts'
import { openAccountStore, sealSession } from '../src/capabilities/accounts/platform-store.ts'
import { sealPlain } from '../src/capabilities/webhooks/address-loop.ts'
import {
  createWebhook,
  listWebhooks,
  rotateSecret,
  updateWebhook,
} from '../src/capabilities/webhooks/webhooks.ts'
import { createWorkspace } from '../src/capabilities/workspaces/workspaces.ts'
import { findSecrets, prepareSecret } from '../src/cli/instance-secret.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { given } from '../src/db/given.ts'
import { inspectColumn } from '../src/db/sealed-column.ts'
import { beginRotation, findSecretUse, lockSecretUse, storedKeys } from '../src/db/secret-use.ts'
import { processName } from '../src/db/server-state.ts'
import { sql } from '../src/db/sql.ts'
import { sharedWake } from '../src/events/wake.ts'
import { claimAccounts } from '../src/ledger/leases.ts'
import { noteHeartbeat } from '../src/ledger/workers.ts'
import { makeCursor, readCursor } from '../src/lib/cursor.ts'
import { newId } from '../src/lib/ids.ts'
import { Secrets, sealedPurposes, shortId, signedPurposes, storedPurposes } from '../src/lib/secrets.ts'
import { openSecret, secretPlaceOf } from '../src/lib/webhook-signatures.ts'
import { sealedColumns } from '../src/lists/sealed-columns.ts'
import { patchEnv } from './faults/patch.ts'
import { copyDatabase } from './harness/database.ts'
import { runVerb } from './harness/operator.ts'
import { endProcesses, hangMs, runParley, until } from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'
import { openNeighbour, testSecret } from './harness/worker.ts'

const newSecret = 'a new secret for tests that is long enough'
const third = 'a third secret for tests that is long enough'
const both = { PARLEY_SECRET: newSecret, PARLEY_SECRET_OLD: testSecret }
const url = 'https://acme.example/hook?token=of-the-receiver'

type Env = Readonly<Record<string, string>>
const opened: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close()
})
afterAll(endProcesses)

interface Instance {
  readonly url: string
  /** A process that knows only the secret of before. */
  readonly app: OpenApp
  readonly workspace_id: string
}

async function serve(): Promise<Instance> {
  const { url, drop } = await copyDatabase()
  opened.push({ close: drop })
  const app = await neighbour({ url }, { PARLEY_SECRET: testSecret })
  const { id } = await createWorkspace(app, 'system', { name: 'Acme' })
  return { url, app, workspace_id: id }
}

async function neighbour({ url }: Pick<Instance, 'url'>, env: Env = both): Promise<OpenApp> {
  const app = await openNeighbour(url, env)
  opened.push(app)
  return app
}

/** Ends a process before its test does. */
async function end(app: OpenApp): Promise<void> {
  opened.splice(opened.indexOf(app), 1)
  await app.close()
}

const rotate = ({ url }: Instance, env: Env = both) =>
  runVerb(['secret', 'rotate', '--json'], { DATABASE_URL: url, ...env })

async function rotated(service: Instance, env: Env = both): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await rotate(service, env)
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

/** A rotation in a process of its own, with its source changed at a marker. */
const patchedRotation = ({ url }: Instance, marker: string, insert: string) =>
  runParley(['secret', 'rotate'], { DATABASE_URL: url, ...both, ...patchEnv([{ marker, insert }]) })

const killed = "process.kill(process.pid, 'SIGKILL')"

const actions = async ({ db }: OpenApp) =>
  (
    await db.rows<{ action: string }>(sql`select action from audit where action like 'secret.%' order by seq`)
  ).map(({ action }) => action)

/** What doctor says of the secret. */
async function examined({ url }: Instance, env: Env) {
  const { stdout } = await runVerb(['doctor', '--json'], { DATABASE_URL: url, ...env })
  const { lines } = JSON.parse(stdout) as { lines: { check: string; level: string; found: string }[] }
  return lines.filter(({ check }) => check === 'secret')
}

const [oldName, newName] = [testSecret, newSecret].map((secret) => shortId(new Secrets(secret).id))

/** One value in every sealed column. */
async function fill(app: OpenApp, workspace_id: string) {
  const account = await createAccount(app, 'system', {
    workspace_id,
    platform: 'sandbox',
    name: 'Sales',
    proxy: 'socks5://user:password@proxy.example:1080',
  })
  const { webhook } = await app.db.transaction((tx) =>
    createWebhook(app, tx, 'system', { workspace_id, url }),
  )
  await app.db.transaction((tx) => rotateSecret(app, tx, 'system', { workspace_id, webhook_id: webhook.id }))
  const session = sealSession(app.secrets, account.id, Buffer.from('the key of a login'))
  await app.db.run(sql`
    insert into platform_sessions (account_id, platform, platform_user_id, sealed) values (${account.id}, 'sandbox', 42, ${session})`)
  const attempt = newId()
  const sealed = app.secrets.seal('account_login', attempt, Buffer.from('"typed"'))
  await app.db.run(sql`
    insert into account_logins (account_id, workspace_id, actor, way, state, attempt, alive_until, shown, typed)
    values (${account.id}, ${workspace_id}, 'system', 'qr', 'qr', ${attempt}, now() + interval '1 hour', ${sealed}, ${sealed})`)
  return { account_id: account.id, webhook_id: webhook.id }
}

/** How many values of each column these secrets open, and how many they do not. */
async function opens({ db }: Pick<OpenApp, 'db'>, secret: string): Promise<Record<string, [number, number]>> {
  const secrets = new Secrets(secret)
  const found: Record<string, [number, number]> = {}
  for (const column of sealedColumns) {
    const { name, total, lost } = await inspectColumn(db, secrets, column)
    found[name] = [total - lost, lost]
  }
  return found
}

const everywhere = (numbers: [number, number]) =>
  Object.fromEntries(
    sealedColumns.map((column) => {
      const times = column === storedKeys ? storedPurposes.length : 1
      return [column.name, numbers.map((number) => number * times)]
    }),
  )

describe('the list of sealed columns', () => {
  /** Hashes, files and search lists: nothing of these is sealed. */
  const plain = [
    ...[
      'approvals.fingerprint',
      'approvals.token_hash',
      'audit.hash',
      'erasures.tombstones',
      'file_chunks.bytes',
    ],
    ...['keys.hash', 'tombstones.hash'],
    ...['login_numbers.number_hash', 'media_chunks.bytes', 'media_files.head', 'operations.fingerprint'],
    ...['search_lists.bytes', 'search_ranks.bytes', 'sessions.token_hash', 'setup_links.token_hash'],
  ]

  test('has every column of bytes in the schema that is not known to be plain', () => {
    const schema = readFileSync(join(import.meta.dirname, '..', 'src', 'db', 'schema.sql'), 'utf8')
    const tables = schema.matchAll(/^create (?:unlogged )?table (\w+) \(\n([\s\S]*?)^\);/gm)
    const columns = [...tables].flatMap(([, table, body = '']) =>
      [...body.matchAll(/^ {2}(\w+) bytea/gm)].map(([, column]) => `${table}.${column}`),
    )
    const sealed = sealedColumns.map(({ name }) => name)
    expect(columns.filter((name) => !plain.includes(name)).sort()).toEqual(sealed.toSorted())
  })

  test('has every purpose that seals something stored', () => {
    // A cookie of ten minutes.
    const brief = ['session']
    const listed = new Set(sealedColumns.map(({ purpose }) => purpose))
    expect(sealedPurposes.filter((purpose) => !brief.includes(purpose) && !listed.has(purpose))).toEqual([])
  })
})

describe('the keys that never change', () => {
  test('have the values that release 0.3 derived, and are stored sealed', async () => {
    const { app } = await serve()
    const derived = new Secrets(testSecret)
    for (const purpose of storedPurposes)
      expect(app.secrets.sign(purpose, 'a')).toEqual(derived.sign(purpose, 'a'))
    expect(app.secrets.isTied).toBe(true)
    const rows = await app.db.rows<{ purpose: string }>(sql`select purpose from stored_keys order by purpose`)
    expect(rows.map(({ purpose }) => purpose)).toEqual(storedPurposes.toSorted())
  })

  test('are not stored by a process whose secret is not the one of the audit log', async () => {
    const service = await serve()
    await service.app.db.run(sql`delete from stored_keys`)
    await service.app.db.run(sql`delete from secret_use`)
    const stranger = await neighbour(service, { PARLEY_SECRET: third })
    expect(stranger.secrets.isTied).toBe(false)
    expect(await findSecretUse(service.app.db)).toBe(undefined)
    // With both, the one of the audit log is found, whichever is given as the new one.
    const rotating = await neighbour(service)
    expect((await findSecretUse(service.app.db))?.secret_id).toBe(new Secrets(testSecret).id)
    expect(rotating.secrets.sign('random_id', 'a')).toEqual(new Secrets(testSecret).sign('random_id', 'a'))
  })
})

describe('parley secret rotate', () => {
  test('seals every value again; then the old secret alone opens nothing, and signed things go on', async () => {
    const service = await serve()
    const { workspace_id } = service
    const { webhook_id } = await fill(service.app, workspace_id)
    expect(await opens(service.app, testSecret)).toEqual(everywhere([1, 0]))
    const scope = { workspace_id, operation: 'list_chats', filters: {} }
    const before = {
      cursor: makeCursor(service.app.secrets, scope, [1]),
      signed: signedPurposes.map((purpose) => service.app.secrets.sign(purpose, 'a')),
      stored: storedPurposes.map((purpose) => service.app.secrets.sign(purpose, 'a')),
      cookie: service.app.secrets.seal('session', 'oidc-flow', Buffer.from('a flow')),
    }
    const lacking = await rotate(service)
    expect([lacking.code, lacking.stderr]).toEqual([
      1,
      expect.stringContaining('only one of the two secrets: 1'),
    ])

    // Every process is restarted with both secrets.
    await end(service.app)
    const one = await neighbour(service)
    const other = await neighbour(service)
    expect(makeCursor(one.secrets, scope, [1])).toBe(before.cursor)
    const done = await rotate(service)
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(JSON.parse(done.stdout)).toMatchObject({ resealed: sealedColumns.length - 1, lost: 0 })

    expect(await opens(one, newSecret)).toEqual(everywhere([1, 0]))
    expect(await opens(one, testSecret)).toEqual(everywhere([0, 1]))
    expect(await findSecretUse(one.db)).toMatchObject({
      secret_id: new Secrets(newSecret).id,
      old_id: null,
      turn: 1,
    })
    for (const app of [one, other]) {
      await until(
        'the process signs with the new secret',
        hangMs,
        () => app.secrets.id === new Secrets(newSecret).id,
      )
      expect(readCursor(app.secrets, scope, before.cursor)).toEqual([1])
      for (const [at, purpose] of signedPurposes.entries())
        expect(app.secrets.signatures(purpose, 'a')).toContainEqual(before.signed[at])
      expect(storedPurposes.map((purpose) => app.secrets.sign(purpose, 'a'))).toEqual(before.stored)
      expect(app.secrets.open('session', 'oidc-flow', before.cookie).toString()).toBe('a flow')
      expect(await listWebhooks(app, workspace_id)).toMatchObject([{ id: webhook_id, url }])
    }
    const audited = await runVerb(['audit', 'verify', '--json'], {
      DATABASE_URL: service.url,
      PARLEY_SECRET: newSecret,
    })
    expect([audited.code, JSON.parse(audited.stdout)]).toMatchObject([0, { ok: true }])

    // The old secret is gone: what it signed ends with a clear sentence.
    const later = await neighbour(service, { PARLEY_SECRET: newSecret })
    expect(() => readCursor(later.secrets, scope, before.cursor)).toThrow(
      expect.objectContaining({ code: 'invalid_cursor' }),
    )
    expect(storedPurposes.map((purpose) => later.secrets.sign(purpose, 'a'))).toEqual(before.stored)
  })

  test('goes on after a kill in the middle, while two processes run and none without the old secret starts', async () => {
    const service = await serve()
    const { workspace_id } = service
    await fill(service.app, workspace_id)
    await end(service.app)
    const [one, other] = [await neighbour(service), await neighbour(service)]
    const stopped = await patchedRotation(
      service,
      'crash point 25',
      `if (column.name === 'webhooks.secret') ${killed}`,
    )
    expect(stopped.code).toBe(null)
    const use = await findSecretUse(one.db)
    expect(use).toMatchObject({ old_id: new Secrets(testSecret).id })
    // Half is sealed with each: neither secret alone opens everything, both processes do.
    expect(await opens(one, newSecret)).toMatchObject({
      'platform_sessions.sealed': [1, 0],
      'webhooks.secret': [0, 1],
    })
    for (const app of [one, other]) {
      const [webhook] = await listWebhooks(app, workspace_id)
      expect(webhook?.url).toBe(url)
    }
    const { webhook: added } = await one.db.transaction((tx) =>
      createWebhook(one, tx, 'system', { workspace_id, url: 'https://acme.example/second' }),
    )
    for (const [secret, set] of [
      [newSecret, 'Set PARLEY_SECRET_OLD'],
      [testSecret, 'Set PARLEY_SECRET to the new secret'],
    ] as const) {
      const refused = openNeighbour(service.url, { PARLEY_SECRET: secret })
      await expect(refused).rejects.toThrow(set)
      // Not that the rest is lost, or that nothing is left.
      expect(await examined(service, { PARLEY_SECRET: secret })).toMatchObject([
        { level: 'fault', found: expect.stringContaining(set) },
      ])
    }
    const another = await rotate(service, { PARLEY_SECRET: third, PARLEY_SECRET_OLD: newSecret })
    expect([another.code, another.stderr]).toEqual([1, expect.stringContaining('PARLEY_SECRET_OLD')])
    expect(await examined(service, both)).toMatchObject([
      { level: 'warning', found: expect.stringContaining('1 in webhooks.secret') },
    ])

    const done = await rotate(service)
    expect([done.code, done.stderr]).toEqual([0, ''])
    const now = await opens(one, newSecret)
    expect(Object.values(now).every(([, lost]) => lost === 0)).toBe(true)
    expect(await opens(one, testSecret)).toMatchObject({
      'webhooks.secret': [0, 2],
      'platform_sessions.sealed': [0, 1],
    })
    expect((await listWebhooks(other, workspace_id)).map(({ id }) => id)).toContain(added.id)
    expect(await findSecretUse(one.db)).toMatchObject({ old_id: null })
  })

  test('is done once, and said once, whatever step it was killed at', async () => {
    const service = await serve()
    await end(service.app)
    const app = await neighbour(service)
    await fill(app, service.workspace_id)
    for (const [marker, use, said] of [
      ['crash point 25a', { turn: 1, old_id: new Secrets(testSecret).id }, ['secret.rotation_begun']],
      ['crash point 25b', { turn: 1, old_id: new Secrets(testSecret).id }, ['secret.rotation_begun']],
      ['crash point 25c', { turn: 1, old_id: null }, ['secret.rotation_begun', 'secret.rotated']],
    ] as const) {
      expect((await patchedRotation(service, marker, killed)).code).toBe(null)
      expect([marker, await findSecretUse(app.db)]).toMatchObject([marker, use])
      expect([marker, await actions(app)]).toEqual([marker, said])
    }
    expect(await rotated(service)).toMatchObject({ rotated: false, in_use: newName, lost: 0 })
    expect(await actions(app)).toEqual(['secret.rotation_begun', 'secret.rotated'])
    expect(await opens(app, newSecret)).toEqual(everywhere([1, 0]))
  })

  test('says that nothing was to do if the two secrets were given the wrong way round', async () => {
    const service = await serve()
    await end(service.app)
    const app = await neighbour(service)
    await fill(app, service.workspace_id)
    const swapped = { PARLEY_SECRET: testSecret, PARLEY_SECRET_OLD: newSecret }
    const done = await rotated(service, swapped)
    expect(done).toMatchObject({ rotated: false, in_use: oldName })
    expect(done.next).toContain(`To rotate to ${newName}, set PARLEY_SECRET to it`)
    expect(await findSecretUse(app.db)).toMatchObject({ turn: 0, old_id: null })
    expect(await actions(app)).toEqual([])
    expect(await opens(app, testSecret)).toEqual(everywhere([1, 0]))
  })

  test('may be repeated with a third secret, and goes back', async () => {
    const service = await serve()
    await end(service.app)
    const app = await neighbour(service)
    await fill(app, service.workspace_id)
    const keys = storedPurposes.map((purpose) => app.secrets.sign(purpose, 'a'))
    await end(app)
    let before = testSecret
    for (const [turn, secret] of [newSecret, third, newSecret, testSecret].entries()) {
      const one = await neighbour(service, { PARLEY_SECRET: secret, PARLEY_SECRET_OLD: before })
      const done = await rotated(service, { PARLEY_SECRET: secret, PARLEY_SECRET_OLD: before })
      expect(done).toMatchObject({ rotated: true, resealed: sealedColumns.length - 1, lost: 0 })
      expect(await findSecretUse(one.db)).toMatchObject({ turn: turn + 1, old_id: null })
      expect(await opens(one, secret)).toEqual(everywhere([1, 0]))
      expect(await opens(one, before)).toEqual(everywhere([0, 1]))
      expect(storedPurposes.map((purpose) => one.secrets.sign(purpose, 'a'))).toEqual(keys)
      await end(one)
      before = secret
    }
    const audited = await runVerb(['audit', 'verify', '--json'], {
      DATABASE_URL: service.url,
      PARLEY_SECRET: testSecret,
    })
    expect([audited.code, JSON.parse(audited.stdout)]).toMatchObject([0, { ok: true }])
  })

  test('lets no process start with a secret that was replaced, and doctor names the one in use', async () => {
    const service = await serve()
    await end(service.app)
    const app = await neighbour(service)
    await rotated(service)
    const only = { PARLEY_SECRET: testSecret }
    const refused = openNeighbour(service.url, only)
    await expect(refused).rejects.toThrow(`A rotation has replaced the secret of this process, ${oldName}`)
    const found = expect.stringContaining(`the instance uses ${newName} now`)
    expect(await examined(service, only)).toMatchObject([{ level: 'fault', found }])
    // Whoever has lost the right one may go on with another.
    const stranger = await neighbour(service, { PARLEY_SECRET: third })
    expect(stranger.secrets.isTied).toBe(false)
    expect(app.secrets.isTied).toBe(true)
  })

  test('loses nothing of what is written while it seals, also by a second run of it', async () => {
    const service = await serve()
    const { workspace_id } = service
    await end(service.app)
    const app = await neighbour(service)
    const { webhook_id } = await fill(app, workspace_id)
    const scratch = await makeScratch('parley-sealing-')
    const go = join(scratch, 'go')
    const wait = `if (column.name === 'webhooks.secret') {
      const { existsSync, writeFileSync } = await import('node:fs')
      writeFileSync('${join(scratch, 'waits')}', '')
      while (!existsSync('${go}')) await new Promise((done) => setTimeout(done, 20))
    }`
    const paused = patchedRotation(service, 'crash point 25', wait)
    await until('it is about to seal the secret of a webhook again', hangMs, () =>
      existsSync(join(scratch, 'waits')),
    )
    const { secret } = await app.db.transaction((tx) =>
      rotateSecret(app, tx, 'system', { workspace_id, webhook_id }),
    )
    const made = await app.db.transaction((tx) => createWebhook(app, tx, 'system', { workspace_id, url }))
    expect(await rotated(service)).toMatchObject({ rotated: true, lost: 0 })
    await writeFile(go, '')
    expect((await paused).code).toBe(0)
    await rm(scratch, { recursive: true })
    const stored = await app.db.rows<{ id: string; sealed: Buffer }>(
      sql`select id, secret as sealed from webhooks order by created_at, id`,
    )
    const own = new Secrets(newSecret)
    expect(stored.map(({ id, sealed }) => openSecret(own, id, sealed))).toEqual([secret, made.secret])
    const now = await opens(app, newSecret)
    expect(Object.values(now).every(([, lost]) => lost === 0)).toBe(true)
    // Both have sealed something.
    expect(await actions(app)).toEqual(['secret.rotation_begun', 'secret.rotated', 'secret.rotated'])
    expect(await findSecretUse(app.db)).toMatchObject({ turn: 1, old_id: null })
  })

  test('seals more values than it reads at once, and goes on once the database writes again', async () => {
    const service = await serve()
    const { workspace_id } = service
    await end(service.app)
    const app = await neighbour(service)
    const many = 230
    const place = (id: string) => app.secrets.seal('webhook', secretPlaceOf(id), Buffer.from(id))
    const rows = Array.from({ length: many }, newId).map((id) => ({ id, secret: place(id) }))
    await app.db.run(sql`
      insert into webhooks (id, workspace_id, url, events, secret, position)
      select w.id, ${workspace_id}, 'https://acme.example', '{*}', w.secret, 0
      from ${given(rows, { id: 'uuid', secret: 'bytea' })} as w`)
    // As a full disk ends a write, for long enough that trying on and on would be noticed.
    await app.db.pool.query(`
      create sequence tries;
      create function full_disk() returns trigger language plpgsql as $$
      begin
        if old.id > '${rows.map(({ id }) => id).toSorted()[120]}' and nextval('tries') <= 300 then
          raise exception 'No space left on device' using errcode = '53100';
        end if;
        return new;
      end $$;
      create trigger full_disk before update on webhooks for each row execute function full_disk()`)
    const stopped = await rotate(service)
    expect([stopped.code, stopped.stderr]).toEqual([
      1,
      expect.stringMatching(/^The rotation has not ended.*disk is full/),
    ])
    expect(await findSecretUse(app.db)).toMatchObject({ turn: 1, old_id: new Secrets(testSecret).id })
    expect(await opens(app, newSecret)).toMatchObject({ 'webhooks.secret': [121, many - 121] })
    await app.db.pool.query('drop trigger full_disk on webhooks; drop function full_disk()')
    expect(await rotated(service)).toMatchObject({ rotated: true, resealed: many - 121, lost: 0 })
    expect(await opens(app, newSecret)).toMatchObject({ 'webhooks.secret': [many, 0] })
  })

  test('is refused beside a process of an earlier release, with one secret only, and with a strange one', async () => {
    const service = await serve()
    await end(service.app)
    const app = await neighbour(service)
    const old = sharedWake(app.db, { name: processName })
    opened.push(old)
    await until('the old process is named', hangMs, async () => {
      const { rows } = await app.db.pool.query(
        'select from pg_stat_activity where datname = current_database() and application_name = $1',
        [processName],
      )
      return rows.length === 1
    })
    const beside = await rotate(service)
    expect([beside.code, beside.stderr]).toEqual([1, expect.stringContaining('an earlier release')])
    const alone = await rotate(service, { PARLEY_SECRET: testSecret })
    expect([alone.code, alone.stderr]).toEqual([1, expect.stringContaining('nothing to rotate to')])
    const strange = await rotate(service, { PARLEY_SECRET: third })
    expect([strange.code, strange.stderr]).toEqual([
      1,
      expect.stringContaining('This instance uses the secret'),
    ])
    expect(await findSecretUse(app.db)).toMatchObject({ turn: 0, old_id: null })
  })

  test('waits for a transaction that is sealing', async () => {
    const service = await serve()
    const { db, secrets } = service.app
    const app = await neighbour(service)
    const [new_id = '', old_id = ''] = app.secrets.ids
    const locked = Promise.withResolvers<void>()
    const done = Promise.withResolvers<void>()
    const sealing = db.transaction(async (tx) => {
      await lockSecretUse(tx, secrets)
      locked.resolve()
      await done.promise
    })
    await locked.promise
    const begin = app.db.transaction(async (tx) => {
      await tx.run(sql`select set_config('lock_timeout', '200', true)`)
      return beginRotation(tx, app.secrets, { old_id, new_id })
    })
    const refused = expect(begin).rejects.toThrow(expect.objectContaining({ code: 'store_unavailable' }))
    await refused.finally(done.resolve)
    await sealing
    expect(await findSecretUse(db)).toMatchObject({ turn: 0 })
    // One at a time.
    const again = () => app.db.transaction((tx) => beginRotation(tx, app.secrets, { old_id, new_id }))
    expect([await again(), await again()]).toEqual([true, false])
  })

  test('loses no value that was written meanwhile, and no stored key is replaced', async () => {
    const service = await serve()
    await fill(service.app, service.workspace_id)
    for (const column of sealedColumns) {
      const [row] = await column.list(service.app.db, null, 10)
      const stale = { key: row?.key ?? '', before: Buffer.from('of before'), after: Buffer.from('late') }
      expect([column.name, await column.replace(service.app.db, stale)]).toEqual([column.name, 0])
    }
    await service.app.db.run(sql`delete from stored_keys where purpose = 'tombstone'`)
    const before = await service.app.db.rows(sql`select purpose, sealed from stored_keys order by purpose`)
    const app = await neighbour(service, { PARLEY_SECRET: testSecret })
    const after = await app.db.rows<{ purpose: string }>(
      sql`select purpose, sealed from stored_keys order by purpose`,
    )
    expect(after.filter(({ purpose }) => purpose !== 'tombstone')).toEqual(before)
    expect(after).toHaveLength(storedPurposes.length)
  })

  test('refuses to seal in a process that has only the old secret', async () => {
    const service = await serve()
    const { workspace_id } = service
    const { account_id, webhook_id } = await fill(service.app, workspace_id)
    const worker_id = newId()
    const claim = { worker_id, platform: 'sandbox', limit: 100, takeover_seconds: 0, neighbours: [] }
    const [lease] = await claimAccounts(service.app.db, claim)
    const store = openAccountStore(service.app, {
      worker_id,
      account_id,
      workspace_id,
      epoch: lease?.epoch ?? '',
    })
    await store.writeSession(Buffer.from('another key'))
    // This process never learns of the rotation.
    const { app } = service
    await app.db.run(sql`update secret_use set secret_id = ${new Secrets(newSecret).id}, turn = 1`)
    const conflict = expect.objectContaining({ code: 'conflict' })
    const user_id = newId()
    const inOne = (work: (tx: Parameters<Parameters<typeof app.db.transaction>[0]>[0]) => Promise<unknown>) =>
      app.db.transaction(work)
    await expect(inOne((tx) => createWebhook(app, tx, 'system', { workspace_id, url }))).rejects.toThrow(
      conflict,
    )
    await expect(
      inOne((tx) => rotateSecret(app, tx, 'system', { workspace_id, webhook_id })),
    ).rejects.toThrow(conflict)
    await expect(
      inOne((tx) =>
        updateWebhook(app, tx, 'system', {
          workspace_id,
          webhook_id,
          user_id,
          url: 'https://acme.example/other',
        }),
      ),
    ).rejects.toThrow(conflict)
    const proxied = { workspace_id, platform: 'sandbox', name: 'Other', proxy: 'socks5://proxy.example:1080' }
    await expect(createAccount(app, 'system', proxied)).rejects.toThrow(conflict)
    await expect(store.writeSession(Buffer.from('a third key'))).rejects.toThrow(conflict)
    expect((await store.readSession())?.toString()).toBe('another key')
    const login = await app.db.one<{ attempt: string }>(sql`select attempt from account_logins`)
    const answer = answerLogin(app, { account_id, kind: 'code', text: '12345' })
    await expect(answer).rejects.toThrow('the secret of before a rotation')
    const shown = { state: 'code', shown: { wrong: false, tries_left: 3 } } as const
    await expect(showStep(app, login.attempt, shown)).rejects.toThrow(conflict)
    await app.db.run(sql`delete from account_logins`)
    await noteHeartbeat(app.db, { worker_id, platforms: ['sandbox'] })
    const begin = { workspace_id, account_id, phone: '+15550100' }
    await app.db.run(sql`delete from platform_sessions`)
    await expect(beginLogin(app, 'system', begin)).rejects.toThrow(conflict)
  })
})

describe('parley secret prepare', () => {
  test('makes a new secret once, and keeps the present one beside it', async () => {
    const data_dir = await makeScratch('parley-prepare-')
    try {
      await writeFile(join(data_dir, 'secret'), testSecret, { mode: 0o600 })
      // A kill between its two steps leaves the same secret in both files.
      await writeFile(join(data_dir, 'secret.old'), testSecret, { mode: 0o600 })
      expect(await prepareSecret(data_dir)).toBe(true)
      const config = { secret: undefined, secret_old: undefined }
      const given = await findSecrets(config, data_dir)
      expect(given).toMatchObject({ old: testSecret, from: 'files' })
      expect(given?.secret).not.toBe(testSecret)
      expect(await prepareSecret(data_dir)).toBe(false)
      expect(await findSecrets(config, data_dir)).toEqual(given)
    } finally {
      await rm(data_dir, { recursive: true })
    }
  })

  test('makes no secret for an instance that has its own from PARLEY_SECRET', async () => {
    const { code, stderr } = await runVerb(['secret', 'prepare'], { PARLEY_SECRET: testSecret })
    expect([code, stderr]).toEqual([1, expect.stringContaining('PARLEY_SECRET_OLD')])
  })
})

describe('addresses of webhooks', () => {
  test('do not open at another webhook', async () => {
    const { app, workspace_id } = await serve()
    const make = () => app.db.transaction((tx) => createWebhook(app, tx, 'system', { workspace_id, url }))
    const [one, other] = [(await make()).webhook.id, (await make()).webhook.id]
    await app.db.run(sql`
      update webhooks set url_sealed = (select url_sealed from webhooks where id = ${one}) where id = ${other}`)
    expect((await listWebhooks(app, workspace_id)).map((webhook) => [webhook.id, webhook.url])).toEqual([
      [one, url],
      [other, ''],
    ])
  })

  test('stay plain while a process of release 0.3 runs, and are sealed once none does', async () => {
    const service = await serve()
    const { app } = service
    const { workspace_id } = service
    // As release 0.3 left them.
    await app.db.run(sql`update secret_use set addresses_sealed = false`)
    const { webhook_id } = await fill(app, workspace_id)
    const stored = () =>
      app.db.one<{ url: string; sealed: boolean; url_no: number }>(
        sql`select url, url_sealed is not null as sealed, url_no from webhooks where id = ${webhook_id}`,
      )
    expect(await stored()).toEqual({ url, sealed: false, url_no: 0 })
    const old = sharedWake(app.db, { name: processName })
    await until('the old process is named', hangMs, async () => {
      const { rows } = await app.db.pool.query(
        'select from pg_stat_activity where datname = current_database() and application_name = $1',
        [processName],
      )
      return rows.length === 1
    })
    await sealPlain(app)
    expect(await stored()).toEqual({ url, sealed: false, url_no: 0 })
    // It changes the address, which counts as a new one.
    await app.db.run(sql`update webhooks set url = ${`${url}2`} where id = ${webhook_id}`)
    expect(await stored()).toMatchObject({ url_no: 1 })
    await old.close()
    await until('it is gone', hangMs, async () => {
      await sealPlain(app)
      return (await stored()).sealed
    })
    expect(await stored()).toEqual({ url: '', sealed: true, url_no: 1 })
    expect(await listWebhooks(app, workspace_id)).toMatchObject([{ url: `${url}2` }])
    const { webhook } = await app.db.transaction((tx) =>
      createWebhook(app, tx, 'system', { workspace_id, url }),
    )
    const { plain } = await app.db.one<{ plain: string }>(
      sql`select url as plain from webhooks where id = ${webhook.id}`,
    )
    expect(plain).toBe('')
  })
})
