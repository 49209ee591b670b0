/** Eight tabs of one browser share one stream, and continue without the tab that read it, and after the service was killed. */
import assert from 'node:assert/strict'
import type { BrowserContext, Page } from 'playwright-core'
import { until } from '../harness/process.ts'
import { makeKey, mouse, setUp } from './approval-journey.ts'
import { openBrowser } from './browser.ts'
import { callTool, type Demo, exampleChat, startDemo } from './demo.ts'

/** Pages that get no marks read again every 30 s: anything shown sooner was due to a mark. */
const byMarkMsMax = 20_000
/** A silent reader is replaced after 45 s; a busy machine may need longer. */
const replacedMsMax = 75_000

const browser = await openBrowser()
if (browser) {
  const demo = await startDemo()
  try {
    const context = await browser.newContext()
    const page = await context.newPage()
    await setUp(page, demo, 'a long sentence nobody guesses')
    await page.goto(`${demo.address}/dashboard/`)
    const key = await makeKey(page, mouse, 'my agent')
    await page.close()
    await shareStream(context, demo, key)
  } finally {
    await browser.close()
    await demo.close()
  }
}

async function shareStream(context: BrowserContext, demo: Demo, key: string): Promise<void> {
  const readers: Page[] = []
  context.on('request', (request) => {
    if (new URL(request.url()).pathname === '/dashboard/api/stream') readers.push(request.frame().page())
  })
  const tabs: Page[] = []
  for (let n = 0; n < 8; n++) {
    const tab = await context.newPage()
    await tab.goto(`${demo.address}/dashboard/mcp-approvals`)
    await tab.getByRole('heading', { name: 'Approvals' }).first().waitFor()
    tabs.push(tab)
  }
  await seen(tabs, demo, key, 'to all eight tabs')
  assert.equal(readers.length, 1, 'connections of eight tabs')

  const left = tabs.filter((tab) => tab !== readers[0])
  await readers[0]?.close()
  await until('another tab reads the stream', replacedMsMax, () => readers.length > 1)
  await seen(left, demo, key, 'after the first reader was closed')

  const frozen = readers.at(-1) as Page
  const before = readers.length
  const session = await context.newCDPSession(frozen)
  // A paused tab runs nothing and keeps its lock, as a frozen one does.
  await session.send('Debugger.enable')
  await session.send('Debugger.pause')
  const frozeAt = performance.now()
  // Two tabs may notice at the same moment: the later one takes over from the first.
  await until('a tab replaces the frozen one', replacedMsMax, () => readers.length > before)
  process.stdout.write(`   replaced after ${Math.round((performance.now() - frozeAt) / 1_000)} s\n`)
  const awake = left.filter((tab) => tab !== frozen)
  await seen(awake, demo, key, 'after the second reader froze')

  const [first] = awake as [Page]
  await demo.restart()
  await first.getByText('Reconnecting…').waitFor({ state: 'hidden', timeout: byMarkMsMax })
  await seen(awake, demo, key, 'after the service was killed')
  for (const tab of left) await tab.close()
}

/** An agent asks for something, and every tab shows it. */
async function seen(tabs: readonly Page[], { address }: Demo, key: string, text: string): Promise<void> {
  const tool = {
    name: 'service_send_message',
    arguments: { account_id: exampleChat.account_id, chat_id: exampleChat.id, text },
  }
  // A service that was killed may not have reopened its database and its account yet.
  await until('the agent can ask', 60_000, () => callTool(address, key, tool).catch(() => undefined))
  const beganAt = performance.now()
  await Promise.all(tabs.map((tab) => tab.getByText(text).first().waitFor({ timeout: byMarkMsMax })))
  const ms = Math.round(performance.now() - beganAt)
  process.stdout.write(`   ${tabs.length} tabs live in ${ms} ms, ${text}\n`)
}
