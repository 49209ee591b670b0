/**
 * Signing in with a real identity provider (oidc-provider, in its own process) at a real `parley start`, over HTTP as
 * a browser would: every redirect and cookie, the provider's own pages, and what an attacker may change on the way.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endProcesses, spawnParley, until } from '../harness/process.ts'

const html = { accept: 'text/html,application/xhtml+xml' }
const password = 'canary correct horse battery'
const clientSecret = 'the secret between Parley and this provider'
/** What must never appear in a log. */
const secrets: string[] = [password, clientSecret]

interface VisitedPage {
  readonly status: number
  readonly location: string | null
  readonly text: string
}

/** Keeps cookies for each host and port, and follows no redirect by itself. */
class Browser {
  readonly jar = new Map<string, Map<string, string>>()

  async visit(address: string | URL, init: RequestInit = {}): Promise<VisitedPage> {
    const url = new URL(address, base)
    const cookies = this.jar.get(url.host) ?? new Map<string, string>()
    this.jar.set(url.host, cookies)
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { ...html, ...(init.headers as Record<string, string>), ...(cookie && { cookie }) }
    const response = await fetch(url, { redirect: 'manual', ...init, headers })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '' || /max-age=0|expires=Thu, 01 Jan 1970/i.test(line)) cookies.delete(name)
      else cookies.set(name, value)
      if (url.host === new URL(base).host && value) secrets.push(value)
    }
    const location = response.headers.get('location')
    return {
      status: response.status,
      location: location && new URL(location, url).href,
      text: await response.text(),
    }
  }

  /** A route below /dashboard/api, called from our own page. */
  async ask(method: string, path: string, body?: unknown) {
    const { status, text } = await this.visit(`/dashboard/api${path}`, {
      method,
      headers: {
        accept: 'application/json',
        ...(method !== 'GET' && { origin: base, 'sec-fetch-site': 'same-origin' }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status, body: JSON.parse(text) }
  }

  /** Signs in at the provider and accepts everything; returns the address that it redirects the browser to. */
  async passProvider(address: string, login: string): Promise<string> {
    let next = address
    for (let steps = 0; steps < 12; steps++) {
      if (next.startsWith(base)) return next
      const page = await this.visit(next)
      const action = /<form[^>]* action="([^"]+)"/.exec(page.text)?.[1]
      const prompt = /name="prompt" value="(\w+)"/.exec(page.text)?.[1]
      if (page.location) next = page.location
      else if (action && prompt) next = await this.submit(new URL(action, next), { prompt, login })
      else throw new Error(`The provider answered ${page.status}: ${page.text.slice(0, 500)}`)
    }
    throw new Error('The provider sends the browser in circles.')
  }

  async submit(address: URL, fields: Readonly<Record<string, string>>): Promise<string> {
    const body = new URLSearchParams({ ...fields, password: 'anything' })
    const { location } = await this.visit(address, { method: 'POST', body })
    return location ?? address.href
  }

  /** From the button on the sign-in page and back. */
  async callbackFor(login: string, return_to = '/dashboard/'): Promise<URL> {
    const { status, location } = await this.visit(
      `/dashboard/oidc/start?${new URLSearchParams({ return_to })}`,
    )
    assert.equal(status, 302)
    const back = new URL(await this.passProvider(location ?? '', login))
    secrets.push(back.searchParams.get('code') ?? 'no code')
    return back
  }

  async isSignedIn(): Promise<boolean> {
    return (await this.ask('GET', '/session')).status === 200
  }
}

async function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const bound = server.address()
      server.close(() => resolve(typeof bound === 'object' && bound ? bound.port : 0))
    })
  })
}

