/**
 * Connects Telegram accounts in the browser, against the data centre on loopback: through a proxy by a QR code and a
 * password, by a phone number and a code, interrupted by reloads, a second tab and the end of the process.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BrowserContext, Page, Route } from 'playwright-core'
import { endProcesses } from '../harness/process.ts'
import { spawnDataCentre, telegramEnv } from '../platform/data-centre-process.ts'
import { type LoopbackProxy, listenProxy } from '../platform/loopback-proxy.ts'
import { type Ask, askAddress } from '../platform/sandbox-fixture.ts'
import { type Hand, keyboard, mouse } from './approval-journey.ts'
import type { Demo } from './demo.ts'

export interface Centre {
  readonly env: Readonly<Record<string, string>>
  readonly ask: Ask
  /** One that the dashboard's users may name. */
  readonly proxy: LoopbackProxy
  close(): Promise<void>
}

const password = 'canary correct horse'
const proxyLogin = { username: 'desk', password: 'canary-of-the-proxy' }
const users = {
  qr: { account_id: 'desk_a', name: 'Sales desk', phone: '+9996621001', password },
  phone: { account_id: 'desk_b', name: 'Support desk', phone: '+9996621002' },
}

export async function startCentre(): Promise<Centre> {
  const data_dir = await mkdtemp(join(tmpdir(), 'parley-centre-'))
  const centre = spawnDataCentre({ data_dir })
  const ask = askAddress(await centre.ready())
  for (const user of Object.values(users)) await ask('addAccount', user)
  const proxy = await listenProxy('socks5', { credentials: proxyLogin })
  return {
    ask,
    proxy,
    env: { PARLEY_PROXY_ALLOW: '127.0.0.1', ...telegramEnv(centre.stdout()) },
    close: async () => {
      centre.signal('SIGTERM')
      await centre.exit().catch(endProcesses)
      await proxy.close()
      await rm(data_dir, { recursive: true, force: true })
    },
  }
}

export async function connectAccounts(
  context: BrowserContext,
  demo: Demo,
  { centre, workspace_id }: { centre: Centre; workspace_id: string },
): Promise<string> {
  const page = await context.newPage()
  const path = `${demo.address}/dashboard/w/${workspace_id}/accounts`
  await page.goto(path)
  const { port } = centre.proxy
  const proxy = `socks5://${proxyLogin.username}:${proxyLogin.password}@127.0.0.1:${port}`
  await create(page, mouse, { name: 'Desk A', proxy })
  await mouse.press(page, /^Show a QR code$/)
  await seesCode(page)
  assert.notEqual(centre.proxy.asked.length, 0, 'The login went around the proxy.')
  await page.reload()
  await seesCode(page)
  const second = await context.newPage()
  await second.goto(page.url())
  await seesCode(second)
  await second.close()
  await centre.ask('acceptLogin', { phone: users.qr.phone })
  await mouse.fill(page, /^Two-step password/, 'wrong')
  await mouse.press(page, /^Continue$/)
  await page.getByText('This password is wrong. 2 attempts left.').waitFor()
  await mouse.fill(page, /^Two-step password/, password)
  await mouse.press(page, /^Continue$/)
  await page.getByText(/^Logged in/).waitFor()
  const card = page.getByRole('article', { name: 'Desk A' })
  await card.getByText('Ready').waitFor()
  await card.getByText(`through socks5://127.0.0.1:${port}`).waitFor()
  assert.equal((await page.content()).includes(proxyLogin.password), false, 'The page shows the password.')
  await page.close()
  await enabledOnceMore(context, path, centre)
  await byPhone(context, path, centre)
  await killedInBetween(context, demo, path)
  await atFragment(context, path, centre)
  return path
}

/** The login is reported as ended: the sentence names enabling, the card has its button, and that connects it again. */
async function enabledOnceMore(context: BrowserContext, path: string, centre: Centre): Promise<void> {
  const page = await context.newPage()
  await page.goto(path)
  const card = page.getByRole('article', { name: 'Desk A' })
  await card.getByText('Ready').waitFor()
  const { account_id } = users.qr
  // One answer that does not pass, so that the test need not wait for the minutes of one that does.
  await centre.ask('addRefusal', { on: 'users.getUsers', error: '401 SESSION_REVOKED', account_id })
  await centre.ask('addHostility', { case: 'cut', on: 'now', account_id })
  await card.getByText('Needs a login').waitFor()
  await card.getByRole('button', { name: 'Log in' }).waitFor()
  await card.getByRole('button', { name: 'Enable' }).click()
  await card.getByText('Ready').waitFor()
  await page.close()
}

/** As long as no worker has found that an account has no session, it is CONNECTING. Its login is offered meanwhile. */
async function slowWorker(route: Route): Promise<void> {
  if (route.request().method() !== 'GET') return route.fallback()
  const response = await route.fetch()
  const read = (await response.json()) as { accounts: { status: string }[] }
  const accounts = read.accounts.map((account) => {
    return account.status === 'NEEDS_LOGIN' ? { ...account, status: 'CONNECTING' } : account
  })
  await answer(route, { response, json: { ...read, accounts } })
}

/** A route that is taken away while its request is under way answers by itself. */
async function answer(route: Route, given: Parameters<Route['fulfill']>[0]): Promise<void> {
  await route.fulfill(given).catch((error: Error) => {
    if (!error.message.includes('already handled')) throw error
  })
}

