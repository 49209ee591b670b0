/**
 * Answers chats in the browser: once each, whatever happens to the page in between. Then what goes with a chat: notes,
 * saved replies, an assignee, its stage; with the keyboard alone, and at 320 px.
 */
import assert from 'node:assert/strict'
import type { BrowserContext, Locator, Page } from 'playwright-core'
import { until } from '../harness/process.ts'
import { type Demo, exampleChat } from './demo.ts'
import { seeFiles } from './received-files.ts'

const { account_id } = exampleChat

/** A person who writes to us once and never reacts. */
export interface Correspondent {
  readonly person_id: number
  readonly name: string
  readonly chat_id: string
}

interface Visit {
  readonly context: BrowserContext
  readonly demo: Demo
  /** The address of the inbox. */
  readonly path: string
}

export async function useInbox(context: BrowserContext, demo: Demo, workspace_id: string): Promise<void> {
  const visit = { context, demo, path: `${demo.address}/dashboard/w/${workspace_id}/inbox` }
  const mara = await meet(demo, 'Mara Lind', 'Is the green one still there?')
  const page = await context.newPage()
  await page.goto(visit.path)
  await openWithoutTrace(page, visit, mara)
  await answerDespiteReload(page, visit, mara)
  await saysWhyItWaits(page, visit, mara)
  await sendFromTwoTabs(page, visit, mara)
  await getTextBack(page, visit, mara)
  await resolveAmbiguous(page, visit, mara)
  await closeByHand(page, visit, mara)
  await seeFiles(page, demo, mara.person_id)
  await keepNotes(page, mara)
  await moveAndUndo(page)
  await loseSession(page, visit)
  await page.close()
  await byKeyboard(visit)
  await goOnBelow(visit)
  await onPhone(visit)
}

async function meet(demo: Demo, name: string, text: string): Promise<Correspondent> {
  const { person_id } = (await demo.platform('addPerson', { name, behaviour: 'silent' })) as {
    person_id: number
  }
  await demo.platform('writeMessage', { account_id, person_id, text })
  return { person_id, name, chat_id: `platform:chat:${person_id}` }
}

const rowOf = (page: Page, { name }: Pick<Correspondent, 'name'>): Locator =>
  page.getByRole('list', { name: 'Chats' }).getByRole('link', { name }).first()
const composerOf = (page: Page): Locator => page.getByRole('textbox', { name: /^Answer/ })
/** Our message with this text, with its state below. */
const ownMessage = (page: Page, text: string): Locator =>
  page.getByRole('article', { name: 'Message from us' }).filter({ hasText: text })

async function timesSent(demo: Demo, text: string): Promise<number> {
  return (await demo.journal()).filter((each) => each === text).length
}

/** Opening sends no read receipt, and the chat stays unread. */
async function openWithoutTrace(page: Page, { demo }: Visit, person: Correspondent): Promise<void> {
  await rowOf(page, person).getByText('1 unread').waitFor()
  await rowOf(page, person).click()
  await page.getByRole('article', { name: 'Message from them' }).getByText('Is the green one').waitFor()
  await page.getByRole('region', { name: 'Messages' }).getByText('New', { exact: true }).waitFor()
  await rowOf(page, person).getByText('1 unread').waitFor()
  const { entries } = (await demo.platform('readJournal', {})) as {
    entries: { kind: string; chat_id: string }[]
  }
  const touched = entries.filter(({ kind, chat_id }) => kind === 'read_state' && chat_id === person.chat_id)
  assert.deepEqual(touched, [])
}

async function answerDespiteReload(page: Page, { demo }: Visit, person: Correspondent): Promise<void> {
  const text = 'It is. Shall I keep it for you?'
  await demo.platform('addFault', { on: 'send', fault: 'slow', seconds: 2, account_id })
  await composerOf(page).fill(text)
  await page.getByRole('button', { name: /^Send/ }).click()
  await ownMessage(page, text).getByText('Sending').waitFor()
  assert.equal(await composerOf(page).inputValue(), '')
  await page.reload()
  await ownMessage(page, text)
    .getByText(/Accepted/)
    .waitFor()
  assert.equal(await timesSent(demo, text), 1)
  // Answering marks it read.
  await rowOf(page, person).getByText('1 unread').waitFor({ state: 'detached' })
}

