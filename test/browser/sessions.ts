/** One browser and one demo for several journeys, each in sessions of its own. */
import assert from 'node:assert/strict'
import type { Browser, BrowserContext, Cookie } from 'playwright-core'
import { closeContext, openBrowser } from './browser.ts'
import { type Demo, startDemo } from './demo.ts'

export const password = 'a long sentence nobody guesses'
const actionMsMax = 40_000

export class Sessions {
  readonly browser: Browser
  readonly demo: Demo
  /** The cookie of the browser that has signed in before. */
  #known: Cookie[] = []
  readonly #elsewhere: string[] = []
  readonly #broken: string[] = []

  constructor(browser: Browser, demo: Demo) {
    this.browser = browser
    this.demo = demo
  }

  /** A context is a separate browser, with its own cookies. */
  async open(width: number): Promise<BrowserContext> {
    const context = await this.browser.newContext({ viewport: { width, height: 720 }, hasTouch: width < 400 })
    context.setDefaultTimeout(actionMsMax)
    context.on('request', (request) => {
      const { origin, hostname } = new URL(request.url())
      const own = origin === new URL(this.demo.address).origin || hostname === 'localhost'
      if (!own) this.#elsewhere.push(request.url())
    })
    context.on('weberror', (error) => this.#broken.push(String(error.error())))
    return context
  }

  /** As the same user in a session of its own: each has 600 requests a minute, and journeys are faster than people. */
  async inSession<T>(work: (context: BrowserContext) => Promise<T>): Promise<T> {
    const context = await this.open(1280)
    this.#known = await signInAs(context, this.demo, this.#known)
    const result = await work(context)
    await closeContext(context)
    return result
  }

  /** Nothing went to any other server, and no page had an error. */
  check(): void {
    assert.deepEqual(this.#elsewhere, [], 'requests to other servers')
    assert.deepEqual(this.#broken, [], 'errors in pages')
  }
}

/**
 * Signs the context's browser in. `known`: the cookie of one that has signed in before. Such a browser has sign-ins of its own, and
 * all sessions of a test together are more than a stranger may have. Returns that cookie.
 */
export async function signInAs(
  context: BrowserContext,
  { address }: Demo,
  known: readonly Cookie[] = [],
): Promise<Cookie[]> {
  await context.addCookies(known)
  const signedIn = await context.request.post(`${address}/dashboard/api/sign-in`, {
    headers: { origin: address },
    data: { email: 'operator@localhost', password },
  })
  assert.ok(signedIn.ok(), await signedIn.text())
  const device = (await context.cookies()).filter(({ name }) => name.endsWith('device'))
  assert.equal(device.length, 1)
  return device
}

/** Runs journeys against a demo with these settings. Says so where there is no browser. */
export async function withSessions(
  env: Record<string, string>,
  walk: (sessions: Sessions) => Promise<void>,
): Promise<void> {
  const browser = await openBrowser()
  if (!browser) {
    process.stdout.write(
      '== skipped: there is no Chromium on this machine, and none that npm carries for it\n',
    )
    return
  }
  const demo = await startDemo(env)
  try {
    const sessions = new Sessions(browser, demo)
    await walk(sessions)
    sessions.check()
  } finally {
    await browser.close()
    await demo.close()
  }
}
