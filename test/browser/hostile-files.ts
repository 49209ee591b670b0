/** Received files that are pages or programs, or pretend to be something else: opened, framed or loaded, none runs. */
import assert from 'node:assert/strict'
import type { BrowserContext, Page } from 'playwright-core'
import { until } from '../harness/process.ts'
import { otherSide } from '../platform/sandbox-fixture.ts'
import { type Demo, exampleChat } from './demo.ts'

const { account_id } = exampleChat
/** What a script does that runs: the service's log would have it, and this test sees it. */
const ran = '/parley-ran'
const code = `fetch('${ran}')`
const markup = `<!doctype html><img src=x onerror="${code}"><script>${code}</script>`
const drawing = `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" onload="${code}"><script>${code}</script></svg>`
const pngHead = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')

const files = [
  { kind: 'file', file_name: 'page.html', media_type: 'text/html', data: Buffer.from(markup) },
  { kind: 'photo', file_name: 'drawing.svg', media_type: 'image/svg+xml', data: Buffer.from(drawing) },
  { kind: 'photo', file_name: 'photo.png', media_type: 'image/png', data: Buffer.from(markup) },
  {
    kind: 'photo',
    file_name: 'photo.html',
    media_type: 'image/png',
    data: Buffer.concat([pngHead, Buffer.from(markup)]),
  },
  { kind: 'photo', file_name: 'both.gif', media_type: 'image/gif', data: Buffer.from(`GIF89a=0;${code}`) },
  { kind: 'video', file_name: 'clip.mp4', media_type: 'video/mp4', data: Buffer.from(drawing) },
  { kind: 'voice', file_name: 'voice.js', media_type: 'audio/ogg', data: Buffer.from(`OggS=0;${code}`) },
]

export async function openHostileFiles(
  context: BrowserContext,
  demo: Demo,
  workspace_id: string,
): Promise<number> {
  const page = await context.newPage()
  const seen: string[] = []
  context.on('request', (request) => {
    if (request.url().endsWith(ran)) seen.push(request.url())
  })
  const people = otherSide(demo.platform)
  const person_id = await people.addPerson({ name: 'Files' })
  const chat = `platform:chat:${person_id}`
  const addresses: string[] = []
  for (const { data, ...facts } of files) {
    const file = { ...facts, data: data.toString('base64') }
    const written = await demo.platform('writeMessage', { account_id, person_id, file })
    const { message_id } = written as { message_id: string }
    const of = `/chats/${chat}/messages/${message_id}/attachments/0`
    addresses.push(`${demo.address}/dashboard/api/w/${workspace_id}${of}?account_id=${account_id}`)
  }
  for (const address of addresses) {
    await until(
      `${address} is there`,
      20_000,
      async () => (await context.request.get(address)).ok() || undefined,
    )
    await open(page, address)
  }
  await page.goto(`${demo.address}/dashboard/w/${workspace_id}/inbox?chat=${chat}&of=${account_id}`)
  await page.getByText('page.html').waitFor()
  for (const address of addresses) await embed(page, address)
  assert.deepEqual(seen, [])
  // Without this the test could not fail.
  await page.evaluate((path) => fetch(path), ran)
  assert.equal(seen.length, 1)
  await page.close()
  return addresses.length
}

/** In a tab, as a user does who follows the link. Most of them are only saved. */
async function open(page: Page, address: string): Promise<void> {
  const download = page.waitForEvent('download', { timeout: 2_000 }).catch(() => undefined)
  await page.goto(address).catch((error: Error) => {
    if (!/Download is starting|ERR_ABORTED/.test(error.message)) throw error
  })
  if (new URL(page.url()).pathname.startsWith('/dashboard/api/')) return
  await download
}

/** As a page of ours would after an injection: as a script, in a frame, as an object. */
async function embed(page: Page, address: string): Promise<void> {
  await page.evaluate(async (source) => {
    const settled = (element: HTMLElement) =>
      Promise.race([
        new Promise((resolve) => {
          element.onload = resolve
          element.onerror = resolve
        }),
        new Promise((resolve) => setTimeout(resolve, 500)),
      ])
    const script = Object.assign(document.createElement('script'), { src: source })
    const iframe = Object.assign(document.createElement('iframe'), { src: source })
    const object = Object.assign(document.createElement('object'), { data: source })
    const all = [script, iframe, object]
    const over = Promise.all(all.map(settled))
    document.body.append(...all)
    await over
    for (const element of all) element.remove()
  }, address)
}
