/**
 * Makes the pictures of README and docs, and one of every page (`tmp/screenshots`) in both themes at 1440, 1280 and 390 px, in
 * forced colours and at 200 % zoom, from a separate demo: `npm run screenshots`, after `npm run test:browser` has installed its
 * tools. `--only inbox` takes the pages whose name matches, and leaves the pictures of docs as they are. It fails if a page is
 * wider than its window, has an error in its console, or has a dialog that is cut off.
 */
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Browser, BrowserContext, Cookie, Page } from 'playwright-core'
import { makeKey, mouse, setUp } from './approval-journey.ts'
import { openBrowser } from './browser.ts'
import { callTool, type Demo, exampleChat, startDemo } from './demo.ts'
import { firstCampaign, open, type Sight, sightsOf, widthOver } from './every-page.ts'
import { png } from './received-files.ts'
import { password, signInAs } from './sessions.ts'

const root = join(import.meta.dirname, '..', '..')
const folders = { docs: join(root, 'docs', 'screenshots'), pages: join(root, 'tmp', 'screenshots') }
/** The cookie of a browser that has signed in. */
let known: Cookie[] = []
const text =
  'thank you for your patience. Your order left this morning and should be with you on Thursday. Shall I send the tracking link?'

const looks = [
  { width: 1440, height: 900, theme: 'light' },
  { width: 1440, height: 900, theme: 'dark' },
  { width: 1280, height: 800, theme: 'light' },
  { width: 1280, height: 800, theme: 'dark' },
  { width: 390, height: 844, theme: 'light' },
  { width: 390, height: 844, theme: 'dark' },
  { width: 1280, height: 800, theme: 'dark', forced: true },
  // A window of 1280 pixels at 200 %.
  { width: 640, height: 400, theme: 'light', zoom: 2 },
] as const satisfies readonly Look[]

interface Look {
  readonly width: number
  readonly height: number
  readonly theme: 'light' | 'dark'
  readonly forced?: boolean
  readonly zoom?: number
}

const { values: options } = parseArgs({ options: { only: { type: 'string' } } })
const isWanted = (name: string) => options.only === undefined || new RegExp(options.only).test(name)

const browser = await openBrowser()
if (!browser) throw new Error('There is no Chromium on this machine.')
const demo = await startDemo()
try {
  for (const folder of Object.values(folders)) await mkdir(folder, { recursive: true })
  const pages = await picturesOfDocs(browser, demo)
  const wrong: string[] = []
  for (const look of looks) wrong.push(...(await picturesOfPages(browser, demo, { ...pages, look })))
  assert.deepEqual(wrong, [])
  process.stdout.write('The pictures are in tmp/screenshots.\n')
} finally {
  await browser.close()
  await demo.close()
}

interface Pages {
  readonly sights: readonly Sight[]
  readonly states: readonly State[]
}

/** Returns the pages that there are then. */
async function picturesOfDocs(browser: Browser, demo: Demo): Promise<Pages> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, colorScheme: 'light' })
  const page = await context.newPage()
  await setUp(page, demo, password)
  await page.goto(`${demo.address}/dashboard/`)
  const key = await makeKey(page, mouse, 'Claude on my laptop')
  await page.reload()
  await page.getByText('Claude on my laptop').waitFor()
  await keepForDocs(page, 'keys')
  const { structuredContent } = await callTool(demo.address, key, {
    name: 'service_send_message',
    arguments: {
      account_id: exampleChat.account_id,
      chat_id: exampleChat.id,
      text: `Hello ${exampleChat.name.split(' ')[0]},\n\n${text}`,
    },
  })
  await page.goto(String(structuredContent.approval_url))
  await page.getByRole('button', { name: 'Approve' }).waitFor()
  await keepForDocs(page, 'approvals')
  const answer = await context.request.get(`${demo.address}/dashboard/api/session`)
  const { workspaces } = (await answer.json()) as { workspaces: { id: string }[] }
  const workspace_id = workspaces[0]?.id ?? ''
  const campaign_id = await firstCampaign(context, demo.address, workspace_id)
  await fillCards(context, `${demo.address}/dashboard/api/w/${workspace_id}`)
  const sights = sightsOf({ workspace_id, request_id: String(structuredContent.request_id), campaign_id })
  const chat = sights.find(({ path }) => path.includes('/inbox?chat='))
  assert.ok(chat)
  await open(page, demo.address, chat)
  await page.evaluate(() => document.fonts.ready)
  await keepForDocs(page, 'inbox')
  const states = await statesOfChats(page, demo, workspace_id)
  await context.close()
  return { sights, states }
}

