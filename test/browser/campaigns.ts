/** Campaigns and broadcasts in a real browser, on a demo whose clock the journeys move. */
import assert from 'node:assert/strict'
import { setUp } from './approval-journey.ts'
import { sendBroadcast } from './broadcast-journey.ts'
import { openBrowser } from './browser.ts'
import { startDemo } from './demo.ts'
import { visitAsOwner, writeCampaigns } from './editor-journey.ts'
import { step } from './step.ts'
import { seeWhyNotYet } from './why-journey.ts'

const actionMsMax = 40_000
const password = 'a long sentence nobody guesses'

const browser = await openBrowser()
if (!browser) {
  process.stdout.write('== skipped: there is no Chromium on this machine, and none that npm carries for it\n')
} else {
  const demo = await startDemo({ PARLEY_CLOCK: 'manual' })
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
    context.setDefaultTimeout(actionMsMax)
    const broken: string[] = []
    context.on('weberror', (error) => broken.push(String(error.error())))
    const page = await context.newPage()
    await setUp(page, demo, password)
    await page.close()
    const visit = await visitAsOwner(context, demo, password)
    await step(browser, 'campaigns: previewed, started once, sent as previewed, by keyboard at 320 px', () =>
      writeCampaigns(visit),
    )
    await step(browser, 'a broadcast: counted, confirmed by its number, sent once', () =>
      sendBroadcast(visit),
    )
    await step(browser, 'why not yet: ambiguous, quota, window, flood wait', () => seeWhyNotYet(visit))
    assert.deepEqual(broken, [], 'errors in pages')
  } finally {
    await browser.close()
    await demo.close()
  }
}
