/**
 * Connects Telegram accounts in the browser, against the data centre on loopback: through a proxy by a QR code and a
 * password, by a phone number and a code, interrupted by reloads, a second tab and the end of the process.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BrowserContext, Page, Route } from 'playwright-core'
import { endProcesses, spawnParley } from '../harness/process.ts'
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
  const sandbox = spawnParley(['sandbox', '--port', '0', '--mtproto-port', '0', '--data-dir', data_dir])
  const ask = askAddress(await sandbox.ready())
  for (const user of Object.values(users)) await ask('addAccount', user)
  const proxy = await listenProxy('socks5', { credentials: proxyLogin })
  return {
    ask,
    proxy,
    env: {
      PARLEY_PROXY_ALLOW: '127.0.0.1',
      PARLEY_TELEGRAM_API_ID: '1',
      PARLEY_TELEGRAM_API_HASH: '0'.repeat(32),
      PARLEY_TELEGRAM_DC: /^PARLEY_TELEGRAM_DC=(.+)$/m.exec(sandbox.stdout())?.[1] ?? '',
    },
    close: async () => {
      sandbox.signal('SIGTERM')
      await sandbox.exit().catch(endProcesses)
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
  await byPhone(context, path)
  await killedInBetween(context, demo, path)
  return path
}

/** As long as no worker has found that an account has no session, it is CONNECTING. Its login is offered meanwhile. */
async function slowWorker(route: Route): Promise<void> {
  if (route.request().method() !== 'GET') return route.fallback()
  const response = await route.fetch()
  const read = (await response.json()) as { accounts: { status: string }[] }
  const accounts = read.accounts.map((account) => {
    return account.status === 'NEEDS_LOGIN' ? { ...account, status: 'CONNECTING' } : account
  })
  await route.fulfill({ response, json: { ...read, accounts } })
}

/** With the keyboard alone. */
async function byPhone(context: BrowserContext, path: string): Promise<void> {
  const page = await context.newPage()
  await page.goto(path)
  await page.getByRole('article', { name: 'Desk A' }).waitFor()
  await page.route(/\/accounts$/, slowWorker)
  await create(page, keyboard, { name: 'Desk B' })
  await keyboard.press(page, /^Use a phone number instead$/)
  await page.unroute(/\/accounts$/, slowWorker)
  await keyboard.fill(page, /^Phone number/, users.phone.phone)
  await keyboard.press(page, /^Send a code$/)
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
