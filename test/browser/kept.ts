/**
 * What is typed is there after a reload, at whatever moment it comes, and what is sent goes out from any page. `--rounds 200` repeats
 * the reload in five tabs; `--held 40` sets how many texts meet a store that this tab and another one hold open.
 */
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import type { BrowserContext, Locator, Page } from 'playwright-core'
import { until } from '../harness/process.ts'
import { setUp } from './approval-journey.ts'
import { openBrowser } from './browser.ts'
import { type Demo, exampleChat, startDemo } from './demo.ts'
import { visitAsOwner } from './editor-journey.ts'
import { step } from './step.ts'

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, held: { type: 'string', default: '12' } },
})
/** How long a page may take to show what it kept. What is lost never comes. */
const shownMsMax = Number(process.env.PARLEY_TEST_SHOWN_MS ?? 30_000)
const actionMsMax = Math.max(60_000, shownMsMax)
const password = 'a long sentence nobody guesses'
const column = 'Interest'

/** A session has 600 requests in a minute, and a reload takes some twenty. */
const requestsMax = 400

/** Waits until the session may ask again: this is faster than people. */
type Pace = () => Promise<unknown>

function paceOf(context: BrowserContext): Pace {
  const asked: number[] = []
  context.on('request', (request) => {
    if (request.url().includes('/dashboard/api/')) asked.push(performance.now())
  })
  return () =>
    until('the session may ask again', 2 * actionMsMax, async () => {
      while ((asked[0] ?? Number.POSITIVE_INFINITY) < performance.now() - 60_000) asked.shift()
      return asked.length < requestsMax || undefined
    })
}

interface Tabs {
  readonly context: BrowserContext
  readonly pace: Pace
}

/** Where something is typed. */
interface Field {
  readonly name: string
  readonly path: string
  /** Leads to the field, also after a reload. */
  readonly open: (page: Page) => Promise<Locator>
}

const fieldsOf = (workspace: string, other: string): readonly Field[] => {
  const inbox = `${workspace}/inbox?chat=${exampleChat.id}&of=${exampleChat.account_id}`
  const composer = async (page: Page) => page.getByRole('textbox', { name: /^Answer/ })
  return [
    {
      name: 'editor',
      path: `${workspace}/campaigns/new`,
      open: async (page) => page.getByLabel('Name of the campaign'),
    },
    { name: 'composer', path: inbox, open: composer },
    { name: 'note', path: inbox, open: openNote },
    { name: 'column', path: inbox, open: openColumn },
    {
      name: 'other composer',
      path: `${workspace}/inbox?chat=${other}&of=${exampleChat.account_id}`,
      open: composer,
    },
  ]
}

async function openNote(page: Page): Promise<Locator> {
  const button = page.getByRole('button', { name: /^(Write a|Go on with your) note$/ })
  return openedBy(page.getByLabel('Note for the team'), button)
}

async function openColumn(page: Page): Promise<Locator> {
  const side = page.getByRole('complementary', { name: 'About this chat' })
  const button = side.getByRole('button', { name: `${column}: `, exact: false })
  return openedBy(side.getByRole('textbox', { name: column, exact: true }), button)
}

/** The field opens with a click, or is open; its button may go or change its name before the click, once the store has answered. */
async function openedBy(field: Locator, button: Locator): Promise<Locator> {
  await until('the field is open', actionMsMax, async () => {
    if (await field.isVisible()) return true
    await button.click({ timeout: 1_000 }).catch(() => {})
    return undefined
  })
  return field
}

/** Runs in a page: a transaction that writes to every store, and ends when the test says so. */
function holdStore(): Promise<void> {
  return new Promise((resolve) => {
    const opening = indexedDB.open('parley')
    opening.onsuccess = () => {
      const database = opening.result
      const names = [...database.objectStoreNames]
      const store = database.transaction(names, 'readwrite').objectStore(names[0] ?? '')
      const spin = () => {
        if (document.documentElement.dataset.released === undefined) store.get('none').onsuccess = spin
      }
      store.get('none').onsuccess = () => {
        resolve()
        spin()
      }
    }
  })
}

/** Runs in a page. */
function releaseStore(): void {
  document.documentElement.dataset.released = ''
}

/** What is typed before the store has answered continues what the store had, so the field may begin with an earlier text. */
async function isShown(page: Page, { open }: Field, text: string): Promise<boolean> {
  const field = await open(page)
  let value = ''
  const read = async () => {
    value = await field.inputValue({ timeout: shownMsMax }).catch(() => '')
    return value.endsWith(text) || undefined
  }
  return until('the text is there', shownMsMax, read).catch(() => {
    process.stdout.write(`   "${text}" is lost: the field has "${value}"\n`)
    return false
  })
}

