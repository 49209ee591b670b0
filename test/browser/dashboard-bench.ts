/**
 * The pages of the dashboard with much to show, in Chromium: rows in the document, memory after scrolling, the next chat by key,
 * typing in the campaign editor. `bench/dashboard.ts` starts it with a service, a workspace of 100,000 chats and a session.
 */
import { parseArgs } from 'node:util'
import type { Browser, CDPSession, Locator, Page, Request } from 'playwright-core'
import { number, quantile, row, verdict } from '../../bench/harness.ts'
import { until } from '../harness/process.ts'
import { openBrowser } from './browser.ts'

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: '' },
    /** One session for each part: its requests are limited. */
    cookies: { type: 'string', default: '' },
    workspace: { type: 'string', default: '' },
  },
})
const scrolled = 10_000
const presses = 20
const contacts = 5_000
const stateMsMax = 60_000
const typed = 'Hello, we made a new lamp for reading in the evening. Shall I keep one?'

const browser = await openBrowser()
if (browser) {
  try {
    const [first = '', second = '', third = ''] = values.cookies.split(' ')
    await scrollInbox(await openPage(browser, first))
    await pressNext(await openPage(browser, second))
    await typeCampaign(browser, await openPage(browser, third))
  } finally {
    await browser.close()
  }
} else row('Chromium', 'none here')

async function openPage(browser: Browser, cookie: string): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  const [name = '', value = ''] = cookie.split('=')
  await context.addCookies([{ name, value, url: values.url }])
  return context.newPage()
}

function addressOf(path: string): string {
  return `${values.url}/dashboard/w/${values.workspace}${path}`
}

function rowsOf(page: Page): Locator {
  return page.getByRole('list', { name: 'Chats' }).getByRole('listitem')
}

/** Scrolls as far as there are rows, again and again, until 10,000 chats are loaded. */
async function scrollInbox(page: Page): Promise<void> {
  const loading = loadsOf(page)
  await page.goto(addressOf('/inbox'))
  const rows = rowsOf(page)
  await rows.nth(5).waitFor()
  await until('what follows the first rows is loaded', stateMsMax, () => loading.size === 0)
  const session = await page.context().newCDPSession(page)
  const before = await heapOf(session)
  let most = 0
  await until('all are loaded', 240_000, async () => {
    const shown = await page.evaluate(scrollToEnd)
    most = Math.max(most, shown.rows)
    return shown.loaded >= scrolled
  })
  const after = await heapOf(session)
  row('heap at the start, after scrolling', `${number(before / 1e6, 1)}, ${number(after / 1e6, 1)} MB`)
  verdict('rows in the document', most, { most: 60 })
  verdict(`heap after scrolling ${number(scrolled)} chats over the start`, after / before, { most: 2 })
  await session.detach()
}

/** What the page loads at the moment. Its stream has no end. */
function loadsOf(page: Page): Set<Request> {
  const loading = new Set<Request>()
  page.on('request', (request) => {
    if (!request.url().endsWith('/stream')) loading.add(request)
  })
  for (const end of ['requestfinished', 'requestfailed'] as const) {
    page.on(end as 'requestfinished', (request) => void loading.delete(request))
  }
  return loading
}

/** Runs in the page. */
function scrollToEnd(): { rows: number; loaded: number } {
  const rows = [...document.querySelectorAll('ul[aria-label="Chats"] > li')]
  rows[0]?.parentElement?.parentElement?.scrollTo({ top: 1e9 })
  return { rows: rows.length, loaded: Number(rows[0]?.getAttribute('aria-setsize') ?? 0) }
}

/** What one collection frees can leave more for the next. */
async function heapOf(session: CDPSession): Promise<number> {
  for (let times = 0; times < 3; times++) await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = (await session.send('Runtime.getHeapUsage')) as { usedSize: number }
  return usedSize
}

/** `J` when the next chat has been read: how many frames pass until its last message is shown. */
async function pressNext(page: Page): Promise<void> {
  const read = new Set<string>()
  page.on('requestfinished', (request) => {
    const { pathname } = new URL(request.url())
    if (pathname.endsWith('/timeline')) read.add(pathname)
  })
  await page.goto(addressOf('/inbox'))
  await rowsOf(page).nth(5).waitFor()
  await page.keyboard.press('j')
  const frames: number[] = []
  for (let press = 0; press < presses; press++) {
    // The open chat, those before it, and the next.
    await until('the next chat is in memory', stateMsMax, () => read.size >= press + 2)
    const counted = await page.evaluateHandle(watchFrames)
    await page.keyboard.press('j')
    frames.push(await counted.evaluate(({ frames }) => frames))
  }
  row('frames until the next chat is shown, p50, most', `${quantile(frames, 0.5)}, ${Math.max(...frames)}`)
  verdict('frames until `J` shows the next chat', quantile(frames, 0.5), { most: 1 })
}

/** Runs in the page. The frame in whose callback the chat is there is the one that paints it. */
function watchFrames(): { readonly frames: Promise<number> } {
  const textOf = () => document.querySelector('section[aria-label="Messages"]')?.textContent ?? ''
  const before = textOf()
  const { promise, resolve } = Promise.withResolvers<number>()
  const begin = () => {
    let frames = 0
    const look = () => {
      frames++
      if (textOf() !== before && textOf().includes('Message 3 of')) resolve(frames)
      else requestAnimationFrame(look)
    }
    requestAnimationFrame(look)
  }
  document.addEventListener('keydown', begin, { once: true, capture: true })
  return { frames: promise }
}

/** The CPU of the longest task while the user types. The machine's other work is not the page's. */
async function typeCampaign(browser: Browser, page: Page): Promise<void> {
  await page.goto(addressOf('/campaigns/new'))
  await page.getByRole('button', { name: 'paste a list' }).click()
  const list = Array.from({ length: contacts }, (_, at) => `@person_number_${at}, Person ${at}`)
  const file = { name: 'contacts.csv', mimeType: 'text/csv', buffer: Buffer.from(list.join('\n')) }
  await page.getByLabel('CSV file').setInputFiles(file)
  await page.getByText('5,000 contacts').waitFor()
  await page.getByRole('checkbox', { name: 'Account 0' }).check()
  const text = page.getByLabel('First message', { exact: true })
  await text.fill('x')
  await page.getByText(/From Account 0, first/).waitFor({ timeout: stateMsMax })
  await browser.startTracing(page, { categories: ['toplevel'] })
  await text.pressSequentially(typed, { delay: 30 })
  await page.getByText(/From Account 0, first/).waitFor({ timeout: stateMsMax })
  const trace = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] }
  const longest = longestTask(trace.traceEvents)
  verdict(`ms of the longest task while typing, ${number(contacts)} contacts`, longest, { most: 100 })
}

interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  readonly dur?: number
  readonly tdur?: number
  readonly args?: { readonly name?: string }
}

function longestTask(events: readonly TraceEvent[]): number {
  const main = new Set(
    events
      .filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')
      .map(threadOf),
  )
  const tasks = events.filter(
    (event) => event.name === 'ThreadControllerImpl::RunTask' && main.has(threadOf(event)),
  )
  if (tasks.length === 0) throw new Error('The trace has no task.')
  return Math.max(...tasks.map(({ tdur, dur = 0 }) => tdur ?? dur)) / 1_000
}

function threadOf({ pid, tid }: TraceEvent): string {
  return `${pid} ${tid}`
}
