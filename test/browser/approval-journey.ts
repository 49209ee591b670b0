/**
 * From a sign-in to a message that an agent sends once: with the mouse, on a narrow screen, and with the keyboard
 * alone.
 */
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { callTool, type Demo, exampleChat } from './demo.ts'

/** How a user acts on a page. */
export interface Hand {
  press(page: Page, name: RegExp): Promise<void>
  fill(page: Page, label: RegExp, text: string): Promise<void>
}

export const mouse: Hand = {
  press: (page, name) =>
    page.getByRole('button', { name }).or(page.getByRole('link', { name })).first().click(),
  fill: (page, label, text) => page.getByLabel(label).first().fill(text),
}

const tabsMax = 80

/** Only Tab, Enter and letters: a control that they cannot reach fails the journey. */
export const keyboard: Hand = {
  async press(page, name) {
    await tabTo(page, name)
    await page.keyboard.press('Enter')
  },
  async fill(page, label, text) {
    await tabTo(page, label)
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.type(text)
  },
}

async function tabTo(page: Page, name: RegExp): Promise<void> {
  for (let count = 0; count < tabsMax; count++) {
    const label = await page.evaluate(nameOfFocus)
    if (name.test(label)) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`${name} was not reached with ${tabsMax} presses of Tab on ${page.url()}.`)
}

/** Runs in the page. */
function nameOfFocus(): string {
  const element = document.activeElement
  if (!(element instanceof HTMLElement) || element === document.body) return ''
  const [label] = element instanceof HTMLInputElement ? (element.labels ?? []) : []
  return element.getAttribute('aria-label') ?? label?.textContent ?? element.textContent ?? ''
}

export async function setUp(page: Page, demo: Demo, password: string): Promise<void> {
  await page.goto(demo.setup_link)
  await mouse.fill(page, /^Password/, password)
  await mouse.press(page, /^Create account$/)
  await page.waitForURL('**/dashboard/w/*/inbox')
  // It works once.
  await page.goto('about:blank')
  await page.goto(demo.setup_link)
  await page.getByRole('heading', { name: 'This link no longer works' }).waitFor()
}

export async function signIn(page: Page, hand: Hand, { address }: Demo, password: string): Promise<void> {
  await page.goto(`${address}/dashboard/`)
  await page.getByLabel('E-mail').waitFor()
  await hand.fill(page, /^E-mail/, 'operator@localhost')
  await hand.fill(page, /^Password/, `${password}x`)
  await hand.press(page, /^Sign in$/)
  await page.getByRole('alert').waitFor()
  await hand.fill(page, /^Password/, password)
  await hand.press(page, /^Sign in$/)
  await page.waitForURL('**/dashboard/w/*/inbox')
}

/** A key for an agent. Its secret is shown once, and a click outside does not close it. */
export async function makeKey(page: Page, hand: Hand, name: string): Promise<string> {
  await page.getByRole('heading', { level: 1 }).waitFor()
  if (await page.getByRole('button', { name: 'Open the menu' }).isVisible()) {
    await hand.press(page, /^Open the menu$/)
    await page.getByRole('dialog').waitFor()
  }
  await hand.press(page, /^API keys$/)
  await page.getByRole('heading', { name: 'API keys' }).waitFor()
  await hand.press(page, /^Create key$/)
  await page.getByRole('dialog').waitFor()
  await hand.fill(page, /^Name/, name)
  for (const scope of [/^Send/, /^For agents only/]) {
    if (hand === mouse) await page.getByLabel(scope).check()
    else {
      await tabTo(page, scope)
      await page.keyboard.press('Space')
    }
  }
  const dialog = page.getByRole('dialog')
  if (hand === mouse) await dialog.getByRole('button', { name: 'Create key' }).click()
  else await hand.press(page, /^Create key$/)
  await dialog.getByRole('heading', { name: 'Your new key' }).waitFor()
  const secret = await dialog.getByLabel(/^The key/).inputValue()
  assert.match(secret, /^svc_live_\w{20,}$/)
  await page.mouse.click(2, 2)
  await page.keyboard.press('Escape')
  assert.equal(await dialog.getByLabel(/^The key/).inputValue(), secret)
  await hand.press(page, /^I saved it$/)
  await dialog.waitFor({ state: 'detached' })
  assert.equal((await page.content()).includes(secret), false)
  await page.getByRole('button', { name: `Revoke ${name}` }).waitFor()
  return secret
}

/** The agent requests, a person reads and approves, the agent sends; the platform has it once. */
export async function approveOnce(page: Page, hand: Hand, demo: Demo, key: string): Promise<void> {
  const text = `Hello,\nthe parcel is on its way (${Math.random()}).`
  const send = (more: object) =>
    callTool(demo.address, key, {
      name: 'service_send_message',
      arguments: { account_id: exampleChat.account_id, chat_id: exampleChat.id, text, ...more },
    })
  const { structuredContent: asked } = await send({})
  assert.equal(asked.code, 'approval_required')
  await page.goto(String(asked.approval_url))
  await page.getByText(text).waitFor()
  const approve = page.getByRole('button', { name: 'Approve' })
  await approve.waitFor()
  assert.equal(await approve.evaluate((button) => button === document.activeElement), false)
  assert.equal((await demo.journal()).includes(text), false)
  await hand.press(page, /^Approve$/)
  const token = await page.getByLabel('Approval token').inputValue()
  const sent = await send({ approval_token: token })
  assert.equal(sent.isError ?? false, false, JSON.stringify(sent.structuredContent))
  const again = await send({ approval_token: token })
  assert.equal(again.structuredContent.code, 'approval_used')
  await page.getByText('Sent once.').waitFor()
  assert.equal((await page.content()).includes(token), false)
  assert.equal((await demo.journal()).filter((each) => each === text).length, 1)
}

/** One click, which must have no effect. */
export async function denyOnce(page: Page, demo: Demo, key: string): Promise<void> {
  const text = `Never to be sent (${Math.random()})`
  const { structuredContent: asked } = await callTool(demo.address, key, {
    name: 'service_send_message',
    arguments: { account_id: exampleChat.account_id, chat_id: exampleChat.id, text },
  })
  await page.goto(`${demo.address}/dashboard/mcp-approvals`)
  await page.getByRole('link', { name: /wants to send a message/ }).click()
  await page.waitForURL(`**request=${String(asked.request_id)}`)
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.getByText('Denied. Nothing was sent').waitFor()
  assert.equal((await demo.journal()).includes(text), false)
}
