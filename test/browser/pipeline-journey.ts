/**
 * Moves chats through the pipeline: by drag, by key, by tap, undone, seen by another user at once. An admin edits the
 * stages; a member on a narrow screen cannot.
 */
import assert from 'node:assert/strict'
import { AxeBuilder } from '@axe-core/playwright'
import type { BrowserContext, Locator, Page } from 'playwright-core'
import { until } from '../harness/process.ts'
import { setUp } from './approval-journey.ts'
import { type Demo, exampleChat } from './demo.ts'

const { account_id } = exampleChat
const stateMsMax = 40_000

interface Where {
  readonly workspace_id: string
  /** Of a member, at 320 px. */
  readonly other: BrowserContext
}

interface Visit {
  readonly owner: Page
  readonly member: Page
  readonly demo: Demo
  /** Reads and writes as the owner. */
  readonly ask: (method: string, path: string, data?: object) => Promise<unknown>
  readonly person: { readonly name: string; readonly chat_id: string }
}

export async function usePipeline(
  context: BrowserContext,
  demo: Demo,
  { workspace_id, other }: Where,
): Promise<void> {
  const api = `${demo.address}/dashboard/api`
  const ask: Visit['ask'] = async (method, path, data) => {
    const url = api + path.replace('/w/', `/w/${workspace_id}/`)
    const answer = await context.request.fetch(url, {
      method,
      headers: { origin: demo.address },
      ...(data && { data }),
    })
    assert.ok(answer.ok(), `${method} ${path}: ${answer.status()}`)
    return answer.json()
  }
  const person = await meet(demo, 'Ada Tallis')
  const [owner, member] = [await context.newPage(), await other.newPage()]
  const added = (await ask('POST', '/w/members', { email: 'cleo@acme.example', role: 'member' })) as {
    setup_link: string
  }
  await setUp(member, { ...demo, setup_link: added.setup_link }, 'a long sentence of another member')
  const path = `${demo.address}/dashboard/w/${workspace_id}/pipeline`
  await owner.goto(path)
  await member.goto(path)
  const visit = { owner, member, demo, ask, person }
  await drag(visit)
  await moveByKey(visit)
  await seeValues(visit)
  await seeTable(visit)
  await usePalette(visit)
  await editStages(visit)
  await onPhone(visit)
  await closeGate(visit)
  await seeEachOther(visit)
  await owner.close()
}

async function meet(demo: Demo, name: string): Promise<Visit['person']> {
  const { person_id } = (await demo.platform('addPerson', { name, behaviour: 'silent' })) as {
    person_id: number
  }
  await demo.platform('writeMessage', { account_id, person_id, text: 'Do you have it in blue?' })
  return { name, chat_id: `platform:chat:${person_id}` }
}

const stageOf = (page: Page, label: string): Locator => page.getByRole('region', { name: label, exact: true })
const cardIn = (page: Page, label: string, { name }: Visit['person']): Locator =>
  stageOf(page, label).getByRole('article').filter({ hasText: name })

/** What the service has, whatever a page shows. */
async function isIn({ ask, person }: Visit, stage_key: string): Promise<void> {
  await until(
    `${person.name} is in ${stage_key}`,
    stateMsMax,
    async () => {
      const { chat } = (await ask('GET', `/w/chats/${person.chat_id}?account_id=${account_id}`)) as {
        chat: { stage_key: string }
      }
      return chat.stage_key === stage_key || undefined
    },
    200,
  )
}

async function drag(visit: Visit): Promise<void> {
  const { owner, member, person } = visit
  const card = cardIn(owner, 'New', person)
  await card.waitFor()
  const hold = async () => {
    const [from, to] = [await card.boundingBox(), await stageOf(owner, 'Qualified').boundingBox()]
    assert.ok(from && to)
    await owner.mouse.move(from.x + 50, from.y + 30)
    await owner.mouse.down()
    await owner.mouse.move(to.x + 100, to.y + 120, { steps: 5 })
    await owner.locator('html.dragging').waitFor()
  }
  // Escape returns it to its place, and nothing opens.
  await hold()
  await owner.keyboard.press('Escape')
  await owner.mouse.up()
  await card.waitFor()
  await hold()
  await owner.mouse.up()
  await cardIn(owner, 'Qualified', person).waitFor()
  await owner.getByText(/^Moved .*Ada Tallis.* to Qualified$/).waitFor()
  assert.match(owner.url(), /\/pipeline$/)
  await isIn(visit, 'qualified')
  // The member's page shows it without a reload; its narrow screen shows one stage at a time.
  await member.getByRole('link', { name: /^Qualified/ }).click()
  await cardIn(member, 'Qualified', person).waitFor()
  await owner.keyboard.press('z')
  await cardIn(owner, 'New', person).waitFor()
  await isIn(visit, 'new')
  await cardIn(member, 'Qualified', person).waitFor({ state: 'detached' })
}

