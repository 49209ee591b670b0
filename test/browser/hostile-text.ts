/** Names and texts that try to become markup or code, 2,000 of them, wherever approvals and keys show them: none runs. */
import assert from 'node:assert/strict'
import type { BrowserContext, Page } from 'playwright-core'
import { exampleChat } from './demo.ts'
import type { Places } from './every-page.ts'

const run = 'window.parleyRan=1'
const codes = [
  `alert(1)`,
  run,
  `eval('${run}')`,
  `setTimeout('${run}')`,
  `top.${run}`,
  `fetch('/x?'+document.cookie)`,
]
const events = [
  'onerror',
  'onload',
  'onclick',
  'onfocus',
  'onmouseover',
  'ontoggle',
  'onanimationstart',
  'onbegin',
]
const elements = [
  (event: string, code: string) => `<img src=x ${event}="${code}">`,
  (event: string, code: string) => `<svg ${event}=${code}>`,
  (event: string, code: string) => `<details open ${event}="${code}">`,
  (event: string, code: string) => `<input autofocus ${event}="${code}">`,
  (event: string, code: string) => `<video><source ${event}="${code}"></video>`,
  (event: string, code: string) => `<math><mtext><img src=x ${event}=${code}></mtext></math>`,
]
const plain = [
  (code: string) => `<script>${code}</script>`,
  (code: string) => `<iframe srcdoc="<script>parent.${code}</script>"></iframe>`,
  (code: string) => `<a href="javascript:${code}">x</a>`,
  (code: string) => `<object data="javascript:${code}"></object>`,
  (code: string) => `<base href="//evil.example/"><script src="x.js">${code}</script>`,
  (code: string) => `{{constructor.constructor('${code}')()}}`,
  (code: string) => `\${${code}}`,
  (code: string) => `javascript:${code}`,
  (code: string) => `data:text/html,<script>${code}</script>`,
]
/** Texts that may confuse an escaping function. */
const wrappings = [
  (inner: string) => inner,
  (inner: string) => `">${inner}`,
  (inner: string) => `'-->${inner}`,
  (inner: string) => `</textarea></title></style>${inner}`,
  (inner: string) => inner.replaceAll('<', '&lt;'),
  (inner: string) => inner.replaceAll('<', '\u003c\u0000').replaceAll('\u0000', ''),
  (inner: string) => `\u202e${inner}\u2028`,
]

const payloads: readonly string[] = wrappings
  .flatMap((wrap) => [
    ...codes.flatMap((code) => plain.map((make) => wrap(make(code)))),
    ...codes.flatMap((code) => events.flatMap((event) => elements.map((make) => wrap(make(event, code))))),
  ])
  .slice(0, 2_000)

/** How long 2,000 rows may take on a busy machine. */
const showMsMax = 150_000

type Json = Record<string, unknown>

