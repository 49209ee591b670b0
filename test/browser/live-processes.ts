/**
 * Two users at two processes: a message and a typing user within a second, 100 messages a second for a minute, a database that
 * is away for 20 s, and keys in a list of 100,000 chats while 10 messages a second arrive. Takes about ten minutes, so it is run by
 * hand: `node test/browser/live-processes.ts`, or with `messages`, `database`, `load` or `keys` for a part of it, after
 * `npm run test:browser` has installed its tools.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Browser, Page } from 'playwright-core'
import { quantile } from '../../bench/harness.ts'
import { openDatabase } from '../../src/db/pool.ts'
import { Postgres } from '../faults/postgres.ts'
import { signIn } from '../harness/person.ts'
import { endProcesses, runParley, spawnParley, until } from '../harness/process.ts'
import { testSecret } from '../harness/worker.ts'
import { type Ask, askAddress } from '../platform/sandbox-fixture.ts'
import { openBrowser } from './browser.ts'

const messages = 100
const withinMs = 1_000
const people = 50
const perSecond = 100
const burstMs = 60_000
const requestsMax = 600
const presses = 10
/** As a user reads: more keys would use up the requests of a minute by themselves. */
const readMs = 2_500
const awayMs = 20_000
const stateMsMax = 60_000
const chats = 100_000
const loaded = 10_000
const calmPerSecond = 10
const presses95 = { atFirst: 20, loaded: 40, letters: 60 }
const letterMs = 150
const keyMsMax = 50

interface Stage {
  readonly addresses: readonly string[]
  readonly workspace_id: string
  readonly account_id: string
  readonly platform: Ask
  readonly postgres: Postgres
  /** The cookies of two users. */
  readonly cookies: readonly string[]
}

const browser = await openBrowser()
if (!browser) throw new Error('There is no Chromium on this machine.')
const folder = await mkdtemp(join(tmpdir(), 'parley-live-'))
const postgres = new Postgres(join(folder, 'postgres'))
try {
  await postgres.start()
  const stage = await startProcesses()
  const person_id = await meet(stage, 'Mara Lind')
  const pages = await Promise.all(stage.addresses.map((_, at) => openChat(browser, stage, { at, person_id })))
  const chosen = (part: string) => process.argv.length < 3 || process.argv.includes(part)
  if (chosen('messages')) await shareMessages(stage, pages, person_id)
  if (chosen('messages')) await showTyping(pages)
  if (chosen('database')) await loseDatabase(stage, pages, person_id)
  if (chosen('load')) await bearLoad(stage, pages)
  if (chosen('keys')) await pressAmongMany(stage, pages)
} finally {
  await browser.close()
  await endProcesses()
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
}

/** A sandbox, a worker, two processes that serve; a workspace with two users and an account. */
async function startProcesses(): Promise<Stage> {
  const url = postgres.url('postgres', { name: 'live' })
  const env = { DATABASE_URL: url, PARLEY_SECRET: testSecret }
  const spawn = (role: string, more = {}) =>
    spawnParley([role, '--port', '0', '--data-dir', join(folder, role)], { ...env, ...more })
  const PARLEY_SANDBOX_URL = await spawn('sandbox').ready()
  const addresses = [await spawn('serve').ready(), await spawn('serve').ready()]
  await spawn('work', { PARLEY_SANDBOX_URL }).ready()
  const make = async (...args: string[]) => {
    const { stdout, stderr } = await runParley(args, env)
    const [, id] = /^id +(\S+)$/m.exec(stdout) ?? []
    assert.ok(id, `${args.join(' ')}: ${stdout}${stderr}`)
    return id
  }
  const workspace_id = await make('workspace', 'create', 'Acme')
  const users = [
    await make('user', 'create', 'ana@acme.example', '--workspace', workspace_id),
    await make('user', 'create', 'ben@acme.example', '--workspace', workspace_id),
  ]
  const account_id = await make('account', 'create', '--workspace', workspace_id, '--name', 'Sales')
  const db = openDatabase({ connectionString: url }, { pool_size: 2 })
  const cookies: string[] = []
  for (const user_id of users) cookies.push(await signIn({ app: { db } as never }, user_id))
  await db.close()
  return { addresses, workspace_id, account_id, platform: askAddress(PARLEY_SANDBOX_URL), postgres, cookies }
}