async function startProvider(port: number): Promise<ChildProcess> {
  const file = join(import.meta.dirname, 'provider.ts')
  const child = spawn(process.execPath, [file, String(port), `${base}/dashboard/oidc/callback`], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  await until('the provider listens', 30_000, () => said.includes('\n'))
  return child
}

let steps = 0
async function step(what: string, work: () => Promise<void>): Promise<void> {
  await work()
  steps++
  process.stdout.write(`  ${what}\n`)
}

const port = await freePort()
const base = `http://127.0.0.1:${port}`
const providerPort = await freePort()
const issuer = `http://127.0.0.1:${providerPort}`
let provider = await startProvider(providerPort)
const data_dir = await mkdtemp(join(tmpdir(), 'parley-oidc-'))
const parley = spawnParley(['start', '--port', String(port), '--data-dir', data_dir], {
  PARLEY_BASE_URL: base,
  PARLEY_OIDC_ISSUER: issuer,
  PARLEY_OIDC_CLIENT_ID: 'parley',
  PARLEY_OIDC_CLIENT_SECRET: clientSecret,
  PARLEY_OIDC_UUID_CLAIM: 'employee_uuid',
  PARLEY_OIDC_LABEL: 'Acme ID',
})

try {
  await parley.ready()
  await journey()
  process.stdout.write(`== ${steps} steps of signing in with an identity provider\n`)
} finally {
  provider.kill()
  parley.signal('SIGTERM')
  await parley.exit().catch(endProcesses)
  await rm(data_dir, { recursive: true, force: true })
}

async function journey(): Promise<void> {
  const owner = new Browser()
  let workspace_id = ''
  await step('the demo’s set-up link lets its owner choose a password', async () => {
    const token = await until('the set-up link is printed', 60_000, () => {
      return /\/dashboard\/setup#(\w+)/.exec(parley.stdout())?.[1]
    })
    assert.equal((await owner.ask('POST', '/setup', { token, password })).status, 200)
    const { body } = await owner.ask('GET', '/session')
    workspace_id = body.workspaces[0].id
    const ways = await new Browser().ask('GET', '/sign-in')
    assert.deepEqual(ways.body, { local: true, oidc: { label: 'Acme ID' } })
  })
  for (const login of [randomUUID(), 'alice', 'employee-7']) await linkAndReturn(owner, workspace_id, login)
  await refuseAttacks()
  await refuseStrangers(owner, workspace_id)
  await leadOnlyToTheDashboard()
  await outliveTheProvider(owner)
  await step('nothing secret was written to the log', async () => {
    const log = `${parley.stdout()}${parley.stderr()}`
    assert.ok(secrets.length > 30)
    for (const secret of secrets) assert.ok(!log.includes(secret), `the log holds ${secret.slice(0, 12)}…`)
  })
}

async function linkAndReturn(owner: Browser, workspace_id: string, login: string): Promise<void> {
  const person = new Browser()
  const email = `${login}@acme.example`
  await step(
    `${login.length > 30 ? 'a UUID' : login}: a set-up link leads to the provider and back`,
    async () => {
      const added = await owner.ask('POST', `/w/${workspace_id}/members`, { email, role: 'member' })
      assert.equal(added.status, 201)
      const token = String(added.body.setup_link).split('#')[1]
      secrets.push(token ?? '')
      const begun = await person.ask('POST', '/setup/oidc', { token })
      const back = await person.passProvider(begun.body.location, login)
      assert.deepEqual(await person.visit(back), { status: 302, location: `${base}/dashboard/`, text: '' })
      assert.equal((await person.ask('GET', '/session')).body.user.email, email)
      assert.equal((await person.ask('GET', '/sessions')).body.sessions[0].identity.issuer, issuer)
      assert.equal((await new Browser().ask('POST', '/setup/oidc', { token })).status, 404)
    },
  )
  await step('signed out the session is dead, and the provider alone lets them in again', async () => {
    const stolen = new Browser()
    for (const [host, cookies] of person.jar) stolen.jar.set(host, new Map(cookies))
    assert.ok(await stolen.isSignedIn())
    assert.equal((await person.ask('POST', '/sign-out')).status, 200)
    assert.equal(await stolen.isSignedIn(), false)
    const page = '/dashboard/mcp-approvals?request=019a7e6e-7c1a-7b55-9f53-0d6a1f0c7a11'
    assert.equal((await person.visit(await person.callbackFor(login, page))).location, `${base}${page}`)
    assert.ok(await person.isSignedIn())
  })
}

/** Changes what comes back from the provider, and expects the sign-in page with its reason instead of a session. */
async function refuseAttacks(): Promise<void> {
  const attacks: Readonly<Record<string, (back: URL, browser: Browser) => void>> = {
    'another state': (back) => back.searchParams.set('state', 'x'.repeat(43)),
    'no state': (back) => back.searchParams.delete('state'),
    'state twice': (back) => back.searchParams.append('state', back.searchParams.get('state') ?? ''),
    'another code': (back) => back.searchParams.set('code', 'x'.repeat(43)),
    'the issuer of another provider': (back) => back.searchParams.set('iss', 'https://evil.example'),
    'no issuer': (back) => back.searchParams.delete('iss'),
    'a refusal in place of the code': (back) => {
      back.searchParams.delete('code')
      back.searchParams.set('error', 'access_denied')
    },
    'another browser': (_, browser) => browser.jar.clear(),
    'a changed cookie': (_, { jar }) => {
      const ours = jar.get(new URL(base).host)
      ours?.set('oidc', `A${ours.get('oidc')?.slice(1)}`)
    },
  }
  for (const [what, change] of Object.entries(attacks)) {
    await step(`refused: ${what}`, async () => {
      const browser = new Browser()
      const back = await browser.callbackFor('alice')
      change(back, browser)
      const { status, location } = await browser.visit(back)
      assert.equal(status, 302)
      assert.match(location ?? '', /\/dashboard\/sign-in\?refused=failed&return_to=%2Fdashboard%2F$/)
      assert.equal(await browser.isSignedIn(), false)
    })
  }
  await step('refused: the same code a second time', async () => {
    const browser = new Browser()
    const back = await browser.callbackFor('alice')
    const cookies = new Map(browser.jar.get(back.host))
    assert.equal((await browser.visit(back)).location, `${base}/dashboard/`)
    const replay = new Browser()
    replay.jar.set(back.host, cookies)
    assert.match((await replay.visit(back)).location ?? '', /refused=failed/)
    assert.equal(await replay.isSignedIn(), false)
  })
  await step('refused: the code of one sign-in in another, whose state is right', async () => {
    const [victim, attacker] = [new Browser(), new Browser()]
    const stolen = await victim.callbackFor('alice')
    const back = await attacker.callbackFor('mallory')
    back.searchParams.set('code', stolen.searchParams.get('code') ?? '')
    assert.match((await attacker.visit(back)).location ?? '', /refused=failed/)
    assert.equal(await attacker.isSignedIn(), false)
  })
}

async function refuseStrangers(owner: Browser, workspace_id: string): Promise<void> {
  await step('refused: an unknown person, also with the verified address of a user', async () => {
    const email = 'bo@acme.example'
    await owner.ask('POST', `/w/${workspace_id}/members`, { email, role: 'member' })
    const before = (await owner.ask('GET', `/w/${workspace_id}/members`)).body.members.length
    for (const login of ['nobody', email]) {
      const browser = new Browser()
      const { location } = await browser.visit(await browser.callbackFor(login))
      assert.match(location ?? '', /\/dashboard\/sign-in\?refused=unknown/)
      assert.equal(await browser.isSignedIn(), false)
    }
    assert.equal((await owner.ask('GET', `/w/${workspace_id}/members`)).body.members.length, before)
  })
}

async function leadOnlyToTheDashboard(): Promise<void> {
  await step('return_to leads to the dashboard, whatever it says', async () => {
    const browser = new Browser()
    for (const return_to of [
      'https://evil.example/',
      '//evil.example',
      '/\\evil.example',
      '/dashboard/../../evil',
      '/dashboard/%2e%2e/%2e%2e/evil',
      '/dashboard/%5c%5cevil.example',
      '/dashboard/api/sign-out',
      'javascript:alert(1)',
      '/dashboard/\r\nlocation: //evil.example',
    ]) {
      const { location } = await browser.visit(await browser.callbackFor('alice', return_to))
      assert.equal(location, `${base}/dashboard/`, return_to)
    }
  })
}

async function outliveTheProvider(owner: Browser): Promise<void> {
  const browser = new Browser()
  const email = (await owner.ask('GET', '/session')).body.user.email
  const back = await browser.callbackFor('alice')
  const ended = new Promise((resolve) => provider.once('close', resolve))
  provider.kill('SIGKILL')
  await ended
  await step('503 while the provider is down, and a password goes on working', async () => {
    const cookies = new Map(browser.jar.get(back.host))
    assert.match((await browser.visit(back)).location ?? '', /\/dashboard\/sign-in\?refused=unavailable/)
    browser.jar.set(back.host, cookies)
    const { status, text } = await browser.visit(back, { headers: { accept: 'application/json' } })
    assert.deepEqual([status, JSON.parse(text).code], [503, 'provider_unavailable'])
    assert.equal((await browser.ask('POST', '/sign-in', { email, password })).status, 200)
    assert.ok(await browser.isSignedIn())
  })
  provider = await startProvider(providerPort)
  await step('and in again once it is back', async () => {
    const again = new Browser()
    assert.equal((await again.visit(await again.callbackFor('alice'))).location, `${base}/dashboard/`)
  })
}
