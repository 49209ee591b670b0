/**
 * What another tenant notices of one key, one member and one stranger who take what they can get (`processes/attacker.ts`). The
 * service runs in its own process as `parley start` does, with its usual limits. This process is the other tenant: keys and a
 * person at the dashboard who read, send, create campaigns and follow a stream, first alone and then during each attack.
 *
 * A run takes about eleven minutes. `--seconds 5` makes every attack shorter, `--only NAME` runs one (may be given several times),
 * `--dir` keeps the data for the next run.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { setAllowed, setGates } from '../src/capabilities/gates/gates.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { createWorkspace } from '../src/capabilities/workspaces/workspaces.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { scopes } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import { chunkBytes } from '../src/ledger/files.ts'
import { newId } from '../src/lib/ids.ts'
import { openLocalSandbox } from '../src/platform/sandbox/sandbox.ts'
import { signIn } from '../test/harness/person.ts'
import { load } from './fill.ts'
import { addAccounts, number, quantile, withInstance } from './harness.ts'
import { ask, type Running, rssOf, start, stop } from './load.ts'
import { chatsIn, type World } from './search-rows.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    messages: { type: 'string', default: '400000' },
    only: { type: 'string', multiple: true },
    dir: { type: 'string' },
  },
})
const seconds = Number(values.seconds)
const messages = Number(values.messages)
const goals = { p99: 3, health_s: 0.5, rss_mb: 100, settle_s: 60 }
const accounts = 10
/** Each allows 120 requests a minute, of which the load uses two thirds. */
const keysOfOther = 24
const everyMs = 30
/** The attacks take turns at as many keys and sessions, so that the rates of one are full again when its turn comes. */
const turns = 4
/** Together they could have more streams than a process may: each ten sessions with five, the first has twenty sessions. */
const crowd = 22
const megabyte = 1024 * 1024

const stream = '/dashboard/api/stream'
/** The other tenant's campaigns send nothing while this runs. */
const inAMonth = new Date(Date.now() + 30 * 86_400_000).toISOString()
const whoAmI = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
  params: { name: 'service_whoami', arguments: {} },
})

const directory = values.dir ?? (await mkdtemp(join(tmpdir(), 'parley-bench-')))
try {
  const { attacker, other } = await prepare()
  const service = await start('whole-service', { BENCH_DIR: directory })
  const enemy = await start('attacker', {
    ATTACKER: JSON.stringify({ url: service.address, ...attacker }),
  })
  try {
    await measure(service, enemy, other)
  } finally {
    await stop(enemy)
    await stop(service)
  }
} finally {
  if (values.dir === undefined) await rm(directory, { recursive: true, force: true })
}

interface Other {
  readonly keys: readonly string[]
  readonly cookie: string
  readonly workspace_id: string
  readonly account_id: string
  /** Somebody in the sandbox, to send to. */
  readonly person_id: number
}

/** Made in this process, before the service opens the directory. */
async function prepare(): Promise<{ attacker: object; other: Other }> {
  const made = Promise.withResolvers<{ attacker: object; other: Other }>()
  const sandbox = await openLocalSandbox({ data_dir: directory, failed: console.error })
  const { person_id } = sandbox.world.addPerson({ name: 'Ada' })
  await sandbox.close()
  await withInstance(
    async (app) => {
      await setGates(app, 'system', { names: ['all', 'extended'], enabled: true })
      made.resolve({ attacker: await makeAttacker(app), other: await makeOther(app, person_id) })
    },
    { kept: directory },
  )
  return made.promise
}

async function makeTenant(app: OpenApp, name: string) {
  const { id: workspace_id } = await createWorkspace(app, 'system', { name })
  const email = `${newId()}@example.org`
  const { id: user_id } = await createUser(app, 'system', { email, workspace_id, role: 'owner' })
  await setAllowed(app, 'system', { list: 'campaign_user', id: user_id, allowed: true })
  await setAllowed(app, 'system', { list: 'campaign_workspace', id: workspace_id, allowed: true })
  return { workspace_id, user_id }
}

