/** What no page shows until it is asked for: each is opened once, read by axe in both themes, and closed. */
import assert from 'node:assert/strict'
import type { BrowserContext, Locator, Page } from 'playwright-core'
import { type Demo, exampleChat } from './demo.ts'
import { barriersOf, faultsOfButtons, open, type Sight } from './every-page.ts'

const { account_id, name } = exampleChat
const reply = 'Where we are'

interface Opened {
  readonly what: string
  readonly of: Sight
  readonly width?: number
  /** A selector; the dialog, if it does not say. */
  readonly within?: string
  /** Opens it, and returns what is there then. */
  readonly ask: (page: Page, demo: Demo) => Promise<Locator>
}

const dialog = (page: Page) => page.getByRole('dialog')
const click = async (page: Page, button: string | RegExp) => {
  await page.getByRole('button', { name: button }).first().click()
  return dialog(page)
}
const choose = async (page: Page, menu: string | RegExp, item: string) => {
  await page.getByRole('button', { name: menu }).first().click()
  await page.getByRole('menuitem', { name: item }).click()
  return dialog(page)
}

function openedOf(workspace: string): Opened[] {
  const inbox = { path: `${workspace}/inbox`, heading: 'Inbox' }
  const chat = { path: `${workspace}/inbox?chat=${exampleChat.id}&of=${account_id}`, heading: name }
  const webhooks = { path: `${workspace}/webhooks`, heading: 'Webhooks' }
  const settings = { path: `${workspace}/settings`, heading: 'Settings' }
  const accounts = { path: `${workspace}/accounts`, heading: 'Accounts' }
  const login = { path: `${workspace}/accounts?login=${account_id}`, heading: /^Log in/ }
  const members = { path: `${workspace}/members`, heading: 'Members' }
  const people = { path: '/dashboard/operator?view=people', heading: 'Users' }
  return [
    { what: 'palette', of: inbox, ask: openPalette },
    { what: 'keys', of: inbox, ask: openKeys },
    { what: 'suppress', of: chat, ask: (page) => click(page, 'Suppress…') },
    { what: 'saved replies', of: chat, within: 'section[aria-label="Chat"]', ask: openReplies },
    { what: 'rows wait', of: chat, within: 'section[aria-label="Chats"]', ask: letWait },
    { what: 'about this chat', of: chat, width: 1_000, ask: (page) => click(page, 'About this chat') },
    { what: 'limits', of: accounts, ask: (page) => click(page, 'Edit') },
    { what: 'login', of: login, within: 'aside[aria-label^="Log in"]', ask: async (page) => loginOf(page) },
    ...['Change…', 'Delete…', 'Resend failed…', 'Rotate secret…'].map((what) => ({
      what,
      of: webhooks,
      ask: (page: Page) => click(page, what),
    })),
    { what: 'edit a reply', of: settings, ask: (page) => click(page, `Edit ${reply}`) },
    { what: 'delete a reply', of: settings, ask: (page) => click(page, `Delete ${reply}`) },
    { what: 'role', of: members, ask: (page) => choose(page, /^Actions for/, 'Change role…') },
    { what: 'create a workspace', of: people, ask: (page) => click(page, 'Create workspace') },
    { what: 'disable a workspace', of: people, ask: (page) => choose(page, 'Actions for Demo', 'Disable…') },
  ]
}

async function openKeys(page: Page): Promise<Locator> {
  await page.keyboard.press('?')
  return page.getByRole('dialog', { name: 'Keys' })
}

async function openReplies(page: Page): Promise<Locator> {
  await page.getByRole('button', { name: 'Saved replies' }).click()
  return page.getByRole('option', { name: reply })
}

const loginOf = (page: Page) => page.getByRole('complementary', { name: /^Log in/ })

async function openPalette(page: Page): Promise<Locator> {
  await page.keyboard.press('ControlOrMeta+k')
  await page.getByRole('combobox', { name: 'Search or go to' }).fill(name.slice(0, 3))
  return page.getByRole('option', { name: new RegExp(name) }).first()
}

/** A chat comes in while the list is scrolled: it waits above, and Send stays the one primary button. */
async function letWait(page: Page, demo: Demo): Promise<Locator> {
  const rows = page.getByRole('list', { name: 'Chats' })
  await rows.getByRole('link').nth(5).waitFor()
  await rows.getByRole('link').nth(2).hover()
  await page.mouse.wheel(0, 400)
  const { person_id } = (await demo.platform('addPerson', { name: 'Wim Late', behaviour: 'silent' })) as {
    person_id: number
  }
  await demo.platform('writeMessage', { account_id, person_id, text: 'Am I late?' })
  return page.getByRole('button', { name: /^\d+ new$/ })
}

/** All their faults together. */
export async function lookAtDialogs(
  context: BrowserContext,
  demo: Demo,
  workspace_id: string,
): Promise<string[]> {
  await addReply(context, demo, workspace_id)
  const workspace = `/dashboard/w/${workspace_id}`
  const page = await context.newPage()
  const wrong: string[] = []
  for (const { what, of, width = 1_280, within = '[role="dialog"]', ask } of openedOf(workspace)) {
    await page.setViewportSize({ width, height: 720 })
    await show(page, demo.address, of)
    await (await ask(page, demo)).waitFor()
    const faults = [...(await faultsOfButtons(page)), ...(await barriersInBothThemes(page, within))]
    wrong.push(...faults.map((fault) => `${what}: ${fault}`))
  }
  await page.close()
  return wrong
}

/** The page as it was before: what was open on it is closed, unless it is another page. */
async function show(page: Page, address: string, sight: Sight): Promise<void> {
  if (page.url() !== address + sight.path) return open(page, address, sight)
  await page.keyboard.press('Escape')
  await dialog(page).waitFor({ state: 'detached' })
}

/** Where `tellTheTruth` stops, and the part of the page that only it shows. */
const partsOfTruth: Readonly<Record<string, string>> = {
  release: '[role="dialog"]',
  'asked-to-stop': 'main',
  'suppression-page': 'main',
}

export async function seeNoBarrier(page: Page, place: string): Promise<void> {
  const within = partsOfTruth[place]
  if (within !== undefined) assert.deepEqual(await barriersInBothThemes(page, within), [], place)
}

/** Of a part of the page. Only colours differ between the themes. */
async function barriersInBothThemes(page: Page, within: string): Promise<string[]> {
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  const light = await barriersOf(page, { within })
  await page.emulateMedia({ colorScheme: 'dark' })
  return [...light, ...(await barriersOf(page, { within, colours: true }))]
}

async function addReply(context: BrowserContext, { address }: Demo, workspace_id: string): Promise<void> {
  const answer = await context.request.post(`${address}/dashboard/api/w/${workspace_id}/saved_replies`, {
    headers: { origin: address },
    data: { title: reply, text: 'In the yard behind the station.' },
  })
  assert.ok(answer.ok(), await answer.text())
}
