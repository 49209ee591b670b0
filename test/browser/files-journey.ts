/** Files of an answer: dropped, pasted, chosen and removed by keyboard, sent in their order and each once, whatever happens. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { AxeBuilder } from '@axe-core/playwright'
import type { BrowserContext, Locator, Page } from 'playwright-core'
import { until } from '../harness/process.ts'
import { press } from './by-keyboard.ts'
import { type Demo, exampleChat } from './demo.ts'
import { png } from './received-files.ts'

const stateMsMax = 120_000

export async function answerWithFiles(
  context: BrowserContext,
  demo: Demo,
  workspace_id: string,
): Promise<void> {
  const { person_id } = (await demo.platform('addPerson', { name: 'Ines Roth', behaviour: 'silent' })) as {
    person_id: number
  }
  const chat_id = `platform:chat:${person_id}`
  await demo.platform('writeMessage', {
    account_id: exampleChat.account_id,
    person_id,
    text: 'Do you have pictures?',
  })
  const page = await context.newPage()
  const path = `${demo.address}/dashboard/w/${workspace_id}/inbox`
  await page.goto(`${path}?chat=${encodeURIComponent(chat_id)}&of=${exampleChat.account_id}`)
  await page.getByRole('article', { name: 'Message from them' }).first().waitFor()
  await keepPage(page)
  await dropBesideText(page)
  await dropAndPaste(page)
  await removeByKeyboard(page)
  await sendDespiteReload(page, demo, chat_id)
  await getRefusedBack(page, demo, chat_id)
  await page.close()
}

const files = (page: Page): Locator => page.getByRole('list', { name: 'Files' })
const composer = (page: Page): Locator => page.getByRole('textbox', { name: /^Answer/ })
const removeButtons = (page: Page): Locator => files(page).getByRole('button', { name: /^Remove / })

interface Given {
  readonly name: string
  readonly type?: string
  readonly bytes?: number
}

/** What a browser tells a page when files are dragged or pasted. Returns whether the page took it over. */
function give(target: Locator, kind: string, given: readonly Given[]): Promise<boolean> {
  return target.evaluate(
    (element, { kind, given, png }) => {
      const data = new DataTransfer()
      const pixels = Uint8Array.from(atob(png), (char) => char.charCodeAt(0))
      for (const { name, type = 'image/png', bytes } of given) {
        // Behind its end a picture may have more.
        const content = bytes === undefined ? new Blob([pixels, name]) : new Uint8Array(bytes)
        data.items.add(new File([content], name, { type }))
      }
      const event =
        kind === 'paste'
          ? new ClipboardEvent(kind, { clipboardData: data, bubbles: true, cancelable: true })
          : new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true })
      return !element.dispatchEvent(event)
    },
    { kind, given, png },
  )
}

/** Beside the chat a browser would open the file in place of the page. */
async function keepPage(page: Page): Promise<void> {
  const one = [{ name: 'lamp.png' }]
  for (const place of [page.locator('body'), page.getByRole('list', { name: 'Chats' })]) {
    assert.ok(await give(place, 'dragover', one), 'the page takes over a file that is dragged')
    assert.ok(await give(place, 'drop', one), 'the page takes over a file that is dropped')
  }
  assert.equal(await files(page).count(), 0)
}