/** The keyboard alone: from card to card, into the menu, and on to the next card. */
async function moveByKey(visit: Visit): Promise<void> {
  const { owner, person } = visit
  await owner.keyboard.press('?')
  await owner.getByRole('dialog', { name: 'Keys' }).getByText('Go to the pipeline').waitFor()
  await owner.keyboard.press('Escape')
  await owner.getByRole('dialog').waitFor({ state: 'detached' })
  const link = cardIn(owner, 'New', person).getByRole('link')
  for (let presses = 0; !(await link.evaluate((each) => each === document.activeElement)); presses++) {
    assert.ok(presses < 20, 'J reaches the card')
    await owner.keyboard.press('j')
  }
  await owner.keyboard.press('m')
  await owner.getByRole('menuitem', { name: 'Contacted' }).waitFor()
  await seesNoBarrier(owner, '[role="menu"]')
  await owner.keyboard.press('2')
  await cardIn(owner, 'Contacted', person).waitFor()
  await isIn(visit, 'contacted')
  const isOnCard = () => document.activeElement?.closest('[data-stage="new"] [data-card]') !== null
  await until('the next card has the focus', stateMsMax, async () => {
    return (await owner.evaluate(isOnCard)) || undefined
  })
}

/** Only the card with the value stays, on the board and in the table, which shows it too. */
async function filterByValue(owner: Page, card: Locator): Promise<void> {
  const choose = (label: string) =>
    owner.getByRole('combobox', { name: 'Column', exact: true }).selectOption({ label })
  const count = async (each: Locator, wanted: number) =>
    until(`${wanted} are shown`, stateMsMax, async () => (await each.count()) === wanted || undefined)
  await choose('Plan is Studio')
  await count(owner.getByRole('article'), 1)
  await card.waitFor()
  await owner.getByRole('link', { name: 'Table' }).click()
  const rows = owner.getByRole('table', { name: 'Chats' }).getByRole('row')
  await count(rows, 2)
  await rows.last().getByText('Studio').waitFor()
  await owner.getByRole('link', { name: 'Board' }).click()
  await choose('Any column')
  await owner.waitForURL(/\/pipeline$/)
}

/** A value that another user sets appears on the card, and goes with its column. */
async function seeValues({ owner, ask, person }: Visit): Promise<void> {
  const { column } = (await ask('POST', '/w/columns', {
    name: 'Plan',
    type: 'select',
    options: [{ value: 'Studio', color: 'purple' }],
  })) as { column: { id: string } }
  const value = { column_id: column.id, value: ['Studio'] }
  await ask('POST', '/w/columns/set', { account_id, chat_id: person.chat_id, ...value })
  const card = cardIn(owner, 'Contacted', person)
  await card.getByText('Studio').waitFor()
  await filterByValue(owner, card)
  await ask('DELETE', `/w/columns/${column.id}`)
  await card.getByText('Studio').waitFor({ state: 'detached' })
}

/** In both themes, of what is open above the page: the page itself is checked with the others. */
async function seesNoBarrier(page: Page, within: string): Promise<void> {
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    assert.deepEqual(await barriers(page, within), [])
  }
}

async function barriers(page: Page, within: string): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page })
    .include(within)
    .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'])
    .setLegacyMode()
    .analyze()
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
}

async function seeTable(visit: Visit): Promise<void> {
  const { owner, person } = visit
  await owner.getByRole('link', { name: 'Table' }).click()
  const row = owner.getByRole('table', { name: 'Chats' }).getByRole('row').filter({ hasText: person.name })
  await row.getByText('Contacted').waitFor()
  await row.getByRole('button', { name: /^Contacted/ }).click()
  await owner.getByRole('menuitem', { name: 'Won' }).click()
  await row.getByText('Won').waitFor()
  await isIn(visit, 'won')
  await owner.getByRole('link', { name: /^Won/ }).click()
  await row.waitFor()
  await row.getByRole('link').click()
  await owner.getByRole('heading', { name: person.name }).waitFor()
  await owner.goBack()
  await owner.getByRole('link', { name: 'Board' }).click()
}

