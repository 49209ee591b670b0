/** Checks every page: no barrier that axe knows (WCAG 2.2 AA), no sideways scrolling, no frame on another site. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { callTool, type Demo, exampleChat } from './demo.ts'

export const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

/** A page, and what to open on it before the checks. */
export interface Sight {
  readonly path: string
  readonly heading: string | RegExp
  readonly open?: string
}

/** What the demo has, besides the example's chat. */
export interface Places {
  readonly workspace_id: string
  /** A request that waits for its approval. */
  readonly request_id: string
  readonly campaign_id: string
}

export function sightsOf({ workspace_id, request_id, campaign_id }: Places): Sight[] {
  const workspace = `/dashboard/w/${workspace_id}`
  const chat = `chat=${exampleChat.id}&of=${exampleChat.account_id}`
  return [
    { path: `${workspace}/inbox`, heading: 'Inbox' },
    { path: `${workspace}/inbox?view=mine`, heading: 'Inbox' },
    { path: `${workspace}/inbox?${chat}`, heading: exampleChat.name },
    { path: `${workspace}/pipeline`, heading: 'Pipeline' },
    { path: `${workspace}/pipeline`, heading: 'Pipeline', open: 'Stages' },
    { path: `${workspace}/pipeline?view=table`, heading: 'Pipeline', open: 'Columns' },
    { path: `${workspace}/pipeline?view=table&stage=new`, heading: 'Pipeline' },
    {
      path: `${workspace}/contacts?q=${exampleChat.name.slice(0, 3)}&contact=42&of=${exampleChat.account_id}`,
      heading: exampleChat.name,
    },
    { path: `${workspace}/contacts?start=new`, heading: 'Start a chat' },
    { path: `${workspace}/people?q=a`, heading: 'People' },
    { path: `${workspace}/people?q=${exampleChat.id}&open=true`, heading: 'Known as' },
    { path: `${workspace}/campaigns`, heading: 'Campaigns' },
    { path: `${workspace}/campaigns/${campaign_id}`, heading: 'Welcome back' },
    { path: `${workspace}/analytics`, heading: 'Analytics', open: 'As API' },
    { path: `${workspace}/campaigns/new`, heading: 'New campaign' },
    { path: `${workspace}/broadcast`, heading: 'Broadcast' },
    { path: '/dashboard/mcp-approvals', heading: 'Approvals' },
    { path: '/dashboard/mcp-approvals?view=history', heading: 'Approvals' },
    { path: `/dashboard/mcp-approvals?request=${request_id}`, heading: /wants to send/ },
    { path: `${workspace}/keys`, heading: 'API keys' },
    { path: `${workspace}/keys`, heading: 'API keys', open: 'Create key' },
    { path: `${workspace}/keys`, heading: 'API keys', open: 'Revoke demo key' },
    { path: `${workspace}/accounts`, heading: 'Accounts' },
    { path: `${workspace}/accounts`, heading: 'Accounts', open: 'Connect an account' },
    { path: `${workspace}/accounts`, heading: 'Accounts', open: 'As API' },
    { path: `${workspace}/suppressions`, heading: 'Suppression' },
    { path: `${workspace}/suppressions?q=nobody_here`, heading: 'Suppression', open: 'Import' },
    { path: `${workspace}/webhooks`, heading: 'Webhooks' },
    { path: `${workspace}/webhooks?open=add`, heading: 'Add an endpoint' },
    { path: `${workspace}/members`, heading: 'Members' },
    { path: `${workspace}/members`, heading: 'Members', open: 'Add member' },
    { path: `${workspace}/connect`, heading: 'Connect an agent' },
    { path: `${workspace}/settings`, heading: 'Settings' },
    { path: `${workspace}/settings`, heading: 'Settings', open: 'New reply' },
    { path: '/dashboard/operator', heading: 'Operator' },
    { path: '/dashboard/operator?view=sending', heading: 'Parley sends' },
    { path: '/dashboard/operator?view=people', heading: 'Users' },
    { path: '/dashboard/operator?view=people', heading: 'Users', open: 'Create user' },
    { path: '/dashboard/operator?view=attention', heading: 'Operator' },
    { path: '/dashboard/operator?view=audit', heading: 'Operator' },
    { path: '/dashboard/operator?view=system', heading: 'Workers' },
    { path: '/dashboard/profile', heading: 'Profile' },
    { path: '/dashboard/nowhere', heading: 'Page not found' },
  ]
}

/** The demo's own, which is the oldest. */
export async function firstCampaign(
  context: BrowserContext,
  address: string,
  workspace_id: string,
): Promise<string> {
  const answer = await context.request.get(`${address}/dashboard/api/w/${workspace_id}/campaign_progress`)
  const { campaigns } = (await answer.json()) as { campaigns: { id: string }[] }
  return campaigns.at(-1)?.id ?? ''
}

export const sightsBefore: readonly Sight[] = [
  { path: '/dashboard/sign-in', heading: 'Sign in to Parley' },
  { path: '/dashboard/setup#nothing', heading: 'This link no longer works' },
]

interface Look {
  readonly address: string
  readonly width: number
  readonly theme: 'light' | 'dark'
  /** Only whether it fits: axe's findings do not depend on the width, and axe takes seconds. */
  readonly fits?: boolean
}

