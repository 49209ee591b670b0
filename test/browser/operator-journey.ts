/**
 * An operator closes and opens a gate, stops and resumes sending while a member looks on, verifies the audit log before and
 * after a row was changed in the database, and paints the sending window by mouse and by keyboard.
 */
import assert from 'node:assert/strict'
import type { BrowserContext, Page } from 'playwright-core'
import { until } from '../harness/process.ts'
import type { Demo } from './demo.ts'
import { widthOver } from './every-page.ts'

const stateMsMax = 40_000
const reason = 'The database moves to another machine.'

interface Where {
  readonly workspace_id: string
  /** Signed in as an operator. */
  readonly operator: BrowserContext
  /** Signed in as a user who looks on. */
  readonly member: BrowserContext
}

export async function operate(demo: Demo, { workspace_id, operator, member }: Where): Promise<void> {
  const { address } = demo
  const page = await operator.newPage()
  const other = await member.newPage()
  await other.goto(`${address}/dashboard/w/${workspace_id}/contacts`)
  await other.getByRole('list', { name: 'Contacts' }).waitFor()
  await switchGate(page, other, address)
  await stopAndResume(page, other)
  await verify(page, demo)
  await disableWorkspace(page, address)
  await fitNames(page, address)
  await paintWindow(page, `${address}/dashboard/w/${workspace_id}/settings`)
  await other.goto(`${address}/dashboard/w/${workspace_id}/settings`)
  await other.getByText('Only admins and owners of this workspace change them.').waitFor()
  assert.ok(await other.getByRole('button', { name: 'Save window' }).isDisabled())
  assert.equal(await other.getByRole('heading', { name: 'Retention' }).count(), 0)
  await other.goto(`${address}/dashboard/operator?view=audit`)
  await other.getByRole('heading', { name: 'Only operators see this page' }).waitFor()
  await page.close()
  await other.close()
}

/** The other user's page closes and comes back by itself. */
async function switchGate(page: Page, other: Page, address: string): Promise<void> {
  await page.goto(`${address}/dashboard/gates`)
  await page.waitForURL('**/dashboard/operator')
  const gate = page.getByRole('switch', { name: 'crm' })
  await gate.click()
  await other.getByRole('heading', { name: 'Contacts are turned off here' }).waitFor()
  await gate.click()
  await other.getByRole('list', { name: 'Contacts' }).waitFor()
}

/** By keyboard. The bar covers nothing of the other user's page, which fills the window, and fits on a phone. */
async function stopAndResume(page: Page, other: Page): Promise<void> {
  await page.getByRole('link', { name: 'Sending', exact: true }).press('Enter')
  await page.getByLabel('Reason').fill(reason)
  await page.keyboard.press('Enter')
  const bar = other.getByRole('complementary', { name: 'Sending is stopped' })
  await bar.getByText(reason).waitFor()
  assert.match(
    (await bar.textContent()) ?? '',
    /Sending is switched off on this instance\. Since .*\d\d:\d\d\./,
  )
  assert.equal(await bar.getByRole('link').count(), 0, 'only operators get the link')
  for (const width of [1280, 320]) {
    await other.setViewportSize({ width, height: 720 })
    const over = await other.evaluate(() => document.documentElement.scrollHeight - window.innerHeight)
    assert.deepEqual([width, over, await widthOver(other)], [width, 0, 0])
  }
  await page.getByRole('heading', { name: 'Sending is off' }).waitFor()
  await page.getByRole('button', { name: 'Resume sending' }).press('Enter')
  await bar.waitFor({ state: 'detached' })
  await page.getByRole('heading', { name: 'Parley sends' }).waitFor()
}

/** A changed row is named in every view, in red, until the log verifies again. */
async function verify(page: Page, demo: Demo): Promise<void> {
  await page.getByRole('link', { name: 'Audit log' }).click()
  await page.getByLabel('Action').selectOption('dispatch.off')
  const rows = page.getByRole('table', { name: 'Audit log' }).getByRole('row')
  await until('the log is filtered', stateMsMax, async () => (await rows.count()) === 2)
  await page.getByText(`reason: ${reason}`).waitFor()
  await page.getByRole('button', { name: 'Verify' }).click()
  await page.getByText(/rows verified/).waitFor()
  const tamper = (detail: string) =>
    demo.database(`alter table audit disable trigger audit_append_only;
      update audit set detail = ${detail} where seq = 3; alter table audit enable trigger audit_append_only`)
  await tamper("detail || ' '")
  await page.getByRole('button', { name: 'Verify' }).click()
  const alert = page.getByRole('alert')
  await alert.getByText('The audit log fails at row 3:').waitFor()
  await page.getByRole('link', { name: 'System' }).click()
  await page.getByRole('table', { name: 'Workers' }).getByText('Running').first().waitFor()
  await alert.getByText('The audit log fails at row 3:').waitFor()
  await tamper('rtrim(detail)')
  await page.getByRole('link', { name: 'Audit log' }).click()
  await page.getByRole('button', { name: 'Verify' }).click()
  await alert.waitFor({ state: 'detached' })
}

