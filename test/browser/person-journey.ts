/**
 * A person: found from the palette and by phone number, reached from a chat, a contact and the suppression list, read and exported
 * by keyboard; at 320 px.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { AxeBuilder } from '@axe-core/playwright'
import type { BrowserContext, Page } from 'playwright-core'
import { until } from '../harness/process.ts'
import { press } from './by-keyboard.ts'
import { type Demo, exampleChat } from './demo.ts'
import { tags, widthOver } from './every-page.ts'

const stateMsMax = 40_000

interface Visit {
  readonly page: Page
  readonly workspace: string
}

export async function usePerson(context: BrowserContext, demo: Demo, workspace_id: string): Promise<void> {
  const page = await context.newPage()
  const visit = { page, workspace: `${demo.address}/dashboard/w/${workspace_id}` }
  await findInPalette(visit)
  await readAndExport(visit)
  await findByName(visit)
  await comeFromElsewhere(visit)
  await look(visit)
  await page.close()
}

const isOfPerson = (url: URL) => /\/people\/[0-9a-f-]{36}$/.test(url.pathname)

async function untilPerson({ page }: Visit): Promise<void> {
  await page.waitForURL(isOfPerson)
  await page.getByRole('heading', { name: exampleChat.name, level: 2 }).waitFor()
}

/** The keyboard alone. */
async function findInPalette(visit: Visit): Promise<void> {
  const { page, workspace } = visit
  await page.goto(`${workspace}/inbox`)
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
  await page.keyboard.press('Control+k')
  const field = page.getByRole('combobox', { name: 'Search or go to' })
  await field.waitFor()
  await page.keyboard.insertText(exampleChat.name)
  const list = page.getByRole('listbox', { name: 'Found' })
  await list.getByText('People', { exact: true }).waitFor()
  const chosen = list.locator('[aria-selected="true"]')
  const icon = chosen.locator('.lucide-user-round')
  await until('a person is chosen', stateMsMax, async () => {
    if ((await icon.count()) > 0) return true
    await page.keyboard.press('ArrowDown')
    return false
  })
  await page.keyboard.press('Enter')
  await untilPerson(visit)
}

async function readAndExport({ page }: Visit): Promise<void> {
  for (const name of [
    'Known as',
    'Chats',
    'What was sent, and why',
    'Campaigns',
    'Suppression',
    'Columns',
    'Notes',
  ]) {
    await page.getByRole('heading', { name, exact: false, level: 2 }).first().waitFor()
  }
  const names = page.getByRole('region', { name: 'Names' })
  assert.match((await names.textContent()) ?? '', /Username.*now/)
  const { violations } = await new AxeBuilder({ page }).withTags(tags).setLegacyMode().analyze()
  assert.deepEqual(
    violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join()}`),
    [],
  )
  const saving = page.waitForEvent('download')
  await press(page, page.getByRole('link', { name: 'Export' }), 'Enter')
  const saved = await saving
  assert.match(saved.suggestedFilename(), /^person-[0-9a-f-]{36}\.zip$/)
  const archive = await readFile(await saved.path())
  assert.equal(archive.readUInt32LE(0), 0x04034b50)
  assert.ok(archive.includes('messages.html') && archive.includes('person.json'))
}

/** By keyboard, also to a text that means nobody. */
async function findByName(visit: Visit): Promise<void> {
  const { page } = visit
  await press(page, page.getByRole('link', { name: 'Find another person' }), 'Enter')
  await page.getByRole('heading', { name: 'People', level: 1 }).waitFor()
  const field = page.getByRole('searchbox', { name: 'Find a person' })
  await page.keyboard.press('/')
  await page.keyboard.insertText('nobody has this name')
  await page.getByRole('heading', { name: 'Nobody found' }).waitFor()
  await field.fill(exampleChat.name.toLowerCase())
  const first = page.locator('[data-person]').first()
  await until('the person is found', stateMsMax, async () =>
    (await first.textContent())?.includes(exampleChat.name),
  )
  await field.press('Enter')
  await until('the first one has the focus', stateMsMax, () =>
    first.evaluate((each) => each === document.activeElement),
  )
  await page.keyboard.press('Enter')
  await untilPerson(visit)
}

/** What means one person opens their page at once, and going back skips the search. */
async function comeFromElsewhere(visit: Visit): Promise<void> {
  const { page, workspace } = visit
  const chat = `chat=${exampleChat.id}&of=${exampleChat.account_id}`
  const places = [`inbox?${chat}`, `contacts?contact=42&of=${exampleChat.account_id}`]
  for (const place of places) {
    await page.goto(`${workspace}/${place}`)
    const link = page.getByRole('link', { name: 'About this person' }).first()
    await link.waitFor()
    // Tab passes every chat of the list first.
    await link.focus()
    await page.keyboard.press('Enter')
    await untilPerson(visit)
    await page.goBack()
    await link.waitFor()
  }
  const origin = new URL(workspace).origin
  const api = workspace.replace('/dashboard/w/', '/dashboard/api/w/')
  const added = await page.request.post(`${api}/suppressions`, {
    headers: { origin },
    data: { kind: 'platform_id', value: '42' },
  })
  assert.ok(added.ok())
  await page.goto(`${workspace}/suppressions?q=42`)
  await press(page, page.getByRole('link', { name: 'About 42' }), 'Enter')
  await untilPerson(visit)
  await page.getByText('No campaign or first message, from any account').waitFor()
  const removed = await page.request.post(`${api}/suppressions/remove`, {
    headers: { origin },
    data: { kind: 'platform_id', value: '42', reason: 'The journey is over.' },
  })
  assert.ok(removed.ok())
  // The page is live.
  await page.getByText('Not on the list: campaigns and first messages may go out.').waitFor()
}

async function look({ page, workspace }: Visit): Promise<void> {
  await page.setViewportSize({ width: 320, height: 720 })
  assert.equal(await widthOver(page), 0, 'the person is too wide')
  await page.goto(`${workspace}/people?q=a`)
  await page.getByRole('list', { name: 'Found' }).waitFor()
  assert.equal(await widthOver(page), 0, 'the list is too wide')
  const { violations } = await new AxeBuilder({ page }).withTags(tags).setLegacyMode().analyze()
  assert.deepEqual(
    violations.map(({ id }) => id),
    [],
  )
}
