/**
 * From the list of campaigns to one of them: its figures, its recipients and why each gets no message yet; paused by
 * keyboard, resumed by another user, cancelled by its name at 320 px; its records checked in words. Then the figures
 * of all campaigns, by keyboard.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { AxeBuilder } from '@axe-core/playwright'
import type { BrowserContext, Page } from 'playwright-core'
import { until } from '../harness/process.ts'
import { keyboard } from './approval-journey.ts'
import { type Demo, exampleChat } from './demo.ts'

const name = 'Autumn lamps'
const stateMsMax = 40_000
const dayMs = 86_400_000

interface Visit {
  readonly page: Page
  readonly ask: <Body>(method: string, path: string, data?: object) => Promise<Body>
  readonly campaign: Campaign
}

interface Campaign {
  readonly id: string
  readonly status: string
  readonly totals: Readonly<Record<string, number>>
  readonly reporting: readonly { readonly opted_out: number }[]
}

export async function useCampaigns(context: BrowserContext, demo: Demo, workspace_id: string): Promise<void> {
  const here = `${demo.address}/dashboard/api/w/${workspace_id}`
  let requests = 0
  const ask: Visit['ask'] = async (method, path, data) => {
    const answer = await context.request.fetch(here + path, {
      method,
      headers: { origin: demo.address, 'idempotency-key': `campaign-journey-${requests++}` },
      ...(data && { data }),
    })
    assert.ok(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`)
    return answer.json()
  }
  const campaign = await createCampaign(ask, demo)
  const page = await context.newPage()
  const visit = { page, ask, campaign }
  await page.goto(`${demo.address}/dashboard/w/${workspace_id}/inbox`)
  await openByKeyboard(visit)
  await findOne(visit)
  await pauseAndResume(visit)
  await page.setViewportSize({ width: 320, height: 720 })
  await cancelByName(visit)
  await verify(visit)
  await page.setViewportSize({ width: 1280, height: 720 })
  await countMessages(visit)
  await page.close()
}

/** To three people who never answer. It starts tomorrow, so nothing of it is sent meanwhile. */
async function createCampaign(ask: Visit['ask'], demo: Demo): Promise<Campaign> {
  const { account_id } = exampleChat
  const recipients: { account_id: string; chat_id: string }[] = []
  for (const person of ['Bea Moss', 'Cai Lund', 'Dot Hale']) {
    const added = await demo.platform('addPerson', { name: person, behaviour: 'silent' })
    const { person_id } = added as { person_id: number }
    await demo.platform('writeMessage', { account_id, person_id, text: 'Do you have it in blue?' })
    recipients.push({ account_id, chat_id: `platform:chat:${person_id}` })
  }
  const body = {
    name,
    message_text: 'Hello [[name|there]], the blue one is back in stock.',
    recipients,
    steps: [
      { branch: 'no_reply', wait_hours: 48, variants: ['Shall I put one aside?', 'Still interested?'] },
    ],
    scheduled_at: new Date(Date.now() + dayMs).toISOString(),
  }
  await until(
    'their chats are stored',
    stateMsMax,
    async () => {
      const { creatable } = await ask<{ creatable: boolean }>('POST', '/campaigns/preview', body)
      return creatable || undefined
    },
    200,
  )
  return (await ask<{ campaign: Campaign }>('POST', '/campaigns', body)).campaign
}

/** From the list one action leads to why the third recipient gets no message yet. */
async function openByKeyboard({ page, campaign, ask }: Visit): Promise<void> {
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
  await page.keyboard.press('g')
  await page.keyboard.press('s')
  await page.getByRole('heading', { name: 'Campaigns' }).waitFor()
  const row = page.getByRole('row', { name: new RegExp(name) })
  await row.getByText('The campaign starts later.').waitFor()
  await keyboard.press(page, new RegExp(`^${name}$`))
  await page.getByRole('heading', { name }).waitFor()
  await page.locator('[data-recipient="2"]').getByText('The campaign starts later.').waitFor()
  assert.deepEqual(await shownFigures(page), await figuresOf(ask, campaign.id))
}

/** The number below each part of the bar. */
async function shownFigures(page: Page): Promise<Record<string, number>> {
  const terms = page.locator('dl > div')
  const texts = await terms.evaluateAll((all) =>
    all.map((each) => [each.querySelector('dt')?.textContent, each.querySelector('dd')?.textContent]),
  )
  return Object.fromEntries(texts.map(([label, count]) => [label, Number(count?.replaceAll(',', ''))]))
}

async function figuresOf(ask: Visit['ask'], id: string): Promise<Record<string, number>> {
  const { campaign } = await ask<{ campaign: Campaign }>('GET', `/campaigns/${id}?limit=1`)
  const { totals } = campaign
  const stopped = campaign.reporting.reduce((sum, { opted_out }) => sum + opted_out, 0)
  return {
    Replied: (totals.replied ?? 0) - stopped,
    'Asked to stop': stopped,
    'Done, no reply': totals.completed ?? 0,
    'Waiting for a follow-up': totals.waiting ?? 0,
    'Not written to yet': totals.queued ?? 0,
    Failed: totals.failed ?? 0,
    Ambiguous: totals.ambiguous ?? 0,
    Suppressed: totals.suppressed ?? 0,
    ...(totals.cancelled ? { Cancelled: totals.cancelled } : {}),
    ...(totals.submitting ? { 'Being sent': totals.submitting } : {}),
  }
}