/** A workspace of the operator's own, by keyboard: its pages say so, come back by themselves, and are gone again. */
async function disableWorkspace(page: Page, address: string): Promise<void> {
  const context = page.context()
  const ask = async (path: string, data: object) => {
    const headers = { origin: address }
    const answer = await context.request.post(`${address}/dashboard/api${path}`, { headers, data })
    assert.ok(answer.ok(), `${path}: ${answer.status()}`)
    return answer.json()
  }
  const { workspace } = (await ask('/workspaces', { name: 'Spare' })) as { workspace: { id: string } }
  await ask('/users', { email: 'operator@localhost', workspace_id: workspace.id, role: 'owner' })
  const inside = await context.newPage()
  await inside.goto(`${address}/dashboard/w/${workspace.id}/inbox`)
  await inside.getByRole('heading', { name: 'Inbox' }).waitFor()
  await fitEmptyPages(inside)
  await page.getByRole('link', { name: 'Workspaces and users' }).press('Enter')
  const choose = async (name: RegExp) => {
    await page.getByRole('button', { name: 'Actions for Spare' }).press('Enter')
    await page.getByRole('menuitem', { name }).press('Enter')
  }
  for (const comesBack of [true, false]) {
    await choose(/^Disable/)
    const dialog = page.getByRole('dialog', { name: 'Disable “Spare”?' })
    await dialog.getByLabel(/^Type its name/).fill('Spare')
    await dialog.getByRole('button', { name: 'Disable workspace' }).press('Enter')
    await page
      .getByRole('row', { name: /^Spare/ })
      .getByText('Disabled')
      .waitFor()
    await inside.getByRole('heading', { name: 'This workspace is disabled' }).waitFor()
    if (!comesBack) break
    await choose(/^Enable/)
    await inside.getByRole('heading', { name: 'Inbox' }).waitFor()
  }
  await inside.close()
}

/** Pages without anything have an example of a request, which is wide. */
async function fitEmptyPages(page: Page): Promise<void> {
  const inbox = page.url()
  await page.setViewportSize({ width: 320, height: 720 })
  for (const name of ['campaigns', 'pipeline', 'contacts', 'broadcast', 'webhooks']) {
    await page.goto(inbox.replace('inbox', name))
    await page.locator('main h2').first().waitFor()
    assert.deepEqual([name, await widthOver(page)], [name, 0])
  }
  await page.setViewportSize({ width: 1280, height: 720 })
  await page.goto(inbox)
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
}

/** A name without a space, as long as one may be, leaves the buttons where they are. */
async function fitNames(page: Page, address: string): Promise<void> {
  const name = 'W'.repeat(200)
  const headers = { origin: address }
  const url = `${address}/dashboard/api/workspaces`
  assert.ok((await page.context().request.post(url, { headers, data: { name } })).ok())
  for (const [view, width] of [
    ['people', 1280],
    ['people', 320],
    ['audit', 320],
  ] as const) {
    await page.setViewportSize({ width, height: 720 })
    await page.goto(`${address}/dashboard/operator?view=${view}`)
    await page.getByText(name).first().waitFor({ state: 'attached' })
    assert.deepEqual([view, width, await widthOver(page)], [view, width, 0])
  }
  await page.setViewportSize({ width: 1280, height: 720 })
}

async function paintWindow(page: Page, address: string): Promise<void> {
  await page.goto(address)
  await page.getByRole('radio', { name: 'Only in the window' }).check()
  const field = (name: string) => page.getByRole('gridcell', { name, exact: true })
  const box = async (name: string) => {
    const { x, y, width, height } = (await field(name).boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 }
    return [x + width / 2, y + height / 2] as const
  }
  await field('Sun 0:00').scrollIntoViewIfNeeded()
  await page.mouse.move(...(await box('Tue 8:00')))
  await page.mouse.down()
  await page.mouse.move(...(await box('Thu 16:00')), { steps: 8 })
  await page.mouse.up()
  await saved(page, 'tue-thu 08:00-17:00')
  // By keyboard, from the field where the mouse ended.
  await field('Thu 16:00').focus()
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('Space')
  await page.keyboard.press('Shift+ArrowDown')
  await page.keyboard.press('Shift+ArrowRight')
  await saved(page, 'thu,fri 17:00-19:00')
  await page.getByRole('button', { name: 'Mon', exact: true }).press('Enter')
  await page.getByLabel('From').selectOption('16:30')
  await saved(page, 'mon,thu,fri 16:30-19:00')
  await page.setViewportSize({ width: 320, height: 720 })
  assert.equal(await widthOver(page), 0, 'too wide')
  await page.getByRole('radio', { name: 'At any time' }).check()
  await saved(page, null)
}

/** As the service has it. */
async function saved(page: Page, window: string | null): Promise<void> {
  const button = page.getByRole('button', { name: 'Save window' })
  const answered = page.waitForResponse(
    (response) => response.request().method() === 'PATCH' && response.url().endsWith('/workspace'),
  )
  await button.press('Enter')
  const { workspace } = (await (await answered).json()) as { workspace: { sending_window: string | null } }
  assert.equal(workspace.sending_window, window)
  await page.getByRole('status').getByText('Saved').waitFor()
}
