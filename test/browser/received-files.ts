/** Files that a person sends: a photo that opens, a voice message that plays. */
import type { Page } from 'playwright-core'
import { until } from '../harness/process.ts'
import { type Demo, exampleChat } from './demo.ts'

const { account_id } = exampleChat
/** A red square of 2 by 2. */
export const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg=='
/** Opus: 0.4 s of silence. */
const ogg =
  'T2dnUwACAAAAAAAAAAABAAAAAAAAAIRs2SQBE09wdXNIZWFkAQEAAIC7AAAAAABPZ2dTAAAAAAAAAAAAAAEAAAABAAAATv0wtwERT3B1c1RhZ3MBAAAAeAAA' +
  'AABPZ2dTAAQASwAAAAAAAAEAAAACAAAANQ0y7hQDAwMDAwMDAwMDAwMDAwMDAwMDA/j//vj//vj//vj//vj//vj//vj//vj//vj//vj//vj//vj//vj//vj//vj/' +
  '/vj//vj//vj//vj//vj//g=='

export async function seeFiles(page: Page, demo: Demo, person_id: number): Promise<void> {
  await seePhoto(page, demo, person_id)
  await playVoice(page, demo, person_id)
}

async function seePhoto(page: Page, demo: Demo, person_id: number): Promise<void> {
  const photo = {
    kind: 'photo',
    file_name: 'lamp.png',
    media_type: 'image/png',
    data: png,
    width: 2,
    height: 2,
  }
  await demo.platform('writeMessage', { account_id, person_id, file: photo })
  const shown = page.getByRole('img', { name: 'Photo' })
  await shown.waitFor()
  await until('the photo is drawn', 20_000, async () => {
    return (await shown.evaluate((image: HTMLImageElement) => image.naturalWidth)) === 2 || undefined
  })
  await page.getByRole('button', { name: 'Open the photo' }).click()
  await page
    .getByRole('dialog')
    .getByRole('link', { name: /^Download/ })
    .waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

/** By keyboard, to its end. */
async function playVoice(page: Page, demo: Demo, person_id: number): Promise<void> {
  const voice = { kind: 'voice', file_name: 'voice.ogg', media_type: 'audio/ogg', data: ogg, seconds: 1 }
  await demo.platform('writeMessage', { account_id, person_id, file: voice })
  const player = page.getByLabel('Voice message, 1 second')
  await player.focus()
  await page.keyboard.press('Space')
  await until('the voice message has been played', 20_000, async () => {
    return (await player.evaluate((audio: HTMLAudioElement) => audio.ended)) || undefined
  })
}
