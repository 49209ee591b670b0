/** The keyboard as a user without a mouse has it: Tab until the focus is there. */
import type { Page } from 'playwright-core'

type Target = ReturnType<Page['getByRole']>

/** Moves with Tab until the target has the focus. */
async function tabTo(page: Page, target: Target): Promise<void> {
  await target.waitFor()
  for (const key of ['Tab', 'Shift+Tab']) {
    for (let moved = 0; moved < 40; moved++) {
      if (await target.evaluate((each) => each === document.activeElement)) return
      await page.keyboard.press(key)
    }
  }
  throw new Error('Tab does not reach it.')
}

export async function press(page: Page, target: Target, key: string): Promise<void> {
  await tabTo(page, target)
  await page.keyboard.press(key)
}

export async function type(page: Page, target: Target, text: string): Promise<void> {
  await tabTo(page, target)
  await page.keyboard.insertText(text)
}
