/** One step of a journey: it prints its seconds, or what every page shows at the moment it failed. */
import type { Browser, Page } from 'playwright-core'

const shownMax = 2_000

export async function step<T>(browser: Browser, name: string, work: () => Promise<T>): Promise<T> {
  const begunAt = performance.now()
  const seconds = () => ((performance.now() - begunAt) / 1_000).toFixed(1)
  try {
    const result = await work()
    process.stdout.write(`== ${seconds()} s: ${name}\n`)
    return result
  } catch (error) {
    process.stdout.write(`FAILED after ${seconds()} s: ${name}\n${error}\n`)
    for (const page of browser.contexts().flatMap((context) => context.pages())) await describe(page)
    throw error
  }
}

async function describe(page: Page): Promise<void> {
  const text = await page
    .locator('main, body:not(:has(main))')
    .first()
    .innerText({ timeout: 2_000 })
    .catch((error: unknown) => `(no text: ${error})`)
  process.stdout.write(`-- ${page.url()}\n${text.replaceAll(/\n+/g, '\n').slice(0, shownMax)}\n`)
}
