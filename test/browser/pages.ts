/** The dashboard's pages in a real browser against a real `parley start`: their journeys, barriers, hostile texts, frames. */
import assert from 'node:assert/strict'
import type { BrowserContext } from 'playwright-core'
import { approveOnce, makeKey, mouse, setUp } from './approval-journey.ts'
import { closeContext } from './browser.ts'
import { useCampaigns } from './campaign-journey.ts'
import { useContacts } from './contacts-journey.ts'
import { eraseSomebody } from './erase-journey.ts'
import { lookAtDialogs, seeNoBarrier } from './every-dialog.ts'
import { frame, lookAt, placesOf, sightsBefore, sightsOf } from './every-page.ts'
import { openHostileFiles } from './hostile-files.ts'
import { showHostile } from './hostile-text.ts'
import { listsEnv, useLists } from './lists-journey.ts'
import { usePerson } from './person-journey.ts'
import { usePipeline } from './pipeline-journey.ts'
import { useRetention } from './retention-journey.ts'
import { password, type Sessions, withSessions } from './sessions.ts'
import { step } from './step.ts'
import { tellTheTruth } from './truth-journey.ts'

await withSessions(listsEnv, walk)

async function walk(sessions: Sessions): Promise<void> {
  const { browser, demo } = sessions
  const wide = await sessions.open(1280)
  const page = await wide.newPage()
  await setUp(page, demo, password)
  await page.goto(`${demo.address}/dashboard/`)
  const key = await makeKey(page, mouse, 'my agent')
  await approveOnce(page, mouse, demo, key)
  await page.close()
  const places = await placesOf(wide, demo, key)
  await step(
    browser,
    'the pipeline: dragged, moved by key, undone, by two users, edited, at 320 px',
    async () => {
      const other = await sessions.open(320)
      await usePipeline(wide, demo, { workspace_id: places.workspace_id, other })
      await closeContext(other)
    },
  )
  await step(browser, 'contacts: found by name, a chat started once, limits first, closed gates', () =>
    sessions.inSession((context) => useContacts(context, demo, places.workspace_id)),
  )
  // One session for both: a user has ten sign-ins within the time of all journeys.
  await sessions.inSession(async (context) => {
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
    () => sessions.inSession((context) => useCampaigns(context, demo, places.workspace_id)),
  )
  await step(
    browser,
    'suppressed in the chat, asked to stop, right to left, forced colours, offline, a cold page',
    () => sessions.inSession((context) => tellTheTruth(context, demo, places.workspace_id, seeNoBarrier)),
  )
  await step(browser, 'suppression list and webhooks: imported, removed, tested, disabled, resent', () =>
    sessions.inSession((context) => useLists(context, demo, places.workspace_id)),
  )
  await step(browser, 'retention: counted first, then set, by keyboard', () =>
    sessions.inSession((context) => useRetention(context, demo, places.workspace_id)),
  )
  await step(browser, 'axe and width on every page', async () => {
    const out = await sessions.open(1280)
    const looks = [
      { width: 1280, theme: 'light' },
      { width: 1280, theme: 'dark' },
      { width: 320, theme: 'light', fits: true },
    ] as const
    const wrong = await Promise.all(
      looks.map(async (each) => {
        const look = { address: demo.address, ...each }
        const before = await lookAt(out, sightsBefore, look)
        const after = await sessions.inSession((context) => lookAt(context, sightsOf(places), look))
        return [...before, ...after]
      }),
    )
    await closeContext(out)
    assert.deepEqual(wrong.flat(), [])
  })
  await step(browser, 'axe on every dialog, drawer and panel', async () => {
    const look = (context: BrowserContext) => lookAtDialogs(context, demo, places.workspace_id)
    assert.deepEqual(await sessions.inSession(look), [])
  })
  await step(browser, '2,000 hostile texts', async () => {
    const texts = { ...places, address: demo.address }
    const shown = await sessions.inSession((context) => showHostile(context, texts))
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
}
