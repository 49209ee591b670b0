/**
 * Why a recipient gets no message yet, each cause with its sentence: an ambiguous message and until when it waits, the day's
 * quota, the sending window, a flood wait.
 */
import assert from 'node:assert/strict'
import { until } from '../harness/process.ts'
import { exampleChat } from './demo.ts'
import type { Visit } from './editor-journey.ts'

const { account_id } = exampleChat
const stateMsMax = 60_000
const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

export async function seeWhyNotYet(visit: Visit): Promise<void> {
  const { page, demo, workspace_id, ask } = visit
  await page.setViewportSize({ width: 1280, height: 800 })
  const show = async (id: string) => {
    await page.goto(`${demo.address}/dashboard/w/${workspace_id}/campaigns/${id}`)
    return page.locator('[data-recipient="0"]')
  }
  // In the morning: the day of the quota must not end in between.
  await demo.advance(secondsUntilMorning(await demo.advance(1)))
  await visit.signInAgain()
  await demo.platform('addFault', { on: 'send', fault: 'unavailable', account_id })
  const lost = await start(visit, 'Rosa Quell', {})
  // Whatever the account sent last, its gap between two messages is over then.
  await demo.advance(600)
  const proof =
    /^Waits for proof that the message arrived, until \w+.* \d\d:\d\d UTC\. It is not sent again\.$/
  await (await show(lost.id)).getByText(proof).waitFor()
  const { id, created_at } = await start(visit, 'Sven Thorn', { daily_quota_per_account: 1 })
  const recipient = await show(id)
  await recipient.getByText(/^Sales has sent its 1 for today\. \w+/).waitFor()
  const yesterday = days[(new Date(created_at).getUTCDay() + 6) % 7]
  await ask('PATCH', '/workspace', { sending_window: `${yesterday} 09:00-10:00` })
  await recipient.getByText(new RegExp(`^Outside the sending window ${yesterday} 09:00-10:00\\.`)).waitFor()
  await demo.platform('addFault', { on: 'send', fault: 'flood_wait', seconds: 3_600, account_id })
  const body = { account_id, chat_id: exampleChat.id, text: 'One moment, please.' }
  await assert.rejects(ask('POST', '/messages', body), /flood_wait/)
  await page.reload()
  await recipient.getByText(/^The platform makes Sales wait before it sends again\. \w+/).waitFor()
  await ask('PATCH', '/workspace', { sending_window: null })
}

/** Until 8:00 UTC on the day after. */
function secondsUntilMorning(now: Date): number {
  const daySeconds = 86_400
  return daySeconds - (Math.floor(now.getTime() / 1_000) % daySeconds) + 8 * 3_600
}

interface Started {
  readonly id: string
  readonly created_at: string
}

/** A campaign for one person who never answers. */
async function start({ demo, ask }: Visit, name: string, more: object): Promise<Started> {
  const added = await demo.platform('addPerson', { name, behaviour: 'silent' })
  const { person_id } = added as { person_id: number }
  await demo.platform('writeMessage', { account_id, person_id, text: 'Do you ship to Brno?' })
  const body = {
    name: `For ${name}`,
    message_text: 'We do.',
    recipients: [{ account_id, chat_id: `platform:chat:${person_id}` }],
    steps: [{ branch: 'no_reply', wait_hours: 48, variants: ['Shall I send one?'] }],
    ...more,
  }
  await until(
    'the chat is stored',
    stateMsMax,
    async () =>
      (await ask<{ creatable: boolean }>('POST', '/campaigns/preview', body)).creatable || undefined,
    200,
  )
  return (await ask<{ campaign: Started }>('POST', '/campaigns', body)).campaign
}
