/** A request whose answer is lost: the service has it, and the page does not know. */
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'

interface Lost {
  /** The end of the address to which the request goes. */
  readonly path: string
  readonly send: () => Promise<void>
  /** The address that the reloaded page reaches. */
  readonly reaches: RegExp
}

/** Reloads the page once the service has the request: the page repeats it under the same key. */
export async function loseAnswer(page: Page, { path, send, reaches }: Lost): Promise<void> {
  const keys: (string | undefined)[] = []
  const { promise: arrived, resolve } = Promise.withResolvers<void>()
  await page.route(`**${path}`, async (route) => {
    if (route.request().method() !== 'POST') return route.fallback()
    keys.push(route.request().headers()['idempotency-key'])
    if (keys.length > 1) return route.fallback()
    await route.fetch()
    resolve()
  })
  await send()
  await arrived
  await page.reload()
  await page.waitForURL(reaches)
  // The route stays: Chromium can lose requests that are under way when interception ends, and the new page is loading.
  assert.equal(keys.length, 2)
  assert.equal(keys[0], keys[1])
}