/** By name, and what happened to the one; by status. */
async function findOne({ page }: Visit): Promise<void> {
  const rows = page.locator('[data-recipient]')
  const person = (await rows.nth(2).locator('bdi').first().textContent()) ?? ''
  await page.keyboard.press('/')
  await page.keyboard.type(person)
  await page.waitForURL((url) => url.searchParams.get('name') === person)
  await page.getByRole('button', { name: person }).first().waitFor()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Enter')
  await page.waitForURL((url) => url.searchParams.has('recipient'))
  await page.getByRole('link', { name: 'Open chat' }).waitFor()
  const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze()
  assert.deepEqual(
    violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`),
    [],
  )
  await page.keyboard.press('Escape')
  await page.waitForURL((url) => !url.searchParams.has('recipient'))
  await page.getByLabel('Find a person').fill('')
  await page.waitForURL((url) => !url.searchParams.has('name'))
  await page.getByRole('button', { name: /^Not yet \d/ }).click()
  await page.waitForURL((url) => url.searchParams.get('status') === 'queued')
  await rows.first().waitFor()
}

/** What another user does shows here, and the button is that of the present state. */
async function pauseAndResume({ page, ask, campaign }: Visit): Promise<void> {
  await keyboard.press(page, /^Pause$/)
  await page.getByRole('button', { name: 'Resume', exact: true }).waitFor()
  await page.locator('[data-recipient]').first().getByText('The campaign is paused.').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Pause', exact: true }).count(), 0)
  await ask('POST', `/campaigns/${campaign.id}/resume`)
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor()
  await page.locator('[data-recipient]').first().getByText('The campaign starts later.').waitFor()
}

async function cancelByName({ page, ask, campaign }: Visit): Promise<void> {
  await page.getByRole('button', { name: 'Cancel campaign' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText(/^3 people will not be written to\. No message is being sent/).waitFor()
  const button = dialog.getByRole('button', { name: 'Cancel campaign' })
  await dialog.getByLabel(/^Type its name/).fill('Spring lamps')
  assert.ok(await button.isDisabled())
  await dialog.getByLabel(/^Type its name/).fill(name)
  await button.click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByText('Cancelled', { exact: true }).first().waitFor()
  for (const gone of ['Pause', 'Resume', 'Cancel campaign']) {
    assert.equal(await page.getByRole('button', { name: gone, exact: true }).count(), 0, gone)
  }
  const { campaign: now } = await ask<{ campaign: Campaign }>('GET', `/campaigns/${campaign.id}?limit=1`)
  assert.equal(now.status, 'cancelled')
  const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
  assert.equal(over, 0, 'too wide')
}

/** The words of the service, as the terminal prints them. */
async function verify({ page, ask, campaign }: Visit): Promise<void> {
  const { checks } = await ask<{ checks: { detail: string }[] }>('GET', `/campaigns/${campaign.id}/verify`)
  await page.getByRole('button', { name: 'Check again' }).click()
  await page.getByRole('heading', { name: 'The records agree' }).waitFor()
  for (const { detail } of checks) await page.getByText(detail, { exact: true }).waitFor()
  assert.deepEqual(await shownFigures(page), await figuresOf(ask, campaign.id))
  const copy = await page.getByRole('link', { name: 'Start a copy' }).getAttribute('href')
  assert.match(copy ?? '', new RegExp(`/campaigns/new\\?copy=${campaign.id}$`))
}

/** The keyboard alone: the chart as a table, and its numbers as a file. */
async function countMessages({ page }: Visit): Promise<void> {
  await page.keyboard.press('ControlOrMeta+k')
  await page.getByRole('combobox', { name: 'Search or go to' }).waitFor()
  await page.keyboard.type('analytics')
  await page.getByRole('option', { name: /Analytics/, selected: true }).waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Analytics' }).waitFor()
  await page.getByRole('img', { name: /^Messages of 30 days\. Received \d/ }).waitFor()
  await keyboard.press(page, /^As a table$/)
  const table = page.getByRole('table', { name: 'Messages by day' })
  const cells = await table
    .locator('tbody tr')
    .evaluateAll((rows) =>
      rows.map((row) =>
        [...row.children].map((cell) => (cell.textContent ?? '').replaceAll(',', '')).join(','),
      ),
    )
  const download = page.waitForEvent('download')
  await keyboard.press(page, /^CSV$/)
  const path = await (await download).path()
  assert.equal(await readFile(path, 'utf8'), ['day,received,sent', ...cells, ''].join('\r\n'))
}
