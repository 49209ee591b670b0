/** The dashboard in a real browser against a real `parley start`: journeys, barriers, hostile texts, frames. */
import assert from 'node:assert/strict'
import type { Browser, BrowserContext, Cookie } from 'playwright-core'
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
import { closeContext, openBrowser } from './browser.ts'
import { useCampaigns } from './campaign-journey.ts'
import { useContacts } from './contacts-journey.ts'
import { callTool, type Demo, exampleChat, startDemo } from './demo.ts'
import { eraseSomebody } from './erase-journey.ts'
import { firstCampaign, frame, lookAt, type Places, sightsBefore, sightsOf } from './every-page.ts'
import { answerWithFiles } from './files-journey.ts'
import { openHostileFiles } from './hostile-files.ts'
import { showHostile } from './hostile-text.ts'
import { useInbox } from './inbox-journey.ts'
import { listsEnv, useLists } from './lists-journey.ts'
import { seeNotifications } from './notifications-journey.ts'
import { operate } from './operator-journey.ts'
import { usePerson } from './person-journey.ts'
import { usePipeline } from './pipeline-journey.ts'
import { joinAsMember, visitAsMember } from './plain-member.ts'
import { removeAdmin } from './removal-journey.ts'
import { useRetention } from './retention-journey.ts'
import { step } from './step.ts'
import { tellTheTruth } from './truth-journey.ts'

const password = 'a long sentence nobody guesses'
const actionMsMax = 40_000
/** The cookie of the browser that has signed in before. */
let known: Cookie[] = []
/** Requests to any other server, and errors in a page. */
const elsewhere: string[] = []
const broken: string[] = []