async function meet({ platform, account_id }: Stage, name: string): Promise<number> {
  const { person_id } = (await platform('addPerson', { name, behaviour: 'silent' })) as { person_id: number }
  // The account may not have connected yet.
  await until('the person can write', stateMsMax, async () => {
    const written = platform('writeMessage', { account_id, person_id, text: `Hello from ${name}` })
    return (await written.catch(() => undefined)) !== undefined
  })
  return person_id
}

async function openChat(
  browser: Browser,
  { addresses, cookies, workspace_id, account_id }: Stage,
  { at, person_id }: { at: number; person_id: number },
): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  const [name = '', value = ''] = (cookies[at] ?? '').split('=')
  const url = addresses[at] ?? ''
  await context.addCookies([{ name, value, url }])
  const page = await context.newPage()
  const chat = encodeURIComponent(`platform:chat:${person_id}`)
  await page.goto(`${url}/dashboard/w/${workspace_id}/inbox?chat=${chat}&of=${account_id}`)
  await page.getByRole('textbox', { name: /^Answer/ }).waitFor({ timeout: stateMsMax })
  return page
}

/** How long until a text is in the chat, from now. */
async function shownMs(page: Page, text: string): Promise<number> {
  const beganAt = performance.now()
  await page.getByRole('region', { name: 'Messages' }).getByText(text).waitFor({ timeout: stateMsMax })
  return performance.now() - beganAt
}

async function shareMessages({ platform, account_id }: Stage, pages: readonly Page[], person_id: number) {
  const times: number[] = []
  for (let n = 1; n <= messages; n++) {
    const text = `Message number ${n}.`
    const shown = Promise.all(pages.map((page) => shownMs(page, text)))
    await platform('writeMessage', { account_id, person_id, text })
    times.push(Math.max(...(await shown)))
    // A page reads at most once a second: each message is on its own.
    await sleep(1_100)
  }
  report(`${messages} messages in both, p50 and p95`, [quantile(times, 0.5), quantile(times, 0.95)])
  assert.ok(quantile(times, 0.95) <= withinMs, 'a message within a second')
}

async function showTyping([ana, ben]: readonly Page[]): Promise<void> {
  assert.ok(ana && ben)
  await ben.getByText(/has it open/).waitFor({ timeout: stateMsMax })
  const beganAt = performance.now()
  const shown = ben.getByText(/is typing/).waitFor({ timeout: stateMsMax })
  await ana.getByRole('textbox', { name: /^Answer/ }).pressSequentially('Yes')
  await shown
  const ms = performance.now() - beganAt
  report('typing at the other process', [ms])
  assert.ok(ms <= withinMs, 'typing within a second')
}

async function loseDatabase({ platform, account_id }: Stage, pages: readonly Page[], person_id: number) {
  const [ana] = pages
  assert.ok(ana)
  const text = 'Sent while the database was away.'
  await postgres.halt()
  await ana.getByRole('textbox', { name: /^Answer/ }).fill(text)
  await ana.getByRole('button', { name: /^Send/ }).click()
  await sleep(awayMs)
  await postgres.start()
  const backAt = performance.now()
  const own = ana.getByRole('article', { name: 'Message from us' }).filter({ hasText: text })
  await own.getByText(/Accepted/).waitFor({ timeout: 2 * stateMsMax })
  report('accepted after the database was back', [performance.now() - backAt])
  const written = 'Written after the database was back.'
  await platform('writeMessage', { account_id, person_id, text: written })
  for (const page of pages) await shownMs(page, written)
  report('live again in both', [performance.now() - backAt])
  const { entries } = (await platform('readJournal', {})) as { entries: { text: string | null }[] }
  assert.equal(entries.filter((entry) => entry.text === text).length, 1, 'sent once')
}