async function findNothing(page: Page): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze()
  assert.deepEqual(
    violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`),
    [],
  )
}

/** What is dropped on the messages joins the text that stands in the composer, also in the store. */
async function dropBesideText(page: Page): Promise<void> {
  const text = 'Hello there'
  await composer(page).fill(text)
  await page.getByText('Draft saved').waitFor()
  // Opening and closing a note changes nothing about it.
  await page.getByRole('button', { name: 'Write a note' }).click()
  await page.getByLabel('Note for the team').press('Escape')
  await give(page.getByRole('region', { name: 'Messages' }), 'drop', [{ name: 'lamp.png' }])
  for (const isReloaded of [false, true]) {
    await files(page).getByText('lamp.png').waitFor()
    assert.equal(await composer(page).inputValue(), text)
    await page.getByText('Draft saved').waitFor()
    if (!isReloaded) await page.reload()
  }
  await removeButtons(page).click()
  await composer(page).fill('')
}

async function dropAndPaste(page: Page): Promise<void> {
  const messages = page.getByRole('region', { name: 'Messages' })
  const target = page.getByText('Drop to attach to your answer')
  await give(messages, 'dragenter', [{ name: '1.png' }])
  await target.waitFor()
  await findNothing(page)
  await give(target.locator('..'), 'dragleave', [{ name: '1.png' }])
  await target.waitFor({ state: 'detached' })
  // While a note is written, the files belong to the answer.
  await page.getByRole('button', { name: 'Write a note' }).click()
  await give(messages, 'dragenter', [{ name: '1.png' }])
  await give(target.locator('..'), 'drop', [
    { name: '1.png' },
    { name: 'price list.pdf', type: 'application/pdf', bytes: 2_500 },
    { name: 'film.mov', type: 'video/quicktime', bytes: 26_214_401 },
    { name: 'nothing.txt', type: 'text/plain', bytes: 0 },
  ])
  await target.waitFor({ state: 'detached' })
  await files(page).getByText('Not attached. This file is larger than 25 MiB.').waitFor()
  await files(page).getByText('Not attached. This file is empty.').waitFor()
  await files(page).getByText('2.5 kB').waitFor()
  await until('a picture is drawn small', stateMsMax, () =>
    files(page)
      .locator('canvas')
      .evaluate(
        (each: HTMLCanvasElement) => each.getContext('2d')?.getImageData(36, 36, 1, 1).data[3] === 255,
      ),
  )
  await showSign(page, messages)
  assert.ok(await give(composer(page), 'paste', [{ name: 'image.png' }, { name: 'image.png' }]))
  await page.getByText('4 files attached').waitFor({ state: 'attached' })
  await findNothing(page)
}

/** Chromium knows no HEIC. */
async function showSign(page: Page, messages: Locator): Promise<void> {
  await give(messages, 'drop', [{ name: 'holiday.heic', type: 'image/heic', bytes: 500 }])
  const row = files(page).getByRole('listitem').filter({ hasText: 'holiday.heic' })
  await row.locator('svg.lucide-image-off').waitFor()
  assert.equal(await row.locator('canvas').count(), 0)
  await page.getByRole('button', { name: 'Remove holiday.heic' }).click()
  await row.waitFor({ state: 'detached' })
}

/** The focus stays among the files, and ends in the text. */
async function removeByKeyboard(page: Page): Promise<void> {
  const chooser = page.waitForEvent('filechooser')
  await press(page, page.getByRole('button', { name: 'Attach files' }), 'Enter')
  const chosen = Array.from({ length: 8 }, (_, n) => ({
    name: `${n}.txt`,
    mimeType: 'text/plain',
    buffer: Buffer.from(`${n}`),
  }))
  await (await chooser).setFiles(chosen)
  await files(page).getByText('At most 10 files go at once. Send these first.').first().waitFor()
  assert.equal(await removeButtons(page).count(), 10)
  await composer(page).focus()
  await press(page, removeButtons(page).nth(4), 'Enter')
  // Ten, and two that were not taken.
  for (let left = 11; left > 0; left--) {
    await until(`${left} are left`, stateMsMax, async () => {
      return (await files(page).getByRole('button').count()) === left || undefined
    })
    await page.keyboard.press('Enter')
  }
  await files(page).waitFor({ state: 'detached' })
  assert.ok(await composer(page).evaluate((each) => each === document.activeElement))
}

/** The names of the files that the platform has accepted in this chat, in their order. */
async function accepted(demo: Demo, chat_id: string): Promise<string[]> {
  const { entries } = (await demo.platform('readJournal', {})) as {
    entries: { chat_id: string; file_sha256: string | null; text: string | null }[]
  }
  return entries.flatMap(({ file_sha256, text, ...entry }) => {
    const name = names.find((each) => hashOf(each) === file_sha256)
    return entry.chat_id === chat_id && file_sha256 !== null ? [`${name}: ${text ?? ''}`] : []
  })
}

/** Of the picture that has this name. */
function hashOf(name: string): string {
  return createHash('sha256').update(Buffer.from(png, 'base64')).update(name).digest('hex')
}

const names = ['a', 'b', 'c', 'd', 'e', 'f'].map((letter) => `${letter}.png`)
const named = (from: number, to: number) => names.slice(from, to).map((name) => ({ name }))

async function sendDespiteReload(page: Page, demo: Demo, chat_id: string): Promise<void> {
  await demo.platform('addFault', {
    on: 'send',
    fault: 'slow',
    seconds: 2,
    account_id: exampleChat.account_id,
  })
  await composer(page).fill('Here they are.')
  await give(composer(page), 'paste', named(0, 3))
  await page.getByText('Draft saved').waitFor()
  // A reload keeps them.
  await page.reload()
  await page.getByText('3 files attached').waitFor({ state: 'attached' })
  await composer(page).press('ControlOrMeta+Enter')
  await page.getByText('Sending file 1 of 3').waitFor()
  await files(page).waitFor({ state: 'detached' })
  await page.reload()
  await until(
    'all are sent',
    stateMsMax,
    async () => (await accepted(demo, chat_id)).length >= 3 || undefined,
  )
  await page.getByText('Sending file').waitFor({ state: 'detached' })
  assert.deepEqual(await accepted(demo, chat_id), ['a.png: Here they are.', 'b.png: ', 'c.png: '])
}

/** What the service does not take says so beside the file, and what follows waits for the person. */
async function getRefusedBack(page: Page, demo: Demo, chat_id: string): Promise<void> {
  let asked = 0
  const why = 'Files of the media type image/png are not accepted in attachments.'
  await page.route('**/messages', (route) => {
    asked += route.request().method() === 'POST' ? 1 : 0
    return asked === 2
      ? route.fulfill({ status: 415, json: { code: 'unsupported_attachment', error: why } })
      : route.continue()
  })
  await give(composer(page), 'paste', named(3, 6))
  await composer(page).press('ControlOrMeta+Enter')
  await files(page).getByText(why).waitFor()
  assert.deepEqual(await removeButtons(page).evaluateAll((all) => all.map(({ ariaLabel }) => ariaLabel)), [
    'Remove e.png',
    'Remove f.png',
  ])
  await findNothing(page)
  await composer(page).press('ControlOrMeta+Enter')
  await until(
    'all are sent',
    stateMsMax,
    async () => (await accepted(demo, chat_id)).length >= 6 || undefined,
  )
  assert.deepEqual((await accepted(demo, chat_id)).slice(3), ['d.png: ', 'e.png: ', 'f.png: '])
  await page.unroute('**/messages')
}