const browser = await openBrowser()
if (!browser) {
  process.stdout.write('== skipped: there is no Chromium on this machine, and none that npm carries for it\n')
} else {
  const centre = await startCentre()
  const demo = await startDemo({ ...centre.env, ...listsEnv })
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
  const key = await step(browser, 'set-up, a key, an approval, a denial', async () => {
    const page = await wide.newPage()
    await setUp(page, demo, password)
    await page.goto(`${demo.address}/dashboard/`)
    const key = await makeKey(page, mouse, 'my agent')
    await approveOnce(page, mouse, demo, key)
    await denyOnce(page, demo, key)
    await page.close()
    return key
  })
  await step(browser, 'the same at 320 px', () =>
    again(browser, demo, { hand: mouse, width: 320, name: 'phone' }),
  )
  await step(browser, 'the same by keyboard', () =>
    again(browser, demo, { hand: keyboard, width: 1280, name: 'keys' }),
  )
  const places = await placesOf(wide, demo, key)
  await step(browser, 'accounts: by QR code and by phone, reloaded, in two tabs, killed in between', () =>
    connectAccounts(wide, demo, { centre, workspace_id: places.workspace_id }),
  )
  await step(
    browser,
    'the inbox: answered once whatever happens, notes, stages, by keyboard, at 320 px',
    () => useInbox(wide, demo, places.workspace_id),
  )
  await step(browser, 'files: dropped, pasted, removed by keyboard, each sent once and in order', () =>
    inSession(browser, demo, (context) => answerWithFiles(context, demo, places.workspace_id)),
  )
  await step(
    browser,
    'the pipeline: dragged, moved by key, undone, by two users, edited, at 320 px',
    async () => {
      const other = await open(browser, demo, 320)
      await usePipeline(wide, demo, { workspace_id: places.workspace_id, other })
      await closeContext(other)
    },
  )
  await step(browser, 'contacts: found by name, a chat started once, limits first, closed gates', () =>
    inSession(browser, demo, (context) => useContacts(context, demo, places.workspace_id)),
  )
  // One session for both: a user has ten sign-ins within the time of all journeys.
  await inSession(browser, demo, async (context) => {
    await step(browser, 'a person: found from the palette, read, exported by keyboard, at 320 px', () =>
      usePerson(context, demo, places.workspace_id),
    )
    await step(browser, 'a person is erased: previewed, confirmed, gone, by keyboard', () =>
      eraseSomebody(context, demo, places.workspace_id),
    )
  })
  await step(
    browser,
    'campaigns: listed, why not yet, paused, resumed by another, cancelled by name, at 320 px',
    () => inSession(browser, demo, (context) => useCampaigns(context, demo, places.workspace_id)),
  )
  await step(
    browser,
    'suppressed in the chat, asked to stop, right to left, forced colours, offline, a cold page',
    () => inSession(browser, demo, (context) => tellTheTruth(context, demo, places.workspace_id)),
  )
  await step(browser, 'suppression list and webhooks: imported, removed, tested, disabled, resent', () =>
    inSession(browser, demo, (context) => useLists(context, demo, places.workspace_id)),
  )
  await step(
    browser,
    'notifications: once in two tabs, without a name or text unless switched on',
    async () => {
      const context = await open(browser, demo, 1280)
      const page = await context.newPage()
      await signIn(page, mouse, demo, password)
      // Before the journey's own tabs: the one that leads has to be one of them.
      await page.close()
      await seeNotifications(context, demo)
      await closeContext(context)
    },
  )
  await step(
    browser,
    'the operator: a gate, sending stopped and resumed, the audit log, the sending window',
    async () => {
      const member = await open(browser, demo, 1280)
      await joinAsMember(member, demo, { workspace_id: places.workspace_id, owner: wide })
      await operate(demo, { workspace_id: places.workspace_id, operator: wide, member })
      await closeContext(member)
    },
  )
  await step(browser, 'retention: counted first, then set, by keyboard', () =>
    inSession(browser, demo, (context) => useRetention(context, demo, places.workspace_id)),
  )
  await step(browser, 'axe and width on every page', async () => {
    const out = await open(browser, demo, 1280)
    const looks = [
      { width: 1280, theme: 'light' },
      { width: 1280, theme: 'dark' },
      { width: 320, theme: 'light', fits: true },
    ] as const
    const wrong = await Promise.all(
      looks.map(async (each) => {
        const look = { address: demo.address, ...each }
        const before = await lookAt(out, sightsBefore, look)
        const after = await inSession(browser, demo, (context) => lookAt(context, sightsOf(places), look))
        return [...before, ...after]
      }),
    )
    await closeContext(out)
    assert.deepEqual(wrong.flat(), [])
  })
  await step(browser, 'a plain member', async () => {
    const context = await open(browser, demo, 1280)
    const { workspace_id } = places
    assert.deepEqual(await visitAsMember(context, demo, { workspace_id, owner: wide }), [])
    await closeContext(context)
  })
  await step(browser, 'an admin is removed: what they made stops or is taken over', async () => {
    const context = await open(browser, demo, 1280)
    const { workspace_id } = places
    assert.deepEqual(await removeAdmin(context, demo, { workspace_id, owner: wide }), [])
    await closeContext(context)
  })
  await step(browser, '2,000 hostile texts', async () => {
    const texts = { ...places, address: demo.address }
    const shown = await inSession(browser, demo, (context) => showHostile(context, texts))
    process.stdout.write(`   shown ${shown} times, 0 scripts\n`)
  })
  await step(browser, 'hostile files', async () => {
    const opened = await openHostileFiles(wide, demo, places.workspace_id)
    process.stdout.write(`   ${opened} opened and embedded, 0 scripts\n`)
  })
  await step(browser, 'frames of another site', () => {
    const paths = sightsOf(places).map(({ path }) => demo.address + path)
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

/** As the same user in a session of its own: each has 600 requests a minute, and journeys are faster than people. */
async function inSession<T>(
  browser: Browser,
  demo: Demo,
  work: (context: BrowserContext) => Promise<T>,
): Promise<T> {
  const context = await open(browser, demo, 1280)
  // A browser that is known has sign-ins of its own: all journeys together are more than a stranger may have.
  await context.addCookies(known)
  const signedIn = await context.request.post(`${demo.address}/dashboard/api/sign-in`, {
    headers: { origin: demo.address },
    data: { email: 'operator@localhost', password },
  })
  assert.ok(signedIn.ok(), await signedIn.text())
  known = (await context.cookies()).filter(({ name }) => name.endsWith('device'))
  assert.equal(known.length, 1)
  const result = await work(context)
  await closeContext(context)
  return result
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
  await closeContext(context)
}

/** The demo's workspace, and a pending request. */
async function placesOf(context: BrowserContext, { address }: Demo, key: string): Promise<Places> {
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
  const workspace_id = workspaces[0]?.id ?? ''
  const request_id = String(structuredContent.request_id)
  return { workspace_id, request_id, campaign_id: await firstCampaign(context, address, workspace_id) }
}