async function bearLoad(stage: Stage, pages: readonly Page[]): Promise<void> {
  const { platform, account_id } = stage
  const [ana] = pages
  assert.ok(ana)
  const ids: number[] = []
  for (let n = 0; n < people; n++) ids.push(await meet(stage, `Person ${n}`))
  // A list without them would have nothing below the first chat.
  await ana.getByRole('link', { name: `Unread ${people + 1}` }).waitFor({ timeout: stateMsMax })
  const idle = await pressKeys(ana)
  const counts = pages.map(countRequests)
  const beganAt = performance.now()
  let written = 0
  const keys: number[] = []
  const pressing = (async () => {
    while (performance.now() - beganAt < burstMs) keys.push(...(await pressKeys(ana)))
  })()
  const writing: Promise<unknown>[] = []
  while (performance.now() - beganAt < burstMs) {
    const due = Math.floor(((performance.now() - beganAt) / 1_000) * perSecond)
    for (; written < due; written++) {
      const person_id = ids[written % ids.length] ?? 0
      writing.push(platform('writeMessage', { account_id, person_id, text: `Burst ${written}` }))
    }
    await sleep(20)
  }
  await Promise.all(writing)
  await pressing
  const seconds = (performance.now() - beganAt) / 1_000
  report('messages a second', [written / seconds])
  const requests = counts.map(({ count }) => (count / seconds) * 60)
  report('requests a minute of each session', requests)
  report('a key press without and with them, p50', [quantile(idle, 0.5), quantile(keys, 0.5)])
  assert.ok(Math.max(...requests) < requestsMax, 'requests of a session')
  assert.deepEqual(
    counts.map(({ refused }) => refused),
    [0, 0],
  )
  assert.ok(quantile(keys, 0.5) <= 3 * quantile(idle, 0.5), 'key presses')
}

function countRequests(page: Page): { count: number; refused: number } {
  const counted = { count: 0, refused: 0 }
  page.on('response', (response) => {
    if (!new URL(response.url()).pathname.startsWith('/dashboard/api/')) return
    counted.count++
    if (response.status() === 429) counted.refused++
  })
  return counted
}

/** Down the list from its top: how long from a key press to the frame after the next chat was opened. */
async function pressKeys(page: Page): Promise<number[]> {
  const times: number[] = []
  // The first leaves the composer if the user was there, the next one the chat.
  await until('no chat is open', stateMsMax, async () => {
    await page.keyboard.press('Escape')
    return !new URL(page.url()).searchParams.has('chat')
  })
  for (let press = 0; press < presses; press++) {
    const watched = await page.evaluateHandle(watchAddress)
    await page.keyboard.press('j')
    times.push(await watched.evaluate(({ ms }) => ms))
    await sleep(readMs)
  }
  return times
}

/** Runs in the page. */
function watchAddress(): { readonly ms: Promise<number> } {
  const before = location.href
  const { promise, resolve } = Promise.withResolvers<number>()
  const begin = () => {
    const beganAt = performance.now()
    const look = () => {
      if (location.href !== before) resolve(performance.now() - beganAt)
      else requestAnimationFrame(look)
    }
    requestAnimationFrame(look)
  }
  document.addEventListener('keydown', begin, { once: true, capture: true })
  return { ms: promise }
}

/** Of one account, older than all that is written here. Written past the service, which would take minutes. */
async function addChats({ postgres, workspace_id, account_id }: Stage): Promise<void> {
  const client = new pg.Client(postgres.url('postgres', { name: 'fill' }))
  // Its error is that of the statement, not of the server that ends after it.
  client.on('error', () => {})
  await client.connect()
  const own = [workspace_id, account_id, chats]
  await client.query('set statement_timeout = 0')
  await client.query(
    `insert into chats (account_id, chat_id, workspace_id, kind, name, last_message_id, last_sender_of, last_message_text,
      last_message_at, last_is_sender, unread_count, stage_key)
    select $2, 10000000 + n, $1, 'private', 'Person ' || n, 3, 3, 'Message 3 of ' || n, now() - n * interval '1 minute', false, 0,
      'new'
    from generate_series(1, $3::int) n`,
    own,
  )
  await client.query(
    `insert into chat_sync (account_id, chat_id, workspace_id, complete)
    select account_id, chat_id, workspace_id, true from chats where chat_id > 10000000`,
  )
  await client.query('vacuum analyze chats, chat_sync')
  await client.end()
}

