/** The dashboard in a real browser against a real `parley start`: what people do at it. The pages are in `pages.ts`. */
import assert from 'node:assert/strict'
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
import { closeContext } from './browser.ts'
import { placesOf } from './every-page.ts'
import { answerWithFiles } from './files-journey.ts'
import { useInbox } from './inbox-journey.ts'
import { seeNotifications } from './notifications-journey.ts'
import { operate } from './operator-journey.ts'
import { joinAsMember, visitAsMember } from './plain-member.ts'
import { removeAdmin } from './removal-journey.ts'
import { password, type Sessions, withSessions } from './sessions.ts'
import { step } from './step.ts'

const centre = await startCentre()
try {
  await withSessions(centre.env, (sessions) => walk(sessions, centre))
} finally {
  await centre.close()
}

async function walk(sessions: Sessions, centre: Centre): Promise<void> {
  const { browser, demo } = sessions
  const wide = await sessions.open(1280)
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
  await step(browser, 'the same at 320 px', () => again(sessions, { hand: mouse, width: 320, name: 'phone' }))
  await step(browser, 'the same by keyboard', () =>
    again(sessions, { hand: keyboard, width: 1280, name: 'keys' }),
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
    sessions.inSession((context) => answerWithFiles(context, demo, places.workspace_id)),
  )
  await step(
    browser,
    'notifications: once in two tabs, without a name or text unless switched on',
    async () => {
      const context = await sessions.open(1280)
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
      const member = await sessions.open(1280)
      await joinAsMember(member, demo, { workspace_id: places.workspace_id, owner: wide })
      await operate(demo, { workspace_id: places.workspace_id, operator: wide, member })
      await closeContext(member)
    },
  )
  await step(browser, 'a plain member', async () => {
    const context = await sessions.open(1280)
    const { workspace_id } = places
    assert.deepEqual(await visitAsMember(context, demo, { workspace_id, owner: wide }), [])
    await closeContext(context)
  })
  await step(browser, 'an admin is removed: what they made stops or is taken over', async () => {
    const context = await sessions.open(1280)
    const { workspace_id } = places
    assert.deepEqual(await removeAdmin(context, demo, { workspace_id, owner: wide }), [])
    await closeContext(context)
  })
}

async function again(
  sessions: Sessions,
  { hand, width, name }: { hand: Hand; width: number; name: string },
): Promise<void> {
  const context = await sessions.open(width)
  const page = await context.newPage()
  await signIn(page, hand, sessions.demo, password)
  const key = await makeKey(page, hand, name)
  await approveOnce(page, hand, sessions.demo, key)
  await closeContext(context)
}
