/**
 * What a chat says about its person: suppressed by hand and released, then a request to stop, in the list, the head and the side.
 * A text that runs from right to left ends where it is cut, forced colours keep a mark, a cold page has its frame, and a page
 * without a network says so.
 */
import assert from 'node:assert/strict'
import type { BrowserContext, Page } from 'playwright-core'
import { type Demo, exampleChat } from './demo.ts'

const { account_id } = exampleChat
const name = 'שרה לוי, מנהלת הרכש של חברת הבנייה הגדולה בצפון הארץ'

export async function tellTheTruth(
  context: BrowserContext,
  demo: Demo,
  workspace_id: string,
  look: (page: Page, name: string) => Promise<unknown> = async () => {},
): Promise<void> {
  const page = await context.newPage()
  const { person_id } = (await demo.platform('addPerson', { name, behaviour: 'silent' })) as {
    person_id: number
  }
  await demo.platform('writeMessage', { account_id, person_id, text: 'Is the lamp still there?' })
  await page.goto(
    `${demo.address}/dashboard/w/${workspace_id}/inbox?chat=platform:chat:${person_id}&of=${account_id}`,
  )
  const row = page.getByRole('list', { name: 'Chats' }).locator(`[data-chat$=" platform:chat:${person_id}"]`)
  const head = page.getByRole('region', { name: 'Chat', exact: true }).locator('header')
  const side = page.getByRole('region', { name: 'Suppression' })
  await side.getByRole('button', { name: 'Suppress…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Suppress' }).click()
  await row.getByText('Suppressed').waitFor()
  await head.getByText(/^Suppressed on \d/).waitFor()
  await look(page, 'suppressed')
  await side.getByRole('button', { name: 'Release…' }).click()
  await page.getByLabel('Reason').fill('A mistake.')
  await look(page, 'release')
  await page.getByRole('dialog').getByRole('button', { name: 'Release' }).click()
  await row.getByText('Suppressed').waitFor({ state: 'hidden' })
  // The page is told: nobody reloads it.
  await demo.platform('writeMessage', { account_id, person_id, text: 'STOP' })
  await row.getByText('Asked to stop').waitFor()
  await head.getByText(/^Asked to stop on \d/).waitFor()
  await side.getByRole('link', { name: '“STOP”' }).waitFor()
  await look(page, 'asked-to-stop')
  await page.goto(`${demo.address}/dashboard/w/${workspace_id}/suppressions?q=${person_id}`)
  await page.getByText(name).waitFor()
  await look(page, 'suppression-page')
  await page.goBack()
  await row.waitFor()
  await cutsAtItsEnd(page, person_id)
  await keepsMarks(page)
  await look(page, 'forced-colours')
  await page.emulateMedia({ forcedColors: 'none' })
  await showsNameAtOnce(page, `${demo.address}/dashboard/w/${workspace_id}/inbox`, person_id)
  await saysOffline(page, context)
  await showsColdFrame(page)
  await namesZones(page, `${demo.address}/dashboard/w/${workspace_id}`)
  await page.close()
}

/** The element that cuts a name knows its direction. */
async function cutsAtItsEnd(page: Page, person_id: number): Promise<void> {
  const cut = await page
    .locator(`[data-chat$=" platform:chat:${person_id}"] bdi`)
    .first()
    .evaluate((bdi) => {
      const { direction, overflow, textOverflow } = getComputedStyle(bdi)
      return { direction, overflow, textOverflow, isCut: bdi.scrollWidth > bdi.clientWidth }
    })
  assert.deepEqual(cut, { direction: 'rtl', overflow: 'hidden', textOverflow: 'ellipsis', isCut: true })
}

/** The chosen chat, the view and the page. */
async function keepsMarks(page: Page): Promise<void> {
  await page.emulateMedia({ forcedColors: 'active' })
  const marked = await page
    .locator('[aria-current]:visible')
    .evaluateAll((all) => all.map((each) => getComputedStyle(each).outlineStyle))
  assert.ok(marked.length >= 3, `${marked.length} marks`)
  assert.ok(
    marked.every((style) => style === 'solid'),
    marked.join(' '),
  )
}

/** The head has the name from the list while the chat itself is still being read. */
async function showsNameAtOnce(page: Page, inbox: string, person_id: number): Promise<void> {
  let answer = () => {}
  const held = new Promise<void>((resolve) => {
    answer = resolve
  })
  const isChat = (url: URL) => decodeURIComponent(url.pathname).endsWith(`/chats/platform:chat:${person_id}`)
  await page.route(isChat, async (route) => {
    await held
    await route.continue()
  })
  await page.goto(inbox)
  await page.locator(`[data-chat$=" platform:chat:${person_id}"]`).click()
  await page.getByRole('heading', { name, level: 2 }).waitFor()
  const side = page.getByRole('complementary', { name: 'About this chat' })
  assert.equal(await side.getByText(name).count(), 0)
  answer()
  await side.getByText(name).waitFor()
  await page.unroute(isChat)
}

/** A page that counts by days says whose days. */
async function namesZones(page: Page, workspace: string): Promise<void> {
  const zone = String.raw`(UTC|[A-Z][\w+-]*(/[A-Z][\w+-]*)+)`
  for (const [path, words] of [
    ['accounts', 'A day ends at midnight in'],
    ['analytics', 'Days end at midnight in'],
  ] as const) {
    await page.goto(`${workspace}/${path}`)
    await page.getByText(new RegExp(`^${words} ${zone}$`)).waitFor()
  }
}

async function saysOffline(page: Page, context: BrowserContext): Promise<void> {
  await context.setOffline(true)
  await page.getByText('You are offline').waitFor()
  await context.setOffline(false)
  await page.getByText('You are offline').waitFor({ state: 'hidden' })
}

/** While it is not known who is signed in. */
async function showsColdFrame(page: Page): Promise<void> {
  let answer = () => {}
  const held = new Promise<void>((resolve) => {
    answer = resolve
  })
  await page.route('**/dashboard/api/session', async (route) => {
    await held
    await route.continue()
  })
  await page.reload({ waitUntil: 'commit' })
  await page.locator('[data-cold]').waitFor()
  answer()
  await page.locator('[data-cold]').waitFor({ state: 'detached' })
  await page.unroute('**/dashboard/api/session')
}