/** From a key press until the page shows what it does, as it is opened and with 10,000 chats loaded. */
async function pressAmongMany(stage: Stage, [page]: readonly Page[]): Promise<void> {
  assert.ok(page)
  const ids: number[] = []
  for (let n = 0; n < people; n++) ids.push(await meet(stage, `Calm ${n}`))
  await addChats(stage)
  await page.reload()
  await page.getByRole('link', { name: 'Calm 49' }).waitFor({ timeout: stateMsMax })
  const stop = new AbortController()
  const writing = write(stage, ids, stop.signal)
  const atFirst = await pressDown(page, presses95.atFirst)
  await until('many are loaded', 4 * stateMsMax, async () => (await page.evaluate(scrollDown)) >= loaded)
  const among = await pressDown(page, presses95.loaded)
  const letters = await typeLetters(page)
  stop.abort()
  report('messages a second', [await writing])
  for (const [label, times] of Object.entries({
    'J, as opened': atFirst,
    [`J, ${loaded} loaded`]: among,
    'a letter': letters,
  })) {
    report(`${label}: p50, p95, most in ms`, [
      quantile(times, 0.5),
      quantile(times, 0.95),
      Math.max(...times),
    ])
  }
  for (const times of [atFirst, among, letters]) assert.ok(quantile(times, 0.95) <= keyMsMax, 'a key press')
}

/** Until it is told to stop; returns how many came in a second. */
async function write({ platform, account_id }: Stage, ids: readonly number[], signal: AbortSignal) {
  const beganAt = performance.now()
  let written = 0
  while (!signal.aborted) {
    const person_id = ids[written % ids.length] ?? 0
    await platform('writeMessage', { account_id, person_id, text: `Calm ${written++}` })
    await sleep(Math.max(0, beganAt + (written * 1_000) / calmPerSecond - performance.now()))
  }
  return (written * 1_000) / (performance.now() - beganAt)
}

async function pressDown(page: Page, count: number): Promise<number[]> {
  const times: number[] = []
  for (let press = 0; press < count; press++) {
    const watched = await page.evaluateHandle(watchSelected)
    await page.keyboard.press('j')
    times.push(await watched.evaluate(({ ms }) => ms))
    await sleep(readMs)
  }
  return times
}

/** Runs in the page: until the frame with the next selected row is painted. */
function watchSelected(): { readonly ms: Promise<number> } {
  const selected = () =>
    document.querySelector('ul[aria-label="Chats"] [aria-current]')?.getAttribute('href') ?? ''
  const before = selected()
  const { promise, resolve } = Promise.withResolvers<number>()
  const begin = (event: Event) => {
    const look = () => {
      if (selected() === before || selected() === '') requestAnimationFrame(look)
      else setTimeout(() => resolve(performance.now() - event.timeStamp))
    }
    requestAnimationFrame(look)
  }
  document.addEventListener('keydown', begin, { once: true, capture: true })
  return { ms: promise }
}

/** Runs in the page. Returns how many rows there are. */
function scrollDown(): number {
  const [row] = document.querySelectorAll('ul[aria-label="Chats"] > li')
  row?.parentElement?.parentElement?.scrollTo({ top: 1e9 })
  return Number(row?.getAttribute('aria-setsize') ?? 0)
}

async function typeLetters(page: Page): Promise<number[]> {
  await page.getByRole('textbox', { name: /^Answer/ }).focus()
  const watched = await page.evaluateHandle(watchLetters)
  for (let letter = 0; letter < presses95.letters; letter++) {
    await page.keyboard.press('a')
    await sleep(letterMs)
  }
  return watched.evaluate(({ ms }) => ms)
}

/** Runs in the page: until the frame after each letter is painted. */
function watchLetters(): { readonly ms: number[] } {
  const ms: number[] = []
  const begin = ({ timeStamp }: Event) =>
    requestAnimationFrame(() => setTimeout(() => ms.push(performance.now() - timeStamp)))
  document.addEventListener('keydown', begin, { capture: true })
  return { ms }
}

function report(label: string, figures: readonly number[]): void {
  process.stdout.write(`   ${label}: ${figures.map((figure) => Math.round(figure)).join(', ')}\n`)
}