/** This tab holds the store when its page ends, and another one does until the next page has begun. */
async function reloadWhileHeld(
  { context, pace }: Tabs,
  fields: readonly Field[],
  address: string,
): Promise<void> {
  const kept = new Map(fields.map(({ name }) => [name, 0]))
  const each = Math.ceil(Number(options.held) / fields.length)
  for (const field of fields) {
    const page = await context.newPage()
    await page.goto(field.path)
    for (let n = 0; n < each; n++) {
      await pace()
      const other = await context.newPage()
      await other.goto(`${address}/dashboard/mcp-approvals`)
      const place = await field.open(page)
      // The store has answered: what is typed now waits for nothing but to be saved.
      await page.evaluate(readStore)
      await page.evaluate(holdStore)
      const held = other.evaluate(holdStore)
      const text = `${field.name} ${n}`
      await place.fill(text)
      await page.reload({ waitUntil: 'commit' })
      await held
      await other.evaluate(releaseStore)
      await other.close()
      if (await isShown(page, field, text)) kept.set(field.name, (kept.get(field.name) ?? 0) + 1)
    }
    await page.close()
  }
  const all = [...kept.values()].reduce((sum, count) => sum + count, 0)
  const words = [...kept].map(([name, count]) => `${name} ${count}`).join(', ')
  process.stdout.write(`   ${all} of ${each * fields.length} texts kept (of ${each} each: ${words})\n`)
  assert.equal(all, each * fields.length, 'texts that are kept')
}

/** Runs in a page: a read of every store, which ends after those that were asked for before. */
function readStore(): Promise<void> {
  return new Promise((resolve) => {
    const opening = indexedDB.open('parley')
    opening.onsuccess = () => {
      const database = opening.result
      const transaction = database.transaction([...database.objectStoreNames], 'readonly')
      transaction.oncomplete = () => {
        database.close()
        resolve()
      }
      transaction.objectStore(database.objectStoreNames[0] ?? '').get('none')
    }
  })
}

/** Five tabs that type and reload, each after its own time. */
async function reloadAtRandom(
  { context, pace }: Tabs,
  fields: readonly Field[],
  rounds: number,
): Promise<void> {
  const lost: string[] = []
  await Promise.all(
    fields.map(async (field) => {
      const page = await context.newPage()
      await page.goto(field.path)
      for (let round = 0; round < rounds; round++) {
        const text = `${field.name}, round ${round}`
        await pace()
        const place = await field.open(page)
        await place.fill(text)
        await page.waitForTimeout(Math.random() * 400)
        await page.reload({ waitUntil: 'commit' })
        if (!(await isShown(page, field, text))) lost.push(text)
      }
      await page.close()
    }),
  )
  process.stdout.write(`   ${rounds} rounds in ${fields.length} tabs: ${lost.length} lost\n`)
  assert.deepEqual(lost, [])
}

/** The tab is closed with the click: the message waits in the journal alone. */
async function sendAndLeave(context: BrowserContext, { path, open }: Field, text: string): Promise<void> {
  const page = await context.newPage()
  await page.goto(path)
  await (await open(page)).fill(text)
  await page.getByText('Draft saved').waitFor()
  await page.evaluate(holdStore)
  await page.getByRole('button', { name: /^Send/ }).click()
  await page.close()
}

const isSent = (demo: Demo, text: string) =>
  until('it is sent', actionMsMax, async () => (await demo.journal()).includes(text) || undefined)

/** Another page of the dashboard sends it, once, although that page is refused at first. */
async function sendAndClose(context: BrowserContext, demo: Demo, field: Field): Promise<void> {
  const text = 'Sent with the last click'
  await sendAndLeave(context, field, text)
  assert.ok(!(await demo.journal()).includes(text), 'not sent before')
  const other = await context.newPage()
  const refusal = { status: 429, json: { code: 'rate_limited', error: 'Too many requests.' } }
  await other.route('**/dashboard/api/session', (route) => route.fulfill(refusal), { times: 1 })
  await other.goto(`${demo.address}/dashboard/profile`)
  await other.getByText('Too many requests. Trying again in a moment.').waitFor()
  await isSent(demo, text)
  await other.goto(field.path)
  await other.getByRole('article', { name: 'Message from us' }).filter({ hasText: text }).waitFor()
  assert.equal(await (await field.open(other)).inputValue(), '')
  assert.equal((await demo.journal()).filter((each) => each === text).length, 1)
  await other.close()
}

