/**
 * Sends a broadcast by keyboard: the number stands before the button and is typed, the answer is lost and the page
 * reloaded, and each recipient is written to once.
 */
import assert from 'node:assert/strict'
import { AxeBuilder } from '@axe-core/playwright'
import { press, type } from './by-keyboard.ts'
import { exampleChat } from './demo.ts'
import type { Visit } from './editor-journey.ts'
import { widthOver } from './every-page.ts'
import { loseAnswer } from './lost-answer.ts'

const text = 'Hello {{name|there}}, we are closed on Friday.'

export async function sendBroadcast(visit: Visit): Promise<void> {
  const { page, demo, workspace_id } = visit
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.goto(`${demo.address}/dashboard/w/${workspace_id}/inbox`)
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
  await page.keyboard.press('ControlOrMeta+k')
  await page.getByRole('combobox', { name: 'Search or go to' }).fill('broadcast')
  await page.getByRole('option', { name: 'Broadcast' }).waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'No broadcasts yet' }).waitFor()
  await page.getByLabel('Stage').selectOption('qualified')
  await page.getByLabel('Account').selectOption(exampleChat.account_id)
  await page.getByText('4 left out: on the suppression list').waitFor()
  await type(page, page.getByLabel('Message', { exact: true }), text)
  await press(page, page.getByRole('button', { name: 'Send to 2 people' }), 'Enter')
  const sure = page.getByRole('dialog').getByRole('button', { name: 'Send to 2 people' })
  await page.getByLabel('Type how many people get it').fill('3')
  assert.ok(await sure.isDisabled())
  await page.getByLabel('Type how many people get it').fill('2')
  const send = () => page.keyboard.press('Enter')
  await loseAnswer(page, { path: '/broadcast', send, reaches: /broadcast\?broadcast=/ })
  await demo.advance(600)
  await page.getByRole('heading', { name: '2 of 2 accepted' }).waitFor()
  const outcomes = page.getByRole('table', { name: 'Recipients' })
  assert.equal(await outcomes.getByText('Got 1 message.').count(), 2)
  const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze()
  assert.deepEqual(violations, [])
  await page.setViewportSize({ width: 320, height: 720 })
  assert.equal(await widthOver(page), 0, 'too wide')
  const sent = (await demo.journal()).filter((each) => each?.endsWith('we are closed on Friday.'))
  assert.deepEqual(
    sent.sort(),
    ['Ada Tallis', 'Ben Okoro'].map((name) => text.replace('{{name|there}}', name)),
  )
}