/** As if Telegram let the code be sent again only in an hour. */
async function sentAgainLater(route: Route): Promise<void> {
  if (route.request().method() !== 'GET') return route.fallback()
  const response = await route.fetch()
  const read = (await response.json()) as { login: { again: object | null } | null }
  const at = new Date(Date.now() + 3_600_000).toISOString()
  const again = read.login?.again && { ...read.login.again, at }
  await answer(route, { response, json: { login: read.login && { ...read.login, again } } })
}

/** With the keyboard alone. */
async function byPhone(context: BrowserContext, path: string, centre: Centre): Promise<void> {
  const codes = { phone: users.phone.phone, ways: ['app', 'sms', 'call'], timeout_seconds: 0 }
  await centre.ask('setCodes', codes)
  const page = await context.newPage()
  await page.goto(path)
  await page.getByRole('article', { name: 'Desk A' }).waitFor()
  await page.route(/\/accounts$/, slowWorker)
  await create(page, keyboard, { name: 'Desk B' })
  await keyboard.press(page, /^Use a phone number instead$/)
  await page.unroute(/\/accounts$/, slowWorker)
  await keyboard.fill(page, /^Phone number/, users.phone.phone)
  await page.route(/\/login$/, sentAgainLater)
  await keyboard.press(page, /^Send a code$/)
  await page.getByText('Telegram sent a code to the other devices of this account.').waitFor()
  const again = page.getByRole('button', { name: /^Send it by SMS$/ })
  assert.equal(await again.isDisabled(), true, 'The code can be sent again too early.')
  await page.getByRole('timer', { name: /^Time until it can be sent again/ }).waitFor()
  await page.unroute(/\/login$/, sentAgainLater)
  await page.reload()
  await again.and(page.locator(':enabled')).waitFor()
  await keyboard.press(page, /^Send it by SMS$/)
  await page.getByText('Telegram sent a code by SMS.').waitFor()
  for (const left of [2, 1]) {
    await page.getByLabel(/^Code/).waitFor()
    await keyboard.fill(page, /^Code/, '00000')
    await keyboard.press(page, /^Continue$/)
    await page.getByText(`This code is wrong. ${left} attempt`).waitFor()
  }
  await keyboard.fill(page, /^Code/, '12345')
  await keyboard.press(page, /^Continue$/)
  await page.getByText(/^Logged in/).waitFor()
  const card = page.getByRole('article', { name: 'Desk B' })
  await card.getByText('Ready').waitFor()
  await card.getByRole('button', { name: 'Log out' }).click()
  assert.equal(await page.getByRole('dialog').getByRole('button', { name: 'Log out' }).isDisabled(), true)
  await keyboard.fill(page, /^Type its name/, 'Desk B')
  await page.getByRole('dialog').getByRole('button', { name: 'Log out' }).click()
  await card.getByText('Needs a login').waitFor()
  await page.close()
}

/** The process that runs the login ends: the page says so, and a new login can start. */
async function killedInBetween(context: BrowserContext, demo: Demo, path: string): Promise<void> {
  const page = await context.newPage()
  await page.goto(path)
  await page.getByRole('article', { name: 'Desk B' }).getByRole('button', { name: 'Log in' }).click()
  await mouse.press(page, /^Show a QR code$/)
  await seesCode(page)
  await demo.restart()
  await page.getByText('The worker that ran the login has stopped.').waitFor({ timeout: 120_000 })
  await page.getByRole('button', { name: 'Show a QR code' }).waitFor()
  await page.close()
}

/** A code at Fragment's page, which is shown, and then as a phrase: a phone shows its keyboard for text, not for digits. */
async function atFragment(context: BrowserContext, path: string, centre: Centre): Promise<void> {
  const { phone } = users.phone
  await centre.ask('setCodes', { phone, ways: ['fragment', 'phrase'], timeout_seconds: 0 })
  const page = await context.newPage()
  await page.goto(path)
  const card = page.getByRole('article', { name: 'Desk B' })
  await card.getByRole('button', { name: 'Log in' }).click()
  await mouse.press(page, /^Use a phone number instead$/)
  await mouse.fill(page, /^Phone number/, phone)
  await mouse.press(page, /^Send a code$/)
  await page
    .getByText('The code is at Fragment, where the number was bought. https://fragment.example/number/1')
    .waitFor()
  const code = page.getByLabel(/^Code/)
  assert.equal(await code.getAttribute('inputmode'), 'numeric')
  await mouse.press(page, /^Send it by SMS$/)
  await page.getByText('Telegram sent a phrase by SMS. Type all of it.').waitFor()
  assert.equal(await code.getAttribute('inputmode'), 'text')
  await mouse.fill(page, /^Code/, 'seven pelicans sleep')
  await mouse.press(page, /^Continue$/)
  await page.getByText(/^Logged in/).waitFor()
  await card.getByText('Ready').waitFor()
  await page.close()
}

async function create(
  page: Page,
  hand: Hand,
  { name, proxy }: { readonly name: string; readonly proxy?: string },
): Promise<void> {
  await hand.press(page, /^Connect an account$/)
  await page.getByRole('dialog').waitFor()
  await hand.fill(page, /^Name/, name)
  if (proxy) await hand.fill(page, /^Proxy/, proxy)
  await hand.press(page, /^Create and log in$/)
  await page.getByRole('heading', { name: `Log in ${name}` }).waitFor()
}

async function seesCode(page: Page): Promise<void> {
  await page.getByRole('img', { name: /^QR code/ }).waitFor()
}
