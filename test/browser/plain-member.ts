/** A plain member: the members page works for them, pages for admins say who may, and they can leave. */
import assert from 'node:assert/strict'
import type { BrowserContext } from 'playwright-core'
import { mouse, setUp } from './approval-journey.ts'
import type { Demo } from './demo.ts'
import { lookAt } from './every-page.ts'

const email = 'bo@acme.example'
const password = 'a long sentence of a member'

interface Where {
  readonly workspace_id: string
  /** Signed in as an owner, who adds them. */
  readonly owner: BrowserContext
}

/** A new member with a password, signed in. */
export async function joinAsMember(
  context: BrowserContext,
  demo: Demo,
  { workspace_id, owner }: Where,
  member = 'dana@acme.example',
): Promise<void> {
  const { address } = demo
  const added = await owner.request.post(`${address}/dashboard/api/w/${workspace_id}/members`, {
    data: { email: member, role: 'member' },
    headers: { origin: address },
  })
  assert.ok(added.ok(), await added.text())
  const { setup_link } = (await added.json()) as { setup_link: string }
  const page = await context.newPage()
  await setUp(page, { ...demo, setup_link }, password)
  await page.close()
}

/** What is wrong with the page. At the end the member has left. */
export async function visitAsMember(
  context: BrowserContext,
  demo: Demo,
  { workspace_id, owner }: Where,
): Promise<string[]> {
  const { address } = demo
  await joinAsMember(context, demo, { workspace_id, owner }, email)
  const page = await context.newPage()
  const path = `/dashboard/w/${workspace_id}/members`
  const wrong: string[] = []
  for (const [width, theme] of [
    [1280, 'light'],
    [1280, 'dark'],
    [320, 'light'],
  ] as const) {
    const sight = { path, heading: 'Only admins see the members' }
    wrong.push(...(await lookAt(context, [sight], { address, width, theme })))
  }
  for (const [name, heading, entry] of [
    ['campaigns', 'Only admins and owners see campaigns', 'Campaigns'],
    ['campaigns/new', 'Only admins and owners see campaigns', 'Campaigns'],
    ['broadcast', 'Only admins and owners send broadcasts', 'Broadcast'],
    ['webhooks', 'Only admins and owners see webhooks', 'Webhooks'],
  ] as const) {
    await page.goto(`${address}/dashboard/w/${workspace_id}/${name}`)
    await page.getByRole('heading', { name: heading }).waitFor()
    assert.equal(await page.getByRole('link', { name: entry }).count(), 0, 'not in the menu')
  }
  // A link into another workspace shows nothing of the user's own in its place.
  await page.goto(`${address}/dashboard/w/${crypto.randomUUID()}/inbox`)
  await page.getByRole('heading', { name: 'Page not found' }).waitFor()
  await page.goto(`${address}/dashboard/w/${workspace_id}/suppressions`)
  await page.getByText('Admins and owners import and export files and remove entries.').waitFor()
  assert.equal(await page.getByRole('button', { name: /^(Import|Remove)/ }).count(), 0)
  await page.goto(address + path)
  await mouse.press(page, /^Leave this workspace/)
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel(/^Type its name/).fill('Demo')
  await dialog.getByRole('button', { name: 'Leave' }).click()
  // It was their only workspace, so their session ended with it. Chromium forgets to close a page that is loading, so this waits for
  // the last of its addresses: the end of the session may lead to the sign-in before the new page does.
  await page.waitForURL('**/dashboard/sign-in?return_to=%2Fdashboard%2F')
  const session = await context.request.get(`${address}/dashboard/api/session`)
  assert.equal(session.status(), 401)
  await page.close()
  return wrong
}