/** Without a network, and while Parley has a problem: the sentence is about what happens, and the message goes out once. */
async function saysWhyItWaits(page: Page, { context, demo }: Visit, person: Correspondent): Promise<void> {
  const text = `${person.name}, I am on the train.`
  await composerOf(page).fill(text)
  await page.getByText('Draft saved').waitFor()
  await context.setOffline(true)
  await page.keyboard.press('ControlOrMeta+Enter')
  await ownMessage(page, text)
    .getByText('You are offline. It goes out once you are back; it won’t be sent twice.')
    .waitFor()
  const problem = { code: 'store_unavailable', error: 'The database does not respond.' }
  await page.route('**/messages', (route) => route.fulfill({ status: 503, json: problem }))
  await context.setOffline(false)
  await ownMessage(page, text)
    .getByText('Parley has a problem. Trying again; it won’t be sent twice.')
    .waitFor()
  assert.equal(await timesSent(demo, text), 0)
  await page.unroute('**/messages')
  await ownMessage(page, text)
    .getByText(/Accepted/)
    .waitFor()
  assert.equal(await timesSent(demo, text), 1)
}

async function sendFromTwoTabs(page: Page, { context, demo }: Visit, person: Correspondent): Promise<void> {
  const text = 'Both lamps come on Tuesday.'
  await composerOf(page).fill(text)
  await page.getByText('Draft saved').waitFor()
  const second = await context.newPage()
  await second.goto(page.url())
  await until('the second tab has the draft', 20_000, async () => {
    return (await composerOf(second).inputValue()) === text || undefined
  })
  // The tab that comes later may have an empty field already: then its button does nothing.
  const press = (tab: Page) =>
    tab.getByRole('button', { name: /^Send/ }).evaluate((button: HTMLElement) => button.click())
  await Promise.all([page, second].map(press))
  for (const tab of [page, second]) {
    await ownMessage(tab, text)
      .getByText(/Accepted/)
      .waitFor()
    assert.equal(await composerOf(tab).inputValue(), '')
    assert.equal(await ownMessage(tab, text).count(), 1, person.name)
  }
  await second.close()
  assert.equal(await timesSent(demo, text), 1)
}

async function getTextBack(page: Page, { demo }: Visit, person: Correspondent): Promise<void> {
  const text = `${person.name}, this one is refused.`
  await demo.platform('addFault', { on: 'send', fault: 'refuse', error: 'blocked_by_person', account_id })
  await composerOf(page).fill(text)
  await page.keyboard.press('ControlOrMeta+Enter')
  await page.getByRole('alert').getByText('Not sent:').waitFor()
  await ownMessage(page, text).getByText('Refused:').waitFor()
  assert.equal(await composerOf(page).inputValue(), text)
  assert.equal(await timesSent(demo, text), 0)
  // The same text again is a new message.
  await page.keyboard.press('ControlOrMeta+Enter')
  await ownMessage(page, text)
    .getByText(/Accepted/)
    .waitFor()
  assert.equal(await timesSent(demo, text), 1)
}

/** The answer is lost and the platform shows the message later: the page shows it as accepted, and never sends it again. */
async function resolveAmbiguous(page: Page, { demo }: Visit, person: Correspondent): Promise<void> {
  const text = `${person.name}, the line breaks here.`
  await demo.platform('addFault', { on: 'send', fault: 'drop_after', account_id })
  await composerOf(page).fill(text)
  await page.keyboard.press('ControlOrMeta+Enter')
  await ownMessage(page, text)
    .getByText(/Accepted/)
    .waitFor({ timeout: 60_000 })
  assert.equal(await timesSent(demo, text), 1)
}