/** The service's own answer with the payloads in place of every text that people have written. */
export async function showHostile(
  context: BrowserContext,
  { address, workspace_id, request_id, campaign_id }: Places & { readonly address: string },
): Promise<number> {
  assert.equal(payloads.length, 2_000)
  const page = await context.newPage()
  await page.addInitScript(watch)
  const keys = `/w/${workspace_id}/keys`
  await answerWith(page, `/dashboard/api${keys}`, ({ keys: [key] }: { keys: Json[] }) => ({
    keys: payloads.map((name, at) => ({ ...key, id: String(at), name, user: { id: '1', email: name } })),
  }))
  await answerWith(page, '/dashboard/api/approvals', ({ approvals: [one] }: { approvals: Json[] }) => ({
    approvals: payloads.map((text, at) => hostileRequest({ ...one, id: String(at) }, text)),
    next_cursor: null,
    has_more: false,
  }))
  let shown = 0
  const paths = [keys, '/mcp-approvals', '/mcp-approvals?view=history']
  for (const path of paths) {
    await page.goto(`${address}/dashboard${path}`)
    await page.waitForFunction(
      (count) => document.querySelectorAll('main li, main tbody tr').length >= count,
      payloads.length,
      { timeout: showMsMax, polling: 250 },
    )
    shown += await requireHarmless(page, path)
  }
  for (const text of payloads.filter((_, at) => at % 100 === 0)) {
    const path = `/mcp-approvals?request=${request_id}`
    // The page may be reading again: it does so when its stream opens.
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await answerWith(page, `/dashboard/api/approvals/${request_id}`, ({ approval }: { approval?: Json }) => ({
      approval: hostileRequest({ ...approval }, text),
    }))
    await page.goto(`${address}/dashboard${path}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await requireHarmless(page, path)
  }
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  shown += await showInChat(page, address, `/w/${workspace_id}`)
  await showAsContacts(page, address, `/w/${workspace_id}`)
  await showInLists(page, address, `/w/${workspace_id}`)
  await showInCampaigns(page, address, { workspace: `/w/${workspace_id}`, campaign_id })
  await page.close()
  return shown
}

/** As messages, notes and attempts of one chat, and as the names in the list. */
async function showInChat(page: Page, address: string, workspace: string): Promise<number> {
  const chat = `/dashboard/api${workspace}/chats/${encodeURIComponent(exampleChat.id)}`
  await answerWith(page, `${chat}/timeline`, (answer: Json) => ({
    ...answer,
    items: payloads.map((text, at) => hostileItem(text, at)),
  }))
  await answerWith(page, chat, ({ chat: one }: { chat: Json }) => ({
    chat: { ...one, name: payloads[0], username: payloads[1] },
  }))
  await answerWith(page, `/dashboard/api${workspace}/inbox`, (answer: { chats: Json[] }) => ({
    ...answer,
    chats: answer.chats.map((one, at) => ({
      ...one,
      name: payloads[at],
      last_message_text: payloads[at + 50],
    })),
  }))
  const path = `${workspace}/inbox?chat=${exampleChat.id}&of=${exampleChat.account_id}`
  await page.goto(`${address}/dashboard${path}`)
  await page.waitForFunction(
    (count) => document.querySelectorAll('main article').length >= count,
    payloads.length,
    { timeout: showMsMax, polling: 250 },
  )
  await requireHarmless(page, path)
  return payloads.length
}

/** As names and usernames of contacts; only the rows in sight exist. */
async function showAsContacts(page: Page, address: string, workspace: string): Promise<void> {
  await answerWith(page, `/dashboard/api${workspace}/contacts`, (answer: Json) => ({
    ...answer,
    contacts: payloads.map((text, at) => ({
      account_id: exampleChat.account_id,
      provider_id: String(at),
      name: text,
      username: text,
    })),
  }))
  const path = `${workspace}/contacts?contact=1&of=${exampleChat.account_id}`
  await page.goto(`${address}/dashboard${path}`)
  await page.getByRole('heading', { level: 2 }).first().waitFor()
  for (const share of [0.3, 0.6, 1]) {
    await page.locator('main ul').evaluate((list, part) => {
      list.parentElement?.scrollTo(0, list.scrollHeight * part)
    }, share)
    assert.ok((await requireHarmless(page, path)) > 0)
  }
}

/** As evidence of suppressions, and as addresses, types and bodies of webhooks. */
async function showInLists(page: Page, address: string, workspace: string): Promise<void> {
  const created_at = new Date().toISOString()
  const api = `/dashboard/api${workspace}`
  await answerAs(page, `${api}/suppressions`, {
    suppressions: payloads.slice(0, 300).map((text, at) => ({
      kind: 'username',
      value: text,
      ...(at % 2 === 0
        ? { source: 'import', evidence: { file: text, line: at } }
        : { source: 'opt_out', evidence: { text, chat_id: text, account_id: text, message_id: text } }),
      created_at,
      people: [
        {
          platform_id: '1',
          names: [`username:${text}`],
          since: created_at,
          until: created_at,
          released: true,
        },
      ],
    })),
    next_cursor: null,
    has_more: false,
  })
  await page.goto(`${address}/dashboard${workspace}/suppressions`)
  await page.getByRole('table').waitFor()
  assert.ok((await requireHarmless(page, `${workspace}/suppressions`)) > 0)
  const last = { at: created_at, status: null, ms: 1, error: payloads[3] }
  const delivery = { event_id: payloads[1], sequence: 1, state: 'failed', attempts: 1, next_attempt_at: null }
  const facts = { ...delivery, created_at, delivered_at: null, last }
  const endpoint = {
    events: ['*'],
    active: true,
    created_at,
    consecutive_failures: 20,
    disabled_at: created_at,
  }
  await answerAs(page, `${api}/webhooks`, {
    webhooks: payloads.slice(0, 100).map((url, at) => ({ ...endpoint, id: `hook${at}`, url })),
  })
  await answerAs(page, `${api}/webhooks/hook0/deliveries`, {
    deliveries: payloads.slice(0, 200).map((type, at) => ({ ...facts, id: `delivery${at}`, type })),
    next_cursor: null,
    has_more: false,
  })
  const tries = payloads.slice(0, 8).map((response, n) => ({ ...last, n, response }))
  await answerAs(page, `${api}/webhooks/hook0/deliveries/delivery0`, {
    delivery: { ...facts, id: 'delivery0', type: payloads[0], body: payloads.slice(0, 100).join(' '), tries },
  })
  await page.goto(`${address}/dashboard${workspace}/webhooks?delivery=delivery0`)
  await page.getByRole('dialog').getByText('Attempt 7').first().waitFor()
  assert.ok((await requireHarmless(page, `${workspace}/webhooks`)) > 0)
}

/** As names of campaigns, of their creators and recipients, and in sentences. */
async function showInCampaigns(
  page: Page,
  address: string,
  { workspace, campaign_id }: { workspace: string; campaign_id: string },
): Promise<void> {
  const api = `/dashboard/api${workspace}`
  const created_by = { user_id: '1', name: payloads[0] }
  await answerWith(page, `${api}/campaign_progress`, (answer: { campaigns: Json[] }) => ({
    ...answer,
    campaigns: payloads.slice(0, 200).map((text, at) => ({
      ...answer.campaigns[0],
      ...{ id: String(at), name: text, created_by, next: { at: null, sentence: text } },
    })),
  }))
  const one = `${api}/campaigns/${campaign_id}`
  await answerWith(page, one, (answer: { campaign: Json }) => ({
    ...answer,
    campaign: { ...answer.campaign, name: payloads[0] },
  }))
  await answerWith(page, `${one}/recipients`, (answer: { recipients: Json[] }) => ({
    ...answer,
    created_by,
    recipients: payloads.map((text, at) => ({
      ...answer.recipients[0],
      ...{ id: String(at), name: text, identifier: text, sentence: text },
    })),
  }))
  const [list, detail] = [`${workspace}/campaigns`, `${workspace}/campaigns/${campaign_id}?recipient=0`]
  await page.goto(`${address}/dashboard${list}`)
  await page.locator('main tbody tr').nth(199).waitFor()
  await requireHarmless(page, list)
  await page.goto(`${address}/dashboard${detail}`)
  await page.locator('[data-recipient]').first().waitFor()
  for (const share of [0, 0.4, 1]) {
    await page.locator('[data-own-bar] > div').evaluate((place, part) => {
      place.scrollTo(0, place.scrollHeight * part)
    }, share)
    assert.ok((await requireHarmless(page, detail)) > 0)
  }
}

function hostileItem(text: string, at: number): Json {
  const every = { id: String(at), at: '2026-11-15T09:30:00.000Z', text }
  const ours = { by: { kind: 'key', name: text }, campaign: { id: String(at), name: text, step: 0 } }
  if (at % 3 === 0) return { ...every, type: 'note', author: { user_id: '1', name: text }, deletable: true }
  if (at % 3 === 1) {
    return {
      ...every,
      ...ours,
      type: 'operation',
      file_name: text,
      state: 'refused',
      closed_as: null,
      sentence: text,
    }
  }
  const file = { index: 0, kind: 'file', file_name: text, media_type: text, size: 1 }
  const seen = { edited_at: null, state: 'accepted', read_at: null, operation_id: null }
  return { ...every, ...ours, ...seen, type: 'message', is_sender: at % 2 === 0, attachments: [file] }
}

function hostileRequest(one: Json, text: string): Json {
  const named = (value: unknown) => ({ ...(value as Json), name: text })
  return {
    ...one,
    client_name: text,
    field: text,
    from: [text],
    to: [text],
    payload: { text, [text.slice(0, 60)]: text },
    key: named(one.key),
    chat: named(one.chat),
    account: named(one.account),
    workspace: named(one.workspace),
  }
}

async function answerWith(page: Page, path: string, change: (answer: never) => Json): Promise<void> {
  const isIt = ({ pathname }: URL) => pathname === path
  await page.route(isIt, async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, json: change((await response.json()) as never) })
  })
}

/** For what this instance does not have. */
async function answerAs(page: Page, path: string, json: Json): Promise<void> {
  await page.route(
    ({ pathname }: URL) => pathname === path,
    (route) => route.fulfill({ json }),
  )
}

/** Runs in the page, before anything else: a script that the policy stopped has still become a script. */
function watch(): void {
  const seen: string[] = []
  Object.assign(window, { parleySeen: seen, alert: () => seen.push('alert') })
  document.addEventListener('securitypolicyviolation', (event) => seen.push(event.violatedDirective))
}

async function requireHarmless(page: Page, path: string): Promise<number> {
  const found = await page.evaluate(() => ({
    ran: 'parleyRan' in window,
    seen: (window as unknown as { parleySeen: string[] }).parleySeen,
    made: document.querySelectorAll(
      '#app :is(script, iframe, object, video, math, base, [onerror], [onload], [ontoggle], [href^="javascript:"])',
    ).length,
    shown: document.querySelectorAll('main li, main tbody tr').length,
  }))
  assert.deepEqual({ ...found, shown: 0 }, { ran: false, seen: [], made: 0, shown: 0 }, path)
  return found.shown
}