async function makeAttacker(app: OpenApp): Promise<object> {
  const { account_id, ...owner } = await makeFilled(app, 'Attacker', messages)
  const { workspace_id, user_id } = owner
  const second = await makeFilled(app, 'Accomplice', messages / 10)
  const accomplice = {
    ...second,
    key: (await createKey(app, 'system', { ...second, name: 'accomplice', scopes })).key,
    cookie: await signIn({ app }, second.user_id),
  }
  const keys: string[] = []
  const cookies: string[] = []
  for (let at = 0; at < turns; at++) {
    keys.push((await createKey(app, 'system', { ...owner, name: `attacker ${at}`, scopes })).key)
    cookies.push(await signIn({ app }, user_id))
  }
  const members: string[][] = []
  for (let at = 0; at < crowd; at++) members.push(await signInMember(app, workspace_id, at === 0 ? 20 : 10))
  const file = await storeFile(app, { workspace_id, account_id })
  return { keys, cookies, members, workspace_id, account_id, file, accomplice }
}

/** A tenant with messages to search and a long suppression list, also from an earlier run; without keys. */
async function makeFilled(app: OpenApp, name: string, messages: number) {
  const found = await app.db.maybe<{ workspace_id: string; user_id: string }>(sql`
    select w.id as workspace_id, m.user_id from workspaces w join memberships m on m.workspace_id = w.id
    where w.name = ${name}`)
  const owner = found ?? (await makeTenant(app, name))
  const { workspace_id } = owner
  if (!found) await fill(app, workspace_id, messages)
  const { id: account_id } = await app.db.one<{ id: string }>(sql`
    select id from accounts where workspace_id = ${workspace_id} order by id limit 1`)
  await app.db.run(sql`update keys set revoked_at = now() where workspace_id = ${workspace_id}`)
  return { ...owner, account_id }
}

/** The cookies of a new member with so many sessions. */
async function signInMember(app: OpenApp, workspace_id: string, sessions: number): Promise<string[]> {
  const email = `${newId()}@example.org`
  const { id } = await createUser(app, 'system', { email, workspace_id, role: 'member' })
  const cookies: string[] = []
  for (let at = 0; at < sessions; at++) cookies.push(await signIn({ app }, id))
  return cookies
}

async function fill(app: OpenApp, workspace_id: string, messages: number): Promise<void> {
  const ids = await addAccounts(app, workspace_id, accounts)
  await load(app.db, {
    rows: new URL('search-rows.ts', import.meta.url),
    tables: [
      { name: 'chats', count: accounts * chatsIn(messages / accounts) },
      { name: 'messages', count: messages },
    ],
    from: { ids, workspace_id, perAccount: messages / accounts } satisfies World,
    listed: true,
  })
  await app.db.run(sql`update accounts set status = 'READY' where workspace_id = ${workspace_id}`)
  await app.db.run(sql`
    insert into suppressions (workspace_id, kind, value, source)
    select ${workspace_id}, 'username', 'suppressed_' || n, 'operator' from generate_series(1, 10000) n`)
}

/** Nine megabytes that the service has received, and where to download them. */
async function storeFile(
  app: OpenApp,
  { workspace_id, account_id }: { workspace_id: string; account_id: string },
): Promise<string> {
  const bytes = Buffer.alloc(chunkBytes, 'file')
  const size = 9 * megabyte
  const chunks = size / chunkBytes
  const file = {
    index: 0,
    kind: 'file',
    file_name: 'large.bin',
    media_type: 'application/octet-stream',
    size,
  }
  const message = await app.db.one<{ chat_id: string; id: string }>(sql`
    select chat_id, id from messages where account_id = ${account_id} order by chat_id, id limit 1`)
  await app.db.run(sql`
    update messages set attachments = ${JSON.stringify([file])}::jsonb
    where account_id = ${account_id} and chat_id = ${message.chat_id} and id = ${message.id}`)
  await app.db.run(sql`delete from media_files where account_id = ${account_id}`)
  const file_id = newId()
  await app.db.run(sql`
    insert into media_files (id, account_id, chat_id, message_id, index, workspace_id, size, ended_at, head)
    values (${file_id}, ${account_id}, ${message.chat_id}, ${message.id}, 0, ${workspace_id}, ${size},
      clock_timestamp(), ${bytes.subarray(0, 64)})`)
  for (let n = 0; n < chunks; n++) {
    await app.db.run(sql`insert into media_chunks (file_id, n, bytes) values (${file_id}, ${n}, ${bytes})`)
  }
  const chat = encodeURIComponent(`platform:chat:${message.chat_id}`)
  return `/chats/${chat}/messages/${message.id}/attachments/0?account_id=${account_id}`
}

