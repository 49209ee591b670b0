/** Browser notifications: enabled by a button, once per browser however many tabs, without a name or text unless asked for. */
import assert from 'node:assert/strict'
import type { BrowserContext, Page } from 'playwright-core'
import { until } from '../harness/process.ts'
import { type Demo, exampleChat } from './demo.ts'

const { account_id } = exampleChat
const stateMsMax = 40_000

interface Shown {
  readonly title: string
  readonly body: string
}

export async function seeNotifications(context: BrowserContext, demo: Demo): Promise<void> {
  await context.addInitScript(recordNotifications)
  const [one, two] = [await context.newPage(), await context.newPage()]
  const pages = [one, two]
  for (const page of pages) {
    await page.goto(`${demo.address}/dashboard/profile`)
    await page.getByRole('heading', { name: 'Notifications' }).waitFor()
  }
  // Whichever tab leads reads what is there before it notifies.
  const compared = Promise.race(pages.map((page) => page.waitForResponse(/\/inbox\?view=unread/)))
  await two.getByRole('button', { name: 'Enable notifications' }).click()
  await two.getByLabel('Messages in all chats').check()
  await compared
  const plain = await tell(pages, demo, { text: 'Is the green one left?', title: 'A new message' })
  assert.deepEqual([...new Set(plain.map(({ body }) => body))], [''])
  await two.getByLabel('Show names and texts').check()
  const told = await tell(pages, demo, { text: 'And the \u202eblue one?', title: 'Teller' })
  assert.deepEqual(told, [{ title: 'Teller', body: 'And the [U+202E]blue one?' }])
  await two.getByRole('button', { name: 'Turn off notifications' }).click()
  await two.getByRole('button', { name: 'Enable notifications' }).waitFor()
  for (const page of pages) await page.close()
}

/** Runs in the page: a headless browser shows none. */
function recordNotifications(): void {
  const shown: Shown[] = []
  class Recorded {
    static permission = 'granted'
    static requestPermission = async () => 'granted'
    constructor(title: string, { body }: { body: string }) {
      shown.push({ title, body })
    }
    close(): void {}
  }
  Object.assign(window, { Notification: Recorded, parleyShown: shown })
}

async function shownIn(pages: readonly Page[]): Promise<Shown[]> {
  const read = () => (window as unknown as { parleyShown: Shown[] }).parleyShown
  return (await Promise.all(pages.map((page) => page.evaluate(read)))).flat()
}

/** What every tab has shown with this title since: the demo's own people write too. */
async function tell(
  pages: readonly Page[],
  demo: Demo,
  { text, title }: { text: string; title: string },
): Promise<Shown[]> {
  const before = (await shownIn(pages)).length
  await write(demo, text)
  return until(`a notification says ${title}`, stateMsMax, async () => {
    const since = (await shownIn(pages)).slice(before)
    const titled = since.filter((each) => each.title === title)
    return titled.length > 0 ? titled : undefined
  })
}

let teller: number | undefined

async function write(demo: Demo, text: string): Promise<void> {
  if (teller === undefined) {
    const added = await demo.platform('addPerson', { name: 'Teller', behaviour: 'silent' })
    teller = (added as { person_id: number }).person_id
  }
  await demo.platform('writeMessage', { account_id, person_id: teller, text })
}
