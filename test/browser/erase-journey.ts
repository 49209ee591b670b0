/**
 * An admin erases a person by keyboard: the preview says what goes and what stays, nothing happens before it is confirmed, the page shows
 * how far it has come, and the person is gone from the inbox. A member has no such button; `plain-member.ts` and the tests of roles say so.
 */
import assert from 'node:assert/strict'
import { AxeBuilder } from '@axe-core/playwright'
import type { BrowserContext, Page } from 'playwright-core'
import { until } from '../harness/process.ts'
import { press, type } from './by-keyboard.ts'
import { type Demo, exampleChat } from './demo.ts'
import { tags, widthOver } from './every-page.ts'

const stateMsMax = 40_000
const name = 'Vera Canary'
const username = 'vera_canary'

export async function eraseSomebody(
  context: BrowserContext,
  demo: Demo,
  workspace_id: string,
): Promise<void> {
  const page = await context.newPage()
  const api = `${demo.address}/dashboard/api/w/${workspace_id}`
  const person_id = await somebody(page, demo, api)
  await page.goto(`${demo.address}/dashboard/w/${workspace_id}/people/${person_id}`)
  await page.getByRole('heading', { name, level: 2 }).waitFor()

  const erase = page.getByRole('button', { name: 'Erase…' })
  await press(page, erase, 'Enter')
  const dialog = page.getByRole('dialog', { name: `Erase ${name}?` })
  await dialog.getByRole('heading', { name: 'Goes' }).waitFor()
  assert.match((await dialog.getByRole('region', { name: 'Goes' }).textContent()) ?? '', /1 message/)
  assert.match(
    (await dialog.getByRole('region', { name: 'Stays' }).textContent()) ?? '',
    /number on the platform/,
  )
  await noViolations(page)
  const confirm = dialog.getByRole('button', { name: 'Erase for good' })
  assert.ok(await confirm.isDisabled())
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  assert.equal(await erasureOf(page, api, person_id), null)

  await press(page, erase, 'Enter')
  await press(page, dialog.getByRole('checkbox', { name: 'May be contacted again' }), 'Space')
  await press(page, dialog.getByRole('checkbox', { name: 'May be contacted again' }), 'Space')
  await type(page, dialog.getByRole('textbox', { name: 'Type this to confirm' }), `@${username}`)
  await until('it can be confirmed', stateMsMax, () => confirm.isEnabled())
  await press(page, confirm, 'Enter')
  await dialog.waitFor({ state: 'hidden' })
  await page.getByText('This person was erased').waitFor()
  await page.getByRole('heading', { name: 'No name', level: 2 }).waitFor()
  assert.equal((await erasureOf(page, api, person_id))?.state, 'done')
  await noViolations(page)
  await page.setViewportSize({ width: 320, height: 720 })
  assert.equal(await widthOver(page), 0, 'the erased person is too wide')
  await page.close()
}

/** Somebody who has written once. */
async function somebody(page: Page, demo: Demo, api: string): Promise<string> {
  const { person_id } = (await demo.platform('addPerson', { name, username, behaviour: 'silent' })) as {
    person_id: number
  }
  const { account_id } = exampleChat
  await demo.platform('writeMessage', { account_id, person_id, text: 'Please forget me.' })
  return until('the person is known', stateMsMax, async () => {
    const answer = await page.request.get(`${api}/people?q=@${username}`)
    const { people } = (await answer.json()) as { people?: { id: string }[] }
    return people?.[0]?.id
  })
}

async function erasureOf(page: Page, api: string, person_id: string): Promise<{ state: string } | null> {
  const answer = await page.request.get(`${api}/people/${person_id}/erasure`)
  return ((await answer.json()) as { erasure: { state: string } | null }).erasure
}

async function noViolations(page: Page): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).withTags(tags).setLegacyMode().analyze()
  assert.deepEqual(
    violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join()}`),
    [],
  )
}
