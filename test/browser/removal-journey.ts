/** An admin is removed: the owner sees what they made, takes one webhook over by keyboard, and everything else stops. */
import assert from 'node:assert/strict'
import { AxeBuilder } from '@axe-core/playwright'
import type { BrowserContext, Page } from 'playwright-core'
import { mouse, setUp } from './approval-journey.ts'
import type { Demo } from './demo.ts'
import { tags } from './every-page.ts'

const email = 'lea@acme.example'
const password = 'a long sentence of an admin'
const kept = 'https://kept.example.com/hook'
const stopped = 'https://lea.example.com/hook'

interface Where {
  readonly workspace_id: string
  readonly owner: BrowserContext
}

/** `leaver` is a browser of its own. At the end the admin is signed out. Returns what is wrong with the dialog. */
export async function removeAdmin(
  leaver: BrowserContext,
  demo: Demo,
  { workspace_id, owner }: Where,
): Promise<string[]> {
  const { address } = demo
  const call = async (context: BrowserContext, path: string, data: unknown) => {
    const url = `${address}/dashboard/api/w/${workspace_id}${path}`
    const answer = await context.request.post(url, { data, headers: { origin: address } })
    assert.ok(answer.ok(), await answer.text())
    return (await answer.json()) as Record<string, unknown>
  }
  const { setup_link } = await call(owner, '/members', { email, role: 'admin' })
  const page = await owner.newPage()
  await page.goto(`${address}/dashboard/w/${workspace_id}/members`)
  await page.getByText(/^Link by /).waitFor()
  const theirs = await leaver.newPage()
  await setUp(theirs, { ...demo, setup_link: String(setup_link) }, password)
  for (const url of [kept, stopped]) await call(leaver, '/webhooks', { url })
  await page.getByRole('button', { name: `Actions for ${email}` }).click()
  await page.getByRole('menuitem', { name: 'Remove…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel(`Webhook: ${stopped}`).waitFor()
  const wrong = await lookInBothThemes(page)
  // Preset: everything stops. One is taken over with the keyboard alone.
  assert.equal(await dialog.getByLabel(`Webhook: ${kept}`).inputValue(), 'stop')
  await dialog.getByLabel(`Webhook: ${kept}`).focus()
  await page.keyboard.press('T')
  assert.equal(await dialog.getByLabel(`Webhook: ${kept}`).inputValue(), 'take_over')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.type(email)
  await page.keyboard.press('Enter')
  await dialog.waitFor({ state: 'hidden' })
  await page.getByRole('link', { name: 'Webhooks 1 stopped' }).click()
  await page.getByRole('link', { name: stopped }).click()
  await page.getByText('was removed from this workspace or is no admin any more').waitFor()
  await mouse.press(page, /^Delete…$/)
  await page.getByRole('dialog').getByLabel(/^Type/).fill(stopped)
  await page.getByRole('dialog').getByRole('button', { name: 'Delete endpoint' }).click()
  await page.getByRole('link', { name: 'Webhooks', exact: true }).waitFor()
  const session = await leaver.request.get(`${address}/dashboard/api/session`)
  assert.equal(session.status(), 401)
  await page.close()
  await theirs.close()
  return wrong
}

async function lookInBothThemes(page: Page): Promise<string[]> {
  const wrong: string[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const { violations } = await new AxeBuilder({ page }).withTags(tags).setLegacyMode().analyze()
    wrong.push(...violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`))
    const shots = process.env.PARLEY_TEST_SHOTS
    if (shots) await page.screenshot({ path: `${shots}/remove-${colorScheme}.png` })
  }
  return wrong
}
