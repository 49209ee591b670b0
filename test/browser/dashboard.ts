/** The dashboard in a real browser against a real `parley start`: journeys, barriers, hostile texts, frames. */
import assert from 'node:assert/strict'
import type { Browser, BrowserContext } from 'playwright-core'
import { type Centre, connectAccounts, startCentre } from './account-journey.ts'
import {
  approveOnce,
  denyOnce,
  type Hand,
  keyboard,
  makeKey,
  mouse,
  setUp,
  signIn,
} from './approval-journey.ts'
import { openBrowser } from './browser.ts'
import { callTool, type Demo, exampleChat, startDemo } from './demo.ts'
import { frame, lookAt, sightsBefore, sightsOf } from './every-page.ts'
import { openHostileFiles } from './hostile-files.ts'
import { showHostile } from './hostile-text.ts'
import { useInbox } from './inbox-journey.ts'
import { usePipeline } from './pipeline-journey.ts'
import { visitAsMember } from './plain-member.ts'

const password = 'a long sentence nobody guesses'
const actionMsMax = 20_000
/** Requests to any other server, and errors in a page. */
const elsewhere: string[] = []
const broken: string[] = []

const browser = await openBrowser()
if (!browser) {
  process.stdout.write('== skipped: there is no Chromium on this machine, and none that npm carries for it\n')
} else {
  const centre = await startCentre()
  const demo = await startDemo(centre.env)
  try {
    await walk(browser, demo, centre)
  } finally {
    await browser.close()
    await demo.close()
    await centre.close()
  }
}

async function walk(browser: Browser, demo: Demo, centre: Centre): Promise<void> {
  const wide = await open(browser, demo, 1280)
  const key = await step('set-up, a key, an approval, a denial', async () => {
    const page = await wide.newPage()
    await setUp(page, demo, password)
    await page.goto(`${demo.address}/dashboard/`)
    const key = await makeKey(page, mouse, 'my agent')
    await approveOnce(page, mouse, demo, key)
    await denyOnce(page, demo, key)
    await page.close()
    return key
  })
  await step('the same at 320 px', () => again(browser, demo, { hand: mouse, width: 320, name: 'phone' }))
  await step('the same by keyboard', () =>
    again(browser, demo, { hand: keyboard, width: 1280, name: 'keys' }),
  )
  const places = await placesOf(wide, demo, key)
  await step('accounts: by QR code and by phone, reloaded, in two tabs, killed in between', () =>
    connectAccounts(wide, demo, { centre, workspace_id: places.workspace_id }),
  )
  await step('the inbox: answered once whatever happens, notes, stages, by keyboard, at 320 px', () =>
    useInbox(wide, demo, places.workspace_id),
  )
  await step('the pipeline: dragged, moved by key, undone, by two users, edited, at 320 px', async () => {
    const other = await open(browser, demo, 320)
    await usePipeline(wide, demo, { workspace_id: places.workspace_id, other })
    await other.close()
  })
  await step('axe and width on every page', async () => {
    const out = await open(browser, demo, 1280)
    const looks = [
      { width: 1280, theme: 'light' },
      { width: 1280, theme: 'dark' },
      { width: 320, theme: 'light', fits: true },
    ] as const
    const wrong: string[] = []
    // One after the other: a session has 600 requests a minute.
    for (const each of looks) {
      const look = { address: demo.address, ...each }
      wrong.push(...(await lookAt(out, sightsBefore, look)))
      wrong.push(...(await lookAt(wide, sightsOf(places.workspace_id, places.request_id), look)))
    }
    await out.close()
    assert.deepEqual(wrong, [])
  })
  await step('a plain member', async () => {
    const context = await open(browser, demo, 1280)
    const { workspace_id } = places
    assert.deepEqual(await visitAsMember(context, demo, { workspace_id, owner: wide }), [])
    await context.close()
  })
  await step('2,000 hostile texts', async () => {
    const shown = await showHostile(wide, { ...places, address: demo.address })
    process.stdout.write(`   shown ${shown} times, 0 scripts\n`)
  })
  await step('hostile files', async () => {
    const opened = await openHostileFiles(wide, demo, places.workspace_id)
    process.stdout.write(`   ${opened} opened and embedded, 0 scripts\n`)
  })
  await step('frames of another site', () => {
    const paths = sightsOf(places.workspace_id, places.request_id).map(({ path }) => demo.address + path)
    return frame(browser, wide, paths)
  })
  assert.deepEqual(elsewhere, [], 'requests to other servers')
  assert.deepEqual(broken, [], 'errors in pages')
}

/** The viewer: a context is a separate browser, with its own cookies. */
async function open(browser: Browser, { address }: Demo, width: number): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: { width, height: 720 }, hasTouch: width < 400 })
  context.setDefaultTimeout(actionMsMax)
  context.on('request', (request) => {
    const { origin, hostname } = new URL(request.url())
    if (origin !== new URL(address).origin && hostname !== 'localhost') elsewhere.push(request.url())
  })
  context.on('weberror', (error) => broken.push(String(error.error())))
  return context
}

async function again(
  browser: Browser,
  demo: Demo,
  { hand, width, name }: { hand: Hand; width: number; name: string },
): Promise<void> {
  const context = await open(browser, demo, width)
  const page = await context.newPage()
  await signIn(page, hand, demo, password)
  const key = await makeKey(page, hand, name)
  await approveOnce(page, hand, demo, key)
  await context.close()
}

/** The demo's workspace, and a pending request. */
async function placesOf(context: BrowserContext, { address }: Demo, key: string) {
  const response = await context.request.get(`${address}/dashboard/api/session`)
  const { workspaces } = (await response.json()) as { workspaces: { id: string }[] }
  const { structuredContent } = await callTool(address, key, {
    name: 'service_send_message',
    arguments: {
      account_id: exampleChat.account_id,
      chat_id: exampleChat.id,
      text: 'Shall I send the tracking link?',
    },
  })
  return { workspace_id: workspaces[0]?.id ?? '', request_id: String(structuredContent.request_id) }
}

async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  const begunAt = performance.now()
  const result = await work()
  process.stdout.write(`== ${((performance.now() - begunAt) / 1_000).toFixed(1)} s: ${name}\n`)
  return result
}