/** The platform fails and the message never appears: a person says what the phone shows. Neither answer sends anything. */
async function closeByHand(page: Page, { demo }: Visit, person: Correspondent): Promise<void> {
  for (const [button, recorded] of [
    ['I see it on the phone', 'A person recorded it as sent.'],
    ['It is not there', 'A person recorded it as not sent.'],
  ] as const) {
    const text = `${person.name}, answer: ${button}.`
    await demo.platform('addFault', { on: 'send', fault: 'unavailable', account_id })
    await composerOf(page).fill(text)
    await page.keyboard.press('ControlOrMeta+Enter')
    await ownMessage(page, text).waitFor()
    await page.getByRole('note').getByRole('button', { name: button }).click()
    await page.getByRole('note').getByText(recorded).waitFor()
    assert.equal(await page.getByRole('note').getByRole('button').count(), 0)
    assert.equal(await timesSent(demo, text), 0)
  }
}

async function keepNotes(page: Page, { name }: Correspondent): Promise<void> {
  await page.keyboard.press('n')
  await page.getByLabel('Note for the team').fill('She asked for two last year.')
  await page.getByRole('button', { name: /^Add note/ }).click()
  await page.getByRole('article', { name: 'Note' }).getByText('She asked for two').waitFor()
  await page.getByRole('button', { name: 'Saved replies' }).click()
  await page.getByRole('button', { name: 'New', exact: true }).click()
  await page.getByLabel('Title').fill('Opening hours')
  await page.getByLabel('Text of the reply').fill('We are open from nine to six.')
  await page.getByRole('button', { name: 'Save reply' }).click()
  await page.getByLabel('Text of the reply').waitFor({ state: 'detached' })
  await composerOf(page).press('/')
  await page.getByRole('combobox', { name: 'Find a saved reply' }).fill('opening')
  await page.getByRole('option', { name: /Opening hours/ }).waitFor()
  await page.keyboard.press('Enter')
  assert.equal(await composerOf(page).inputValue(), 'We are open from nine to six.')
  await composerOf(page).fill('')
  await page.getByRole('complementary').getByText(name).waitFor()
}

async function moveAndUndo(page: Page): Promise<void> {
  const side = page.getByRole('complementary', { name: 'About this chat' })
  const stage = side.getByLabel('Stage')
  const before = await stage.inputValue()
  await page.getByLabel('Move to a stage').selectOption({ index: 2 })
  await page.getByText(/^Moved to/).waitFor()
  assert.notEqual(await stage.inputValue(), before)
  await page.getByRole('button', { name: /^Undo/ }).click()
  await until('the stage is the old one', 10_000, async () => {
    return (await stage.inputValue()) === before || undefined
  })
  await side.getByLabel('Assignee').selectOption({ label: 'operator (you)' })
  await page.getByRole('status').getByText('Assigned to operator').waitFor()
  await page.getByRole('link', { name: /^Mine/ }).click()
  await page.getByRole('link', { name: /^Mine 1/ }).waitFor()
}

/** The session ends while the user types: once another tab has signed in, this one is back with its draft. */
async function loseSession(page: Page, { context }: Visit): Promise<void> {
  await composerOf(page).fill('Half a thought')
  await page.getByText('Draft saved').waitFor()
  const cookies = await context.cookies()
  await context.clearCookies()
  // A request of the page's own may notice it before this one: then the link is gone.
  const clicked = page.getByRole('link', { name: /^Unread/ }).click()
  clicked.catch(() => {})
  await page.waitForURL('**/sign-in?**')
  const back = new URL(page.url()).searchParams.get('return_to') ?? ''
  await context.addCookies(cookies)
  const other = await context.newPage()
  await other.goto(new URL('/dashboard/', page.url()).href)
  await page.waitForURL(new URL(back, page.url()).href)
  await other.close()
  await until('the draft is there', 20_000, async () => {
    return (
      (await composerOf(page)
        .inputValue()
        .catch(() => '')) === 'Half a thought' || undefined
    )
  })
  await composerOf(page).fill('')
}