async function keepForDocs(page: Page, name: string): Promise<void> {
  if (options.only === undefined) await page.screenshot({ path: join(folders.docs, `${name}.png`) })
}

/** The newest chats get a plan, so that the cards of the board show values. */
async function fillCards(context: BrowserContext, here: string): Promise<void> {
  const ask = async (path: string, data?: object) => {
    const headers = { origin: new URL(here).origin }
    const answer = await (data
      ? context.request.post(here + path, { headers, data })
      : context.request.get(here + path))
    assert.ok(answer.ok(), `${path}: ${answer.status()}`)
    return answer.json()
  }
  const { chats } = (await ask('/inbox?limit=6')) as { chats: { id: string; account_id: string }[] }
  const { columns } = (await ask('/columns?limit=1')) as {
    columns: { id: string; options: { value: string }[] }[]
  }
  const [{ id: column_id, options } = { id: '', options: [] }] = columns
  for (const [at, { id: chat_id, account_id }] of chats.entries()) {
    const value = [options[at % options.length]?.value]
    await ask('/columns/set', { account_id, chat_id, column_id, value })
  }
}

/** A chat in a state that its address does not say. */
interface State extends Sight {
  readonly name: string
  /** Leads to it, and waits for it. */
  readonly prepare: (page: Page) => Promise<unknown>
}

/** A person who asked to stop, a message of which nobody knows whether it arrived, and files that are not sent yet. */
async function statesOfChats(page: Page, demo: Demo, workspace_id: string): Promise<State[]> {
  const { account_id } = exampleChat
  const meet = async (name: string, text: string) => {
    const { person_id } = (await demo.platform('addPerson', { name, behaviour: 'silent' })) as {
      person_id: number
    }
    await demo.platform('writeMessage', { account_id, person_id, text })
    const chat_id = `platform:chat:${person_id}`
    const path = `/dashboard/w/${workspace_id}/inbox?chat=${chat_id}&of=${account_id}`
    await open(page, demo.address, { path, heading: name })
    return { person_id, chat_id, path, heading: name }
  }
  const asked = await meet('Lena Vogt', 'Is the green lamp still there?')
  await demo.platform('writeMessage', { account_id, person_id: asked.person_id, text: 'STOP' })
  const unsure = await meet('Tariq Aziz', 'Could you send me the price?')
  await demo.platform('addFault', { on: 'send', fault: 'unavailable', account_id })
  const sent = await page.request.post(`${demo.address}/dashboard/api/w/${workspace_id}/messages`, {
    headers: { origin: demo.address, 'idempotency-key': crypto.randomUUID() },
    data: { account_id, chat_id: unsure.chat_id, text: 'It is 120 euros, with the bulb.' },
  })
  assert.equal(((await sent.json()) as { code?: string }).code, 'outcome_ambiguous')
  const pictured = await meet('Nadia Petrova', 'Do you have pictures of it?')
  const chat = (at: Page) => at.getByRole('region', { name: 'Chat', exact: true })
  return [
    {
      ...asked,
      name: 'inbox-asked-to-stop',
      prepare: (at) =>
        chat(at)
          .getByText(/^Asked to stop on/)
          .waitFor(),
    },
    {
      ...unsure,
      name: 'inbox-ambiguous',
      prepare: (at) => chat(at).getByRole('button', { name: 'It is not there' }).waitFor(),
    },
    { ...pictured, name: 'inbox-files', prepare: chooseFiles },
  ]
}

