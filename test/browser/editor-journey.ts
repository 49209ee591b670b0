/**
 * Writes a campaign with a variant and a follow-up, leaves out who cannot be written to, starts it while the answer is lost
 * and the page reloaded, and moves the clock to its end: the platform has exactly what the preview showed. Then one for a
 * pasted list, by keyboard at 320 px.
 */
import assert from 'node:assert/strict'
import { AxeBuilder } from '@axe-core/playwright'
import { type APIRequestContext, type BrowserContext, type Page, request } from 'playwright-core'
import { until } from '../harness/process.ts'
import { press, type } from './by-keyboard.ts'
import { type Demo, exampleChat } from './demo.ts'
import { widthOver } from './every-page.ts'
import { loseAnswer } from './lost-answer.ts'

const stateMsMax = 60_000
/** Between two questions: a session has 600 a minute. */
const askMs = 200
const actionsMax = 15
const name = 'Winter reading lamps'
const first = 'Hello [[name|there]], we made a reading lamp.'
const variants = ['It comes in blue.', 'Shall I keep one, [[name]]?']

export interface Visit {
  readonly page: Page
  readonly demo: Demo
  readonly workspace_id: string
  /** Reads and writes as the owner. */
  readonly ask: <T>(method: string, path: string, data?: object) => Promise<T>
  readonly signInAgain: () => Promise<void>
}