async function makeOther(app: OpenApp, person_id: number): Promise<Other> {
  const owner = await makeTenant(app, 'Other')
  const { workspace_id } = owner
  const [account_id = ''] = await addAccounts(app, workspace_id, 1)
  await app.db.run(sql`update accounts set status = 'READY' where id = ${account_id}`)
  await app.db.run(sql`
    insert into chats (account_id, chat_id, workspace_id, kind, name, last_message_id, last_message_text, last_message_at)
    select ${account_id}, n, ${workspace_id}, 'private', 'Person ' || n, 1, 'Hello', now() from generate_series(1, 200) n`)
  await app.db.run(sql`
    insert into chats (account_id, chat_id, workspace_id, kind, name)
    values (${account_id}, ${person_id}, ${workspace_id}, 'private', 'Ada') on conflict do nothing`)
  await app.db.run(sql`
    insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sender_id, sent_at)
    select ${account_id}, n, 1, ${workspace_id}, 'Hello', false, n, now() from generate_series(1, 200) n`)
  await app.db.run(sql`
    insert into chat_sync (account_id, chat_id, workspace_id, complete)
    select account_id, chat_id, workspace_id, true from chats where account_id = ${account_id}`)
  const keys: string[] = []
  for (let at = 0; at < keysOfOther; at++) {
    keys.push((await createKey(app, 'system', { ...owner, name: `other ${at}`, scopes })).key)
  }
  return { keys, cookie: await signIn({ app }, owner.user_id), workspace_id, account_id, person_id }
}

interface Seen {
  readonly times: number[]
  readonly health: number[]
  readonly failed: string[]
}

type Ask = readonly [path: string, request: () => RequestInit]

/** What the other tenant does, in turn. */
function asksOf(url: string, { keys, cookie, workspace_id, account_id, person_id }: Other): readonly Ask[] {
  let asked = 0
  const byKey = () => ({
    authorization: `Bearer ${keys[asked++ % keys.length]}`,
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
  })
  const read = () => ({ headers: byKey() })
  const post = (body: object) => () => ({
    ...{ method: 'POST', body: JSON.stringify(body) },
    headers: { ...byKey(), 'idempotency-key': newId() },
  })
  const atDashboard = () => ({ headers: { cookie, origin: url } })
  const campaign = {
    ...{ message_text: 'Hello {{name|you}}', daily_quota_per_account: 1, account_id },
    ...{ contacts: [{ identifier: '@person_1' }], scheduled_at: inAMonth },
  }
  return [
    ['/api/v1/me', read],
    [`/api/v1/chats?account_id=${account_id}`, read],
    [`/dashboard/w/${workspace_id}/inbox`, atDashboard],
    [`/api/v1/chats/platform%3Achat%3A7/messages?account_id=${account_id}`, read],
    ['/api/v1/messages', post({ account_id, chat_id: `platform:chat:${person_id}`, text: 'Hello' })],
    ['/api/v1/search', post({ query: 'hello', limit: 10 })],
    [`/dashboard/api/w/${workspace_id}/inbox?view=all&limit=50`, atDashboard],
    ['/api/mcp', () => ({ method: 'POST', headers: byKey(), body: whoAmI })],
    [stream, atDashboard],
    ['/api/v1/campaigns', post(campaign)],
  ]
}

/** The other tenant's requests begin on time, whether or not earlier ones have been answered. One stream stays open all the time. */
async function serveOther(url: string, other: Other, until: Promise<unknown>): Promise<Seen> {
  const seen: Seen = { times: [], health: [], failed: [] }
  const asks = asksOf(url, other)
  const over = new AbortController()
  void until.then(() => over.abort())
  const running: Promise<void>[] = [keepStream(url, other, { seen, over: over.signal })]
  for (let at = 0; !over.signal.aborted; at++) {
    const [path, request] = asks[at % asks.length] as Ask
    running.push(time(`${url}${path}`, request(), seen.times, seen.failed))
    if (at % 10 === 0) running.push(time(`${url}/healthz`, {}, seen.health, seen.failed))
    await sleep(everyMs)
  }
  await Promise.all(running)
  return seen
}

/** A page that is open: its stream may not end. */
async function keepStream(
  url: string,
  { cookie }: Other,
  { seen, over }: { seen: Seen; over: AbortSignal },
): Promise<void> {
  try {
    const answer = await fetch(`${url}${stream}`, { headers: { cookie, origin: url }, signal: over })
    await answer.arrayBuffer()
    seen.failed.push(`${answer.status}, ended, ${stream}`)
  } catch (error) {
    if (!over.aborted) seen.failed.push(`${(error as Error).message} ${stream}`)
  }
}

