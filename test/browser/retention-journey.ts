/** An admin sets retention by keyboard: a change first shows what it clears, and nothing is stored before it is confirmed. */
import assert from 'node:assert/strict'
import { AxeBuilder } from '@axe-core/playwright'
import type { BrowserContext, Page } from 'playwright-core'
import type { Demo } from './demo.ts'
import { tags } from './every-page.ts'

export async function useRetention(
  context: BrowserContext,
  { address }: Demo,
  workspace_id: string,
): Promise<void> {
  const page = await context.newPage()
  await page.goto(`${address}/dashboard/w/${workspace_id}/settings`)
  const stored = async () => {
    const answer = await page.request.get(`${address}/dashboard/api/w/${workspace_id}/retention`)
    return ((await answer.json()) as { retention: Record<string, number | null> }).retention
  }
  const nothing = { messages_days: null, operations_days: null, recipients_days: null, notes_days: null }
  assert.deepEqual(await stored(), nothing)

  // One day of messages: the preview counts them, and Escape leaves everything as it is.
  await typeInto(page, 'Messages, days', '1')
  const dialog = page.getByRole('dialog', { name: 'Clear what is older?' })
  await page.keyboard.press('Enter')
  await dialog.getByText('Files of these messages').waitFor()
  const { violations } = await new AxeBuilder({ page }).withTags(tags).analyze()
  assert.deepEqual(
    violations.map(({ id }) => id),
    [],
  )
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  assert.deepEqual(await stored(), nothing)

  // Too few days for recipients: there is no preview of that.
  await typeInto(page, 'Messages, days', '3650')
  await typeInto(page, 'Recipients, days', '29')
  const button = page.getByRole('button', { name: 'Show what this clears' })
  assert.ok(await button.isDisabled())
  await typeInto(page, 'Recipients, days', '')
  await button.press('Enter')
  const confirm = dialog.getByRole('button', { name: 'Clear it' })
  await confirm.press('Enter')
  await dialog.waitFor({ state: 'hidden' })
  assert.deepEqual(await stored(), { ...nothing, messages_days: 3650 })
  await page.getByRole('status').getByText('Saved').waitFor()
  await page.close()
}

async function typeInto(page: Page, label: string, text: string): Promise<void> {
  const field = page.getByRole('spinbutton', { name: label })
  await field.focus()
  await page.keyboard.press('ControlOrMeta+a')
  await page.keyboard.press('Delete')
  if (text !== '') await page.keyboard.type(text)
}