/** One of each kind: drawn, of another kind, not decoded by the browser, and not taken. */
async function chooseFiles(page: Page): Promise<void> {
  const file = (name: string, mimeType: string, buffer: Buffer) => ({ name, mimeType, buffer })
  await page.getByRole('textbox', { name: /^Answer/ }).fill('Here they are, from both sides.')
  await page
    .getByLabel('Files', { exact: true })
    .setInputFiles([
      file('green lamp.png', 'image/png', Buffer.from(png, 'base64')),
      file('price list.pdf', 'application/pdf', Buffer.alloc(48_300)),
      file('from my phone.heic', 'image/heic', Buffer.alloc(1_200_000)),
      file('empty.txt', 'text/plain', Buffer.alloc(0)),
    ])
  await page.locator('svg.lucide-image-off').waitFor()
  await page.getByText('Not attached. This file is empty.').waitFor()
  await page.getByText('Draft saved').waitFor()
}

/** With its own session, which has 600 requests a minute. Returns what is wrong. */
async function picturesOfPages(
  browser: Browser,
  demo: Demo,
  { sights, states, look }: Pages & { look: Look },
): Promise<string[]> {
  const { width, height, theme, forced = false, zoom = 1 } = look
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    forcedColors: forced ? 'active' : 'none',
    deviceScaleFactor: zoom,
    reducedMotion: 'reduce',
    hasTouch: width < 400,
  })
  const page = await context.newPage()
  context.setDefaultTimeout(120_000)
  known = await signInAs(context, demo, known)
  const wrong: string[] = []
  let where = ''
  page.on('console', (said) => said.type() === 'error' && wrong.push(`${where}: ${said.text()}`))
  page.on('pageerror', (error) => wrong.push(`${where}: ${error.message}`))
  const keep = async (name: string) => {
    where = `${name}-${width}-${forced ? 'forced' : theme}`
    await page.evaluate(() => document.fonts.ready)
    await page.screenshot({ path: join(folders.pages, `${where}.png`) })
    wrong.push(...(await faultsOf(page)).map((fault) => `${where}: ${fault}`))
  }
  for (const sight of sights.filter((each) => isWanted(nameOf(each)))) {
    where = `${sight.path} at ${width} px, ${theme}`
    await open(page, demo.address, sight)
    await keep(nameOf(sight))
  }
  for (const state of states.filter(({ name }) => isWanted(name))) {
    where = `${state.name} at ${width} px, ${theme}`
    await open(page, demo.address, state)
    await state.prepare(page)
    await keep(state.name)
  }
  if (isWanted('palette')) {
    await openPalette(page, demo.address)
    await keep('palette')
  }
  await context.close()
  return wrong
}

/** The page, the names of its parameters, and what is open on it. */
function nameOf({ path, open }: Sight): string {
  const { pathname, searchParams } = new URL(path, 'http://localhost')
  // An id stands for the kind of page above it.
  const page = pathname.split('/').findLast((part) => !/^[0-9a-f]{8}-/.test(part))
  // The views of the operators' page differ in their value.
  const view = page === 'operator' ? searchParams.values() : searchParams.keys()
  const parts = [page === pathname.split('/').at(-1) ? page : `one-of-${page}`, ...view, open ?? '']
  return parts.filter(Boolean).join('-').toLowerCase().replaceAll(/\s+/g, '-')
}

async function openPalette(page: Page, address: string): Promise<void> {
  await page.goto(`${address}/dashboard/`)
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
  await page.keyboard.press('ControlOrMeta+k')
  await page.getByRole('combobox', { name: 'Search or go to' }).fill('ines')
  await page.getByRole('option', { name: /Ines/ }).first().waitFor()
}

async function faultsOf(page: Page): Promise<string[]> {
  const over = await widthOver(page)
  const cut = await page.evaluate(
    () =>
      [...document.querySelectorAll('[role="dialog"], [role="alertdialog"], [role="menu"]')].filter(
        (each) => {
          const { left, top, right, bottom } = each.getBoundingClientRect()
          return left < -1 || top < -1 || right > window.innerWidth + 1 || bottom > window.innerHeight + 1
        },
      ).length,
  )
  return [...(over > 0 ? [`${over} px too wide`] : []), ...(cut > 0 ? ['a dialog is cut off'] : [])]
}