/** Until the whole answer is there; a stream is there with its first bytes. */
async function time(url: string, request: RequestInit, times: number[], failed: string[]): Promise<void> {
  const askedAt = performance.now()
  try {
    const answer = await fetch(url, request)
    if (answer.ok && url.endsWith(stream)) {
      const reader = answer.body?.getReader()
      await reader?.read()
      times.push(performance.now() - askedAt)
      return await reader?.cancel()
    }
    await answer.arrayBuffer()
    if (!answer.ok) failed.push(`${answer.status} ${new URL(url).pathname}`)
  } catch (error) {
    failed.push(`${(error as Error).message} ${new URL(url).pathname}`)
  }
  times.push(performance.now() - askedAt)
}

/** The worker opens the session of the account that sends. */
async function untilItSends(url: string, other: Other): Promise<void> {
  const found = asksOf(url, other).find(([path]) => path === '/api/v1/messages') as Ask
  for (let tries = 0; tries < 60; tries++) {
    const { ok } = await fetch(`${url}${found[0]}`, found[1]())
    if (ok) return
    await sleep(1_000)
  }
  throw new Error('The account of the other tenant is not connected.')
}

async function measure(service: Running, enemy: Running, other: Other): Promise<void> {
  const url = service.address
  const { names } = await ask<{ names: string[] }>(enemy, 'list')
  const chosen = values.only ?? names
  const unknown = chosen.find((name) => !names.includes(name))
  if (unknown !== undefined) throw new Error(`There is no attack ${unknown}; there are ${names.join('; ')}.`)
  await untilItSends(url, other)
  await serveOther(url, other, sleep(Math.min(seconds, 10) * 1_000))
  const base = await serveOther(url, other, sleep(seconds * 1_000))
  const p99 = quantile(base.times, 0.99)
  line([
    'attack',
    'answers to the attacker',
    'requests',
    'failed',
    'p99 ms',
    '× alone',
    'health s',
    'RSS MB',
    '',
  ])
  line([
    '(none)',
    '',
    number(base.times.length),
    number(base.failed.length),
    number(p99, 1),
    '1.0',
    healthOf(base),
    '',
    '',
  ])
  if (base.failed.length > 0) process.exitCode = 1
  // Before the first attack: what every attack left a little more of would not show before its own.
  const before = rssOf(service)
  for (const name of chosen) await measureAttack({ service, enemy, other }, { name, p99, before })
}

interface Stage {
  readonly service: Running
  readonly enemy: Running
  readonly other: Other
}

async function measureAttack(
  { service, enemy, other }: Stage,
  { name, p99, before }: { name: string; p99: number; before: number },
): Promise<void> {
  const attack = ask<{ answers: Record<string, number> }>(enemy, { name, seconds })
  const seen = await serveOther(service.address, other, attack)
  const { answers } = await attack
  const grown = await settle(service, before)
  const ratio = quantile(seen.times, 0.99) / p99
  const misses = [
    seen.failed.length > 0 && 'failed',
    ratio > goals.p99 && 'p99',
    Math.max(...seen.health) > goals.health_s * 1_000 && 'health',
    grown > goals.rss_mb && 'memory',
  ].filter((miss) => miss !== false)
  if (misses.length > 0) process.exitCode = 1
  line([
    ...[
      name,
      Object.entries(answers)
        .map(([status, times]) => `${status}: ${times}`)
        .join(', '),
    ],
    ...[number(seen.times.length), number(seen.failed.length), number(quantile(seen.times, 0.99), 1)],
    ...[number(ratio, 1), healthOf(seen), `${grown > 0 ? '+' : ''}${number(grown)}`],
    misses.length === 0 ? 'met' : `MISSED: ${misses.join(', ')}`,
  ])
  const kinds = Map.groupBy(seen.failed, (failure) => failure)
  for (const [failure, times] of kinds) console.log(`    ${times.length} × ${failure}`)
}

/** How many megabytes more than before the first attack the service has, a minute later at the latest. */
async function settle(service: Running, before: number): Promise<number> {
  const until = performance.now() + goals.settle_s * 1_000
  let grown = Number.POSITIVE_INFINITY
  do {
    await sleep(1_000)
    grown = (rssOf(service) - before) / megabyte
  } while (grown > goals.rss_mb && performance.now() < until)
  return grown
}

function healthOf({ health }: Seen): string {
  return number(Math.max(...health) / 1_000, 2)
}

function line([attack = '', answers = '', ...figures]: readonly string[]): void {
  const last = figures.pop() ?? ''
  console.log(
    `${attack.padEnd(27)}${answers.padEnd(40)}${figures.map((one) => one.padStart(9)).join('')}  ${last}`,
  )
}