/** What it asks itself has a session of its own: each has 600 requests a minute, and a journey asks often. */
export async function visitAsOwner(context: BrowserContext, demo: Demo, password: string): Promise<Visit> {
  const { address } = demo
  const headers = { origin: address }
  const own = await request.newContext()
  const signIn = async (asking: APIRequestContext) => {
    const data = { email: 'operator@localhost', password }
    const answer = await asking.post(`${address}/dashboard/api/sign-in`, { headers, data })
    assert.ok(answer.ok(), `sign-in: ${answer.status()}`)
  }
  await signIn(own)
  const session = await own.get(`${address}/dashboard/api/session`)
  const { workspaces } = (await session.json()) as { workspaces: { id: string }[] }
  const workspace_id = workspaces[0]?.id ?? ''
  const ask: Visit['ask'] = async (method, path, data) => {
    const url = `${address}/dashboard/api/w/${workspace_id}${path}`
    const key = { 'idempotency-key': crypto.randomUUID() }
    const answer = await own.fetch(url, { method, headers: { ...headers, ...key }, ...(data && { data }) })
    assert.ok(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`)
    return answer.json()
  }
  const signInAgain = async () => {
    await signIn(own)
    await signIn(context.request)
  }
  return { page: await context.newPage(), demo, workspace_id, ask, signInAgain }
}

export async function writeCampaigns(visit: Visit): Promise<void> {
  const { page, demo } = visit
  await fillStage(visit)
  await page.goto(`${demo.address}/dashboard/`)
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
  const actions = await write(visit)
  assert.ok(actions <= actionsMax, `${actions} actions`)
  const shown = await readPreview(page)
  await loseAccount(visit)
  await startOnce(visit)
  await compareWithPlatform(visit, shown)
  await copyAndDiscard(visit)
  await byKeyboard(visit)
}

/** Three people in the stage "Qualified" who can be written to, and nine chats that cannot. */
async function fillStage({ demo, ask }: Visit): Promise<void> {
  const { accounts } = await ask<{ accounts: { id: string }[] }>('GET', '/accounts')
  const other = accounts.find(({ id }) => id !== exampleChat.account_id)?.id ?? ''
  const people = [
    { name: 'Ada Tallis', account_id: exampleChat.account_id, text: 'Do you have it in blue?' },
    { name: 'Ben Okoro', account_id: exampleChat.account_id, text: 'What does it cost?' },
    { name: 'Cleo Brandt', account_id: other, text: 'Is it heavy?' },
    ...['Dora Fink', 'Emil Roth', 'Finn Aas', 'Gus Weil', 'Hana Ito', 'Ines Lobo', 'Jon Kask', 'Kim Ode'].map(
      (name, at) => ({ name, account_id: at % 2 === 0 ? exampleChat.account_id : other, text: 'STOP' }),
    ),
  ]
  const chats: { account_id: string; chat_id: string }[] = []
  for (const { name, account_id, text } of people) {
    const { person_id } = (await demo.platform('addPerson', { name, behaviour: 'silent' })) as {
      person_id: number
    }
    await demo.platform('writeMessage', { account_id, person_id, text })
    chats.push({ account_id, chat_id: `platform:chat:${person_id}` })
  }
  const list = await ask<{ chats: { id: string; account_id: string }[] }>('GET', '/chats?limit=100')
  const group = list.chats.find(({ id }) => id.startsWith('platform:chat:-'))
  assert.ok(group, 'the demo has a group')
  chats.push({ account_id: group.account_id, chat_id: group.id })
  for (const chat of chats) {
    await until(
      'the chat is there',
      stateMsMax,
      async () => {
        const moved = await ask('POST', '/pipeline/move', { ...chat, stage_key: 'qualified' }).catch(
          () => undefined,
        )
        return moved ? true : undefined
      },
      askMs,
    )
  }
}

/** From the demo's home to an open start. Returns how many actions it took. */
async function write({ page }: Visit): Promise<number> {
  let actions = 0
  const act = async (work: Promise<unknown>) => {
    await work
    actions++
  }
  const start = page.getByRole('button', { name: /^Start with/ })
  await act(page.getByRole('link', { name: 'Campaigns', exact: true }).click())
  await act(page.getByRole('link', { name: 'New campaign' }).first().click())
  await act(page.getByLabel('Name of the campaign').fill(name))
  await act(page.getByLabel('Stage').selectOption('qualified'))
  await act(page.getByLabel('First message', { exact: true }).fill(first))
  await act(page.getByRole('button', { name: 'Follow-up', exact: true }).click())
  await act(page.getByLabel('Follow-up 1', { exact: true }).fill(variants[0] ?? ''))
  await act(page.getByRole('button', { name: 'Add a variant to Follow-up 1' }).click())
  await act(page.getByLabel('Follow-up 1, variant B').fill(variants[1] ?? ''))
  await page.getByText('9 of 12 cannot be written to.').waitFor()
  assert.ok(await start.isDisabled())
  await until('axe finds nothing', stateMsMax, async () => {
    const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze()
    return violations.length === 0 || undefined
  })
  await act(page.getByRole('button', { name: 'Leave these 9 out' }).click())
  await page.getByText(/From Sales, Support, first/).waitFor()
  assert.equal(await start.textContent(), 'Start with 3 people')
  // What was typed is kept, and a text that was not previewed cannot be started.
  const text = page.getByLabel('First message', { exact: true })
  await text.fill(`${first} [[nobody]]`)
  await page.getByText('[[nobody]] is not a placeholder here. Use [[name]] or [[username]].').waitFor()
  assert.ok(await start.isDisabled())
  await text.fill(first)
  await page.reload()
  await page.getByText(/From Sales, Support, first/).waitFor()
  assert.equal(await page.getByLabel('Name of the campaign').inputValue(), name)
  return actions + 1
}

interface ShownMessage {
  readonly account: string
  readonly day: string
  readonly texts: readonly string[]
}

/** Every message that the preview shows, of each recipient. */
async function readPreview(page: Page): Promise<ShownMessage[]> {
  const shown: ShownMessage[] = []
  const pane = page.getByRole('complementary', { name: 'What will happen' })
  for (let at = 1; at <= 3; at++) {
    await pane.getByText(`${at} of 3`, { exact: true }).waitFor()
    for (const message of await pane.getByRole('list').last().getByRole('listitem').all()) {
      const [, day = '', account = ''] =
        /^(\w+ \d+ \w+), [\d:]+[^,]*, from (\w+)/.exec((await message.locator('p').textContent()) ?? '') ?? []
      shown.push({ day, account, texts: await message.locator('bdi').allTextContents() })
    }
    if (at < 3) await pane.getByRole('button', { name: 'The next recipient' }).click()
  }
  return shown
}

/** An account that lost its login between preview and start: the refusal, and a new preview. */
async function loseAccount({ page, ask }: Visit): Promise<void> {
  const start = page.getByRole('button', { name: /^Start with/ })
  await ask('POST', `/accounts/${exampleChat.account_id}/disable`)
  await start.click()
  await page.getByText('Nothing was started. Your draft is kept.').waitFor()
  await page.getByText('2 of 3 cannot be written to.').waitFor()
  assert.ok(await start.isDisabled())
  await ask('POST', `/accounts/${exampleChat.account_id}/enable`)
  await until(
    'the account is ready',
    stateMsMax,
    async () => {
      const { accounts } = await ask<{ accounts: { id: string; status: string }[] }>('GET', '/accounts')
      return accounts.find(({ id }) => id === exampleChat.account_id)?.status === 'READY' || undefined
    },
    askMs,
  )
  await page.reload()
  await page.getByText(/From Sales, Support, first/).waitFor()
}

/** The service creates it, its answer is lost, the page is reloaded: the same key finds the campaign. */
async function startOnce({ page, ask }: Visit): Promise<void> {
  const send = () => page.getByRole('button', { name: 'Start with 3 people' }).dblclick()
  await loseAnswer(page, { path: '/campaigns', send, reaches: /\/campaigns\/[0-9a-f-]{36}$/ })
  await page.getByRole('heading', { name, exact: true }).waitFor()
  const { campaigns } = await ask<{ campaigns: { name: string | null }[] }>('GET', '/campaigns')
  assert.equal(campaigns.filter((each) => each.name === name).length, 1)
}

/** The clock that moved has ended the session too. */
async function compareWithPlatform(
  { demo, ask, signInAgain }: Visit,
  shown: readonly ShownMessage[],
): Promise<void> {
  const { accounts } = await ask<{ accounts: { id: string; name: string }[] }>('GET', '/accounts')
  const { campaigns } = await ask<{ campaigns: { id: string; name: string | null; status: string }[] }>(
    'GET',
    '/campaigns',
  )
  const id = campaigns.find((each) => each.name === name)?.id
  await demo.advance(3 * 86_400)
  await signInAgain()
  await until(
    'the campaign is completed',
    stateMsMax,
    async () => {
      const { campaign } = await ask<{ campaign: { status: string } }>('GET', `/campaigns/${id}`)
      return campaign.status === 'completed' || undefined
    },
    askMs,
  )
  const { entries } = (await demo.platform('readJournal', {})) as {
    entries: { account_id: string; text: string | null; at: string }[]
  }
  const day = new Intl.DateTimeFormat('en-GB', {
    timeZone: 'UTC',
    weekday: 'short',
    day: 'numeric',
    month: 'short',
  })
  const known = new Set(shown.flatMap(({ texts }) => texts))
  const sent = entries
    .filter(({ text }) => text !== null && known.has(text))
    .map(({ account_id, text, at }) => ({
      account: accounts.find((each) => each.id === account_id)?.name,
      day: day.format(new Date(at)).replace(',', ''),
      text,
    }))
  assert.equal(shown.length, 6)
  assert.equal(sent.length, 6)
  // Each message that was shown was sent once: as one of its texts, from its account, on its day.
  for (const message of shown) {
    const at = sent.findIndex(
      (each) =>
        message.texts.includes(each.text ?? '') &&
        each.account === message.account &&
        each.day === message.day,
    )
    assert.ok(at >= 0, `${JSON.stringify(message)} in ${JSON.stringify(sent)}`)
    sent.splice(at, 1)
  }
}

/** A copy has the texts of the other campaign, and nobody in it. What is discarded can be put back. */
async function copyAndDiscard({ page, demo, workspace_id, ask }: Visit): Promise<void> {
  const { campaigns } = await ask<{ campaigns: { id: string; name: string | null }[] }>('GET', '/campaigns')
  const id = campaigns.find((each) => each.name === name)?.id
  await page.goto(`${demo.address}/dashboard/w/${workspace_id}/campaigns/new?copy=${id}`)
  await page.waitForURL(/\/campaigns\/new$/)
  const text = page.getByLabel('First message', { exact: true })
  const isCopied = async () => (await text.inputValue()) === first || undefined
  await until('the text is copied', stateMsMax, isCopied)
  await page.getByRole('button', { name: 'Start with 0 people' }).waitFor()
  await page.getByRole('button', { name: 'Discard' }).click()
  await page.getByRole('button', { name: 'Put it back' }).click()
  await until('the text is back', stateMsMax, isCopied)
  await page.getByRole('button', { name: 'Discard' }).click()
  await page.getByText('The draft is gone.').waitFor()
}

/** A pasted list, by keyboard alone, on the narrowest screen. */
const scientific = 'is scientific notation, in which a spreadsheet drops digits'

/** What people paste from a spreadsheet: a header is nobody, and one separator holds for the whole list. */
async function pasteTables(page: Page): Promise<void> {
  const tables = [
    { text: 'username,name\n@ines_k,Ines', contacts: '1 contact of at most 5,000' },
    {
      text: 'phone;name\n491701234567;Ines\n491701234568;"Jonas; B."',
      contacts: '2 contacts of at most 5,000',
    },
    { text: 'platform_id\tname\n1001\tInes', contacts: '1 contact of at most 5,000' },
    {
      text: 'phone;name\n4,91701E+11;Ines\n491701234567;Jo',
      contacts: '1 contact of at most 5,000',
      bad: scientific,
    },
    { text: '4,91701E+11;Name', contacts: '0 contacts of at most 5,000', bad: scientific },
  ]
  for (const { text, contacts, bad } of tables) {
    await page.getByLabel('Contacts, one a line').fill(text)
    await page.getByText(contacts, { exact: true }).waitFor()
    const skipped = await page.getByRole('list', { name: 'Lines that are no contacts' }).allInnerTexts()
    assert.equal(skipped.length, bad === undefined ? 0 : 1, `${text}: ${skipped.join()}`)
    if (bad !== undefined) assert.ok(skipped.join().includes(bad), skipped.join())
  }
  await page.getByLabel('Contacts, one a line').fill('')
}

async function byKeyboard({ page, demo, workspace_id, ask }: Visit): Promise<void> {
  await demo.platform('addPerson', { name: 'Nils Aster', username: 'nils_aster', behaviour: 'silent' })
  await page.setViewportSize({ width: 320, height: 720 })
  await page.goto(`${demo.address}/dashboard/w/${workspace_id}/campaigns/new`)
  await press(page, page.getByRole('button', { name: 'paste a list' }), 'Enter')
  await pasteTables(page)
  await type(page, page.getByLabel('Contacts, one a line'), '@nils_aster, Nils\n\n@NILS_aster\np\u0430vel')
  await page.getByText('2 lines are not a contact.').waitFor()
  await press(page, page.getByRole('button', { name: 'Remove these 2 lines' }), 'Enter')
  await press(page, page.getByRole('checkbox', { name: 'Sales' }), 'Space')
  await type(page, page.getByLabel('First message', { exact: true }), 'Hello ')
  await press(page, page.getByRole('button', { name: 'Name', exact: true }), 'Enter')
  await until('the caret is behind the placeholder', stateMsMax, async () => {
    const value = await page.getByLabel('First message', { exact: true }).inputValue()
    const focused = await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))
    return (value === 'Hello {{name|there}}' && focused === 'First message') || undefined
  })
  await page.getByText(/From Sales, first/).waitFor()
  assert.equal(await widthOver(page), 0, 'too wide')
  await press(page, page.getByRole('button', { name: 'Start with 1 person' }), 'Enter')
  await page.waitForURL(/\/campaigns\/[0-9a-f-]{36}$/)
  const { campaigns } = await ask<{ campaigns: { kind: string; message_text: string }[] }>(
    'GET',
    '/campaigns',
  )
  assert.equal(campaigns.filter((each) => each.message_text === 'Hello {{name|there}}').length, 1)
}