/** All their faults together. */
export async function lookAt(
  context: BrowserContext,
  sights: readonly Sight[],
  look: Look,
): Promise<string[]> {
  const page = await context.newPage()
  await page.setViewportSize({ width: look.width, height: 720 })
  await page.emulateMedia({ colorScheme: look.theme, reducedMotion: 'reduce' })
  const wrong: string[] = []
  for (const sight of sights) wrong.push(...(await examine(page, sight, look)))
  await page.close()
  return wrong
}

/** Opens it, until all of it is there. */
export async function open(page: Page, address: string, { path, heading, open }: Sight): Promise<void> {
  await page.goto(address + path)
  await page.getByRole('heading', { name: heading }).first().waitFor()
  await page.waitForFunction(() => document.querySelector('[aria-busy]') === null)
  if (!open) return
  await page.getByRole('button', { name: open }).first().click()
  await page.getByRole('dialog').waitFor()
}

interface Part {
  /** A selector. */
  readonly within?: string
  /** Only the rules that depend on the theme. */
  readonly colours?: boolean
}

/** What axe finds on it. */
export async function barriersOf(page: Page, { within, colours = false }: Part = {}): Promise<string[]> {
  const axe = new AxeBuilder({ page }).setLegacyMode()
  if (within !== undefined) axe.include(within)
  const { violations } = await (colours ? axe.withRules('color-contrast') : axe.withTags(tags)).analyze()
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
}

/** How many pixels a page is wider than its window. */
export function widthOver(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
}

async function examine(page: Page, sight: Sight, look: Look): Promise<string[]> {
  const what = `${sight.path} ${sight.open ?? ''} at ${look.width} px, ${look.theme}`
  await open(page, look.address, sight)
  const said = look.fits ? [] : await barriersOf(page)
  const over = await widthOver(page)
  const wide = over > 0 ? [`${over} px too wide`] : []
  const own = [
    ...(await faultsOfSideBar(page)),
    ...(await faultsOfButtons(page)),
    ...(await faultsOfShapes(page)),
  ]
  const faults = [...said, ...wide, ...own]
  return faults.map((each) => `${what}: ${each}`)
}

/** In a low window only its list of pages scrolls: the search keeps its height, and the user's row is in view. */
function faultsOfSideBar(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const pages = document.querySelector('nav[aria-label="Main"]')
    if (!pages?.checkVisibility()) return []
    const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize)
    const search = pages.previousElementSibling?.getBoundingClientRect().height ?? 0
    const end = pages.nextElementSibling?.getBoundingClientRect().bottom ?? Number.POSITIVE_INFINITY
    return [
      ...(search < 2 * rem ? [`the search of the side bar is ${search} px high`] : []),
      ...(end > innerHeight ? [`the side bar ends ${end - innerHeight} px below the window`] : []),
    ]
  })
}

/** A page leads to one thing first, and so does a dialog or drawer on it. */
export function faultsOfButtons(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const primary = [...document.querySelectorAll('.bg-accent.text-accent-ink')]
    const shown = primary.filter((each) => each.checkVisibility() && each.closest('a, button') === each)
    const places = shown.map((each) => each.closest('[role="dialog"], [role="alertdialog"], aside, form'))
    const twice = shown.filter((_, at) => places.indexOf(places[at] ?? null) !== at)
    return twice.map((each) => `a second primary button: ${each.textContent}`)
  })
}

/** Forced colours remove backgrounds and shadows: a dot, a bar or a switch that these alone draw is still seen. */
async function faultsOfShapes(page: Page): Promise<string[]> {
  const shapes = await page.evaluateHandle(() =>
    [...document.querySelectorAll(':is(i, span, div):empty, [role="switch"]')].filter((each) => {
      const { backgroundColor, boxShadow } = getComputedStyle(each)
      const isDrawn = backgroundColor !== 'rgba(0, 0, 0, 0)' || boxShadow !== 'none'
      return isDrawn && each.checkVisibility() && each.getBoundingClientRect().width > 1
    }),
  )
  await page.emulateMedia({ forcedColors: 'active' })
  const lost = await shapes.evaluate((all) =>
    all
      .filter((each) => {
        const { outlineStyle, borderTopWidth } = getComputedStyle(each)
        return outlineStyle === 'none' && borderTopWidth === '0px'
      })
      .map((each) => `not seen in forced colours: ${each.outerHTML.slice(0, 200)}`),
  )
  await page.emulateMedia({ forcedColors: 'none' })
  await shapes.dispose()
  return [...new Set(lost)]
}

/** Another site puts each page into a frame: the browser shows none of it. */
export async function frame(
  browser: Browser,
  context: BrowserContext,
  addresses: readonly string[],
): Promise<void> {
  const frames = addresses.map((address) => `<iframe src="${address}"></iframe>`).join('')
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/html').end(`<h1>Win a prize</h1>${frames}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // Under another name than the dashboard's, as another site would have, and with the person signed in.
  const hostile = `http://localhost:${(server.address() as AddressInfo).port}/`
  assert.ok(browser.isConnected())
  const page = await context.newPage()
  try {
    await page.goto(hostile, { waitUntil: 'load' })
    const inner = page.frames().filter((each) => each !== page.mainFrame())
    assert.equal(inner.length, addresses.length)
    for (const each of inner) assert.equal(await each.locator('#app').count(), 0, each.url())
  } finally {
    await page.close()
    server.close()
  }
}

/** The demo's workspace, and a pending request. */
export async function placesOf(context: BrowserContext, { address }: Demo, key: string): Promise<Places> {
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
