/** Finds a contact by name, sees the account's limits, starts the chat once and opens it; by mouse, by keyboard, at 320 px. */
import assert from 'node:assert/strict'
import type { BrowserContext, Locator, Page } from 'playwright-core'
import { until } from '../harness/process.ts'
import { type Demo, exampleChat } from './demo.ts'

const { account_id } = exampleChat
const stateMsMax = 40_000

interface Visit {
  readonly page: Page
  readonly demo: Demo
  readonly address: string
}

export async function useContacts(context: BrowserContext, demo: Demo, workspace_id: string): Promise<void> {
  const page = await context.newPage()
  const address = `${demo.address}/dashboard/w/${workspace_id}/contacts`
  const visit = { page, demo, address }
  await page.goto(`${demo.address}/dashboard/w/${workspace_id}/inbox`)
  await openKnown(visit)
  await startNew(visit)
  await refuse(visit)
  await closeGates(visit, context)
  await page.close()
}

/** The keyboard alone: to the page, to the person, to the chat. */
async function openKnown({ page }: Visit): Promise<void> {
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
  await page.keyboard.press('g')
  await page.keyboard.press('c')
  await page.getByRole('heading', { name: 'Contacts' }).waitFor()
  await page.getByRole('list', { name: 'Contacts' }).waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type(exampleChat.name.toLowerCase())
  await page.waitForURL((url) => url.searchParams.get('q') === exampleChat.name.toLowerCase())
  const found = page.locator('[data-contact]').first()
  await until('the list begins with the person', stateMsMax, async () =>
    (await found.textContent())?.includes(exampleChat.name),
  )
  await page.keyboard.press('Enter')
  await hasFocus(found)
  await page.keyboard.press('Enter')
  const open = page.getByRole('link', { name: 'Open chat' })
  await open.waitFor()
  await hasFocus(open)
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/inbox\?/)
  await page.getByRole('heading', { name: exampleChat.name }).waitFor()
  await page.goBack()
}

function hasFocus(link: Locator): Promise<boolean> {
  return until('the link has the focus', stateMsMax, () =>
    link.evaluate((each) => each === document.activeElement),
  )
}

/** Someone whom no account knows yet: one look-up, whatever is pressed, and nothing is sent. */
async function startNew({ page, demo, address }: Visit): Promise<void> {
  await demo.platform('addPerson', { name: 'Nils Aster', username: 'nils_aster', behaviour: 'silent' })
  // The demo's campaign goes on meanwhile.
  const sent = async () =>
    (await demo.journal()).filter((text) => text && !/^Hello \S+ \S+, we have /.test(text))
  const before = await sent()
  await page.goto(address)
  await page.getByRole('button', { name: 'Start a chat' }).click()
  const limits = page.getByRole('region', { name: 'Limits of today' })
  await limits.getByText('Names looked up').waitFor()
  assert.match((await limits.textContent()) ?? '', /Names looked up\s*\d+ of 200/)
  const starts: string[] = []
  page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().endsWith('/chats/start')) starts.push(request.url())
  })
  await page.getByLabel('Username').fill('@nils_aster')
  if ((await page.getByLabel('From').count()) > 0) await page.getByLabel('From').selectOption(account_id)
  await page.getByRole('button', { name: 'Start chat' }).dblclick()
  await page.getByRole('heading', { name: 'Nils Aster' }).waitFor()
  assert.deepEqual(await sent(), before, 'nothing is sent')
  await page.goto(`${address}?q=aster`)
  await page.getByRole('link', { name: /Nils Aster/ }).click()
  await page.getByRole('link', { name: 'Open chat' }).waitFor()
  assert.equal(starts.length, 1)
}

async function refuse({ page, address }: Visit): Promise<void> {
  await page.goto(`${address}?start=new`)
  // Before the limits are there, the form cannot be sent.
  await page.getByRole('region', { name: 'Limits of today' }).getByText('Names looked up').waitFor()
  await page.getByLabel('Username').fill('@nobody_has_this_name')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').waitFor()
  assert.match(page.url(), /start=new/)
  await page.keyboard.press('Escape')
  await page.waitForURL((url) => !url.searchParams.has('start'))
}

/** A closed gate is named, with who opens it; the page comes back by itself. */
async function closeGates({ page, demo, address }: Visit, context: BrowserContext): Promise<void> {
  const set = async (gate: string, enabled: boolean) => {
    const url = `${demo.address}/dashboard/api/gates/${gate}`
    const answer = await context.request.post(url, { headers: { origin: demo.address }, data: { enabled } })
    assert.ok(answer.ok(), `${gate}: ${answer.status()}`)
  }
  await set('start_chat', false)
  await page.goto(`${address}?start=new`)
  await page.getByText('You can turn this on as the operator (“start_chat”).').waitFor()
  assert.ok(await page.getByRole('button', { name: 'Start chat' }).isDisabled())
  await set('start_chat', true)
  await set('crm', false)
  await page.getByRole('heading', { name: 'Contacts are turned off here' }).waitFor()
  await set('crm', true)
  await page.getByLabel('Username').waitFor()
  await page.setViewportSize({ width: 320, height: 720 })
  await page.getByRole('button', { name: 'Back to the contacts' }).click()
  await page.getByRole('list', { name: 'Contacts' }).waitFor()
  const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
  assert.equal(over, 0, 'too wide')
}