/** No mouse: the newest chat, an answer, the list of keys. */
async function byKeyboard({ context, demo, path }: Visit): Promise<void> {
  const noor = await meet(demo, 'Noor Haddad', 'Can I come at ten?')
  const page = await context.newPage()
  await page.goto(path)
  await rowOf(page, noor).waitFor()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keys' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  while (!(await page.getByRole('heading', { name: noor.name, level: 2 }).isVisible())) {
    await page.keyboard.press('j')
    await page.getByRole('heading', { level: 2 }).first().waitFor()
  }
  await page.keyboard.press('r')
  await page.keyboard.type('Ten is fine. Jekyll and Ernie will be there.')
  await page.keyboard.press('ControlOrMeta+Enter')
  await ownMessage(page, 'Ten is fine.')
    .getByText(/Accepted/)
    .waitFor()
  assert.equal(await timesSent(demo, 'Ten is fine. Jekyll and Ernie will be there.'), 1)
  await page.keyboard.press('Escape')
  // Answering marks a chat as read.
  await rowOf(page, noor).getByText('1 unread').waitFor({ state: 'detached' })
  await page.keyboard.press('u')
  await rowOf(page, noor).getByText('1 unread').waitFor()
  await page.keyboard.press('z')
  await rowOf(page, noor).getByText('1 unread').waitFor({ state: 'detached' })
  await page.keyboard.press('Escape')
  await page.waitForURL((url) => !url.searchParams.has('chat'))
  await page.keyboard.press('g')
  await page.keyboard.press('a')
  await page.getByRole('heading', { name: 'Accounts' }).waitFor()
  await page.close()
}

/** A chat far down the list is answered, and with that the newest: the keys go on from the row where it stands. */
async function goOnBelow({ context, demo, path }: Visit): Promise<void> {
  const people: Correspondent[] = []
  for (let n = 1; n <= 14; n++) people.push(await meet(demo, `Row ${n}`, 'Is it my turn?'))
  const [, below, chosen, above] = people as [Correspondent, ...Correspondent[]]
  const page = await context.newPage()
  await page.goto(path)
  const row = rowOf(page, { name: 'Row 3' })
  await row.scrollIntoViewIfNeeded()
  await row.click()
  const text = 'From further down.'
  await composerOf(page).fill(text)
  await page.keyboard.press('ControlOrMeta+Enter')
  await ownMessage(page, text)
    .getByText(/Accepted/)
    .waitFor()
  await page.getByRole('button', { name: /^\d+ new$/ }).waitFor()
  await page.keyboard.press('Escape')
  for (const [key, person] of [
    ['j', below],
    ['k', chosen],
    ['k', above],
  ] as const) {
    await page.keyboard.press(key)
    await page.waitForURL((url) => url.searchParams.get('chat') === person?.chat_id)
  }
  assert.equal(await timesSent(demo, text), 1)
  await page.close()
}

/** One pane at a time, and nothing wider than the screen. */
async function onPhone({ context, demo, path }: Visit): Promise<void> {
  const person = await meet(demo, 'Ola '.repeat(49), 'Hello? '.repeat(200))
  const page = await context.newPage()
  await page.setViewportSize({ width: 320, height: 640 })
  await page.goto(path)
  const row = rowOf(page, { name: 'Ola Ola' })
  await row.waitFor()
  assert.equal((await row.boundingBox())?.height, 76)
  await row.click()
  await composerOf(page).fill('Yes?')
  await page.getByRole('button', { name: /^Send/ }).click()
  await ownMessage(page, 'Yes?')
    .getByText(/Accepted/)
    .waitFor()
  const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
  assert.equal(over, 0, 'too wide')
  await page.getByRole('button', { name: 'About this chat' }).click()
  await page.getByRole('dialog').getByLabel('Assignee').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: 'Back to the chats' }).click()
  await row.waitFor()
  assert.equal(await timesSent(demo, 'Yes?'), 1, person.name)
  await page.close()
}