/** ⌘K: to a chat by its name, to a message by its words, to a page. */
async function usePalette({ owner, person }: Visit): Promise<void> {
  const find = async (text: string, option: RegExp) => {
    await owner.keyboard.press('ControlOrMeta+k')
    await owner.getByRole('combobox', { name: 'Search or go to' }).fill(text)
    await owner.getByRole('option', { name: option }).waitFor()
  }
  await find('tallis', /Ada Tallis/)
  await seesNoBarrier(owner, '[role="dialog"]')
  await owner.keyboard.press('Enter')
  await owner.getByRole('heading', { name: person.name }).waitFor()
  await find('have it in blue', /in blue/)
  await owner.getByRole('option', { name: /in blue/ }).click()
  await owner.waitForURL((url) => url.searchParams.has('message') && url.searchParams.has('chat'))
  await find('pipel', /^Pipeline G P/)
  await owner.keyboard.press('Enter')
  await owner.getByRole('heading', { name: 'Pipeline' }).waitFor()
  await owner.waitForURL(/\/pipeline$/)
}

async function editStages(visit: Visit): Promise<void> {
  const { owner, member, ask, person } = visit
  for (const name of ['Stages', 'Columns']) {
    assert.equal(await member.getByRole('button', { name, exact: true }).count(), 0, name)
  }
  assert.equal(await member.getByRole('button', { name: /^Edit the stage/ }).count(), 0)
  await owner.getByRole('button', { name: 'Stages', exact: true }).click()
  await owner.getByLabel('Name of the new stage').fill('In talks')
  await owner.getByRole('button', { name: 'Add stage' }).click()
  await owner.getByLabel('Name of the stage In talks').fill('Talking')
  await owner.keyboard.press('Enter')
  await owner.getByRole('button', { name: 'Move Talking up' }).click()
  await owner.getByLabel('Colour of Talking').selectOption('pink')
  await owner.getByLabel('Talking is a final stage').click()
  await owner.keyboard.press('Escape')
  await member.getByRole('link', { name: /^Talking/ }).waitFor()
  const made = await until(
    'the stage is pink and final, in the last place but one',
    stateMsMax,
    async () => {
      const { stages } = (await ask('GET', '/w/stages')) as {
        stages: { key: string; label: string; color: string; terminal: boolean }[]
      }
      const last = stages.at(-2)
      return last?.label === 'Talking' && last.color === 'pink' && last.terminal ? last : undefined
    },
    200,
  )
  await ask('POST', '/w/pipeline/move', { account_id, chat_id: person.chat_id, stage_key: made.key })
  await cardIn(owner, 'Talking', person).waitFor()
  await owner.getByRole('button', { name: 'Edit the stage Talking' }).click()
  await owner.getByRole('button', { name: 'Delete Talking' }).click()
  const dialog = owner.getByRole('dialog', { name: 'Delete “Talking”?' })
  await dialog.getByText('Its chat returns to “New”.').waitFor()
  await dialog.getByLabel(/^Type its name/).fill('Talking')
  await dialog.getByRole('button', { name: 'Delete stage' }).click()
  await owner.getByRole('dialog', { name: 'Stages' }).waitFor()
  await owner.keyboard.press('Escape')
  await cardIn(owner, 'New', person).waitFor()
  await member.getByRole('link', { name: /^Talking/ }).waitFor({ state: 'detached' })
}

async function onPhone(visit: Visit): Promise<void> {
  const { member, person } = visit
  await member.getByRole('link', { name: /^New/ }).click()
  await cardIn(member, 'New', person).getByRole('button', { name: /^Move/ }).tap()
  await member.getByRole('menuitem', { name: 'Lost' }).tap()
  await isIn(visit, 'lost')
  await member.getByRole('button', { name: /^Undo/ }).tap()
  await cardIn(member, 'New', person).waitFor()
  await isIn(visit, 'new')
  const over = await member.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
  assert.equal(over, 0, 'too wide')
}

/** The page says so without a reload, and the board returns without one. */
async function closeGate({ owner, member, ask, person }: Visit): Promise<void> {
  await ask('POST', '/gates/pipeline', { enabled: false })
  for (const [page, words] of [
    [owner, 'You can turn this on as the operator (“pipeline”).'],
    [member, 'This is turned off here. The operator can turn it on (“pipeline”).'],
  ] as const) {
    await page.getByRole('heading', { name: 'The pipeline is turned off here' }).waitFor()
    await page.getByText(words).waitFor()
  }
  await ask('POST', '/gates/pipeline', { enabled: true })
  await cardIn(owner, 'New', person).waitFor()
}

/** Two users in one chat: each sees that the other is there. */
async function seeEachOther({ owner, member, person }: Visit): Promise<void> {
  await cardIn(owner, 'New', person).getByRole('link').first().click()
  await owner.getByRole('heading', { name: person.name }).waitFor()
  await member.goto(owner.url())
  const status = owner.getByRole('status')
  await status.filter({ hasText: 'has it open' }).waitFor()
  await member.locator('[data-composer]').fill('I will answer')
  await status.filter({ hasText: 'is typing' }).waitFor()
}