/** The next page is the same chat: its composer is empty although the message is still on its way. */
async function sendAndReopen(context: BrowserContext, demo: Demo, field: Field): Promise<void> {
  const text = 'Sent with the last click, in the same chat'
  await sendAndLeave(context, field, text)
  const page = await context.newPage()
  let goOn = () => {}
  const answered = new Promise<void>((resolve) => {
    goOn = resolve
  })
  await page.route('**/messages', async (route) => {
    if (route.request().method() === 'POST') await answered
    await route.continue()
  })
  await page.goto(field.path)
  const message = page.getByRole('article', { name: 'Message from us' }).filter({ hasText: text })
  await message.waitFor()
  const composer = await field.open(page)
  await until('the composer is empty', actionMsMax, async () => {
    return (await composer.inputValue()) === '' || undefined
  })
  goOn()
  await isSent(demo, text)
  await message.getByText(/Accepted/).waitFor()
  assert.equal(await composer.inputValue(), '')
  assert.equal((await demo.journal()).filter((each) => each === text).length, 1)
  await page.close()
}

/** A value that the service cannot take stays in its field, with why, and goes with the next attempt. */
async function keepRefused(context: BrowserContext, field: Field): Promise<void> {
  const page = await context.newPage()
  await page.goto(field.path)
  const place = await field.open(page)
  await page.route('**/columns/set', (route) =>
    route.fulfill({ status: 503, json: { code: 'store_unavailable', error: 'The store does not respond.' } }),
  )
  await place.fill('Two of them')
  await place.press('Enter')
  await page.getByText('The store does not respond.').waitFor()
  assert.equal(await place.inputValue(), 'Two of them')
  await page.unroute('**/columns/set')
  await page.getByRole('button', { name: 'Try again' }).click()
  await page
    .getByRole('button', { name: `${column}: Two of them. Change` })
    .first()
    .waitFor()
  await page.close()
}

const choices = ['select', 'multi_select', 'checkbox'] as const

/** What is chosen stays in its field too, also after a reload, until the service has it. */
async function keepChosen(context: BrowserContext, { path }: Field): Promise<void> {
  const page = await context.newPage()
  await page.goto(path)
  const side = page.getByRole('complementary', { name: 'About this chat' })
  const many = side.getByRole('button', { name: 'multi_select: Blue. Change' })
  const choose = {
    select: () => side.getByLabel('select', { exact: true }).selectOption('Blue'),
    multi_select: async () => {
      await side.getByRole('button', { name: 'multi_select: empty. Change' }).click()
      await side.getByRole('checkbox', { name: 'Blue' }).check()
      await side.getByRole('button', { name: 'Done' }).click()
    },
    checkbox: () => side.getByLabel('checkbox', { exact: true }).check(),
  }
  const hasChoice = {
    select: async () => (await side.getByLabel('select', { exact: true }).inputValue()) === 'Blue',
    multi_select: () => many.isVisible(),
    checkbox: () => side.getByLabel('checkbox', { exact: true }).isChecked(),
  }
  const again = side.getByRole('button', { name: 'Try again' })
  for (const type of choices) {
    const stays = () =>
      until(`${type} has what was chosen`, actionMsMax, async () => (await hasChoice[type]()) || undefined)
    await page.route('**/columns/set', (route) =>
      route.fulfill({
        status: 503,
        json: { code: 'store_unavailable', error: 'The store does not respond.' },
      }),
    )
    await choose[type]()
    await side.getByText('The store does not respond.').waitFor()
    await stays()
    await page.reload()
    await side.getByText('This is not saved yet.').waitFor()
    await stays()
    await page.unroute('**/columns/set')
    // While the service is asked, the button is gone as well.
    const taken = page.waitForResponse((answer) => answer.url().endsWith('/columns/set') && answer.ok())
    await again.click()
    await taken
    await page.reload()
    await stays()
    assert.equal(await again.count(), 0)
  }
  await page.close()
}

/** The browser's own field may show a date in another order: the words beside it, and the value, have one. */
async function sayDate(context: BrowserContext, { path }: Field): Promise<void> {
  const page = await context.newPage()
  await page.goto(path)
  const side = page.getByRole('complementary', { name: 'About this chat' })
  await side.getByRole('button', { name: 'date: empty. Change' }).click()
  const field = side.getByLabel('date', { exact: true })
  await field.fill('2026-11-09')
  await side.getByText('Mon, 9 Nov 2026').waitFor()
  await field.press('Enter')
  await side.getByRole('button', { name: 'date: Mon, 9 Nov 2026. Change' }).waitFor()
  await page.close()
}

/** In the page: it counts its ways to the sign-in page, and on the first clicks the link whose text begins with `name`. */
function clickOnce(name: string): void {
  let ends = 0
  for (const way of ['pushState', 'replaceState'] as const) {
    const go = history[way].bind(history)
    history[way] = (state, unused, url) => {
      go(state, unused, url)
      if (!String(url).includes('/sign-in')) return
      document.documentElement.dataset.ends = String(++ends)
      const links = [...document.querySelectorAll('a')]
      const link = links.find(({ textContent }) => textContent?.startsWith(name))
      if (ends === 1) setTimeout(() => link?.click())
    }
  }
}

/** The sign-in page says what has become of the text, and it is there after the sign-in. */
async function endSession(context: BrowserContext, field: Field): Promise<void> {
  const page = await context.newPage()
  await page.goto(field.path)
  await (await field.open(page)).fill('Half a thought')
  // While it is on its way to the sign-in page, a click leads elsewhere and finds no session either. The page makes that click: a
  // moment later the link is gone.
  let arrive = () => {}
  const arrives = new Promise<void>((resolve) => {
    arrive = resolve
  })
  await page.route('**/assets/sign-in-*.js', async (route) => {
    await arrives
    await route.continue()
  })
  await page.evaluate(clickOnce, 'All')
  const cookies = await context.cookies()
  await context.clearCookies()
  // What the page asks by itself may find the end first.
  await page.evaluate(() => document.querySelector<HTMLElement>('a[href*="view=unread"]')?.click())
  await page.waitForFunction(() => Number(document.documentElement.dataset.ends) >= 2)
  arrive()
  await page.getByText('Your session ended. What you wrote is kept.').waitFor()
  await context.addCookies(cookies)
  await page.goto(field.path)
  assert.ok(await isShown(page, field, 'Half a thought'), 'what was written is kept')
  await page.close()
}

/** A form that is not kept: the sign-in page does not promise it. */
async function endSessionInForm(context: BrowserContext, workspace: string): Promise<void> {
  const page = await context.newPage()
  await page.goto(`${workspace}/webhooks?open=add`)
  await page.getByLabel('Address').fill('https://example.com/hook')
  const cookies = await context.cookies()
  await context.clearCookies()
  await page.getByRole('dialog').getByRole('button', { name: 'Add endpoint' }).click()
  await page.getByText('Your session ended. What stood in the open form is not kept.').waitFor()
  await context.addCookies(cookies)
  await page.close()
}

const browser = await openBrowser()
if (!browser) {
  process.stdout.write('== skipped: there is no Chromium on this machine, and none that npm carries for it\n')
} else {
  const demo = await startDemo()
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
    context.setDefaultTimeout(actionMsMax)
    const pace = paceOf(context)
    const broken: string[] = []
    context.on('weberror', (error) => broken.push(String(error.error())))
    const page = await context.newPage()
    await setUp(page, demo, password)
    await page.close()
    const { page: spare, workspace_id, ask } = await visitAsOwner(context, demo, password)
    await spare.close()
    await ask('POST', '/columns', { name: column, type: 'text' })
    await ask('POST', '/columns', { name: 'date', type: 'date' })
    for (const type of choices) {
      const options = type === 'checkbox' ? [] : ['Blue', 'Red'].map((option) => ({ value: option }))
      await ask('POST', '/columns', { name: type, type, options })
    }
    const { person_id } = (await demo.platform('addPerson', { name: 'Mara Lind', behaviour: 'silent' })) as {
      person_id: number
    }
    await demo.platform('writeMessage', {
      account_id: exampleChat.account_id,
      person_id,
      text: 'Still there?',
    })
    const fields = fieldsOf(`${demo.address}/dashboard/w/${workspace_id}`, `platform:chat:${person_id}`)
    const [, composer, note, value] = fields as readonly [Field, Field, Field, Field]
    await step(browser, 'a reload while two tabs hold the store', () =>
      reloadWhileHeld({ context, pace }, fields.slice(0, 4), demo.address),
    )
    await step(browser, 'a reload at any moment', () =>
      reloadAtRandom({ context, pace }, fields, Number(options.rounds)),
    )
    await pace()
    await step(browser, 'sent with the last click, from any page', () =>
      sendAndClose(context, demo, composer),
    )
    await step(browser, 'sent with the last click, and the same chat opened again', () =>
      sendAndReopen(context, demo, composer),
    )
    await step(browser, 'a value that cannot be stored', () => keepRefused(context, value))
    await step(browser, 'a choice that cannot be stored', () => keepChosen(context, value))
    await step(browser, 'a date in words', () => sayDate(context, value))
    await step(browser, 'the end of a session', () => endSession(context, note))
    await step(browser, 'the end of a session in a form that is not kept', () =>
      endSessionInForm(context, `${demo.address}/dashboard/w/${workspace_id}`),
    )
    assert.deepEqual(broken, [], 'errors in pages')
  } finally {
    await browser.close()
    await demo.close()
  }
}
