/**
 * The suppression list: a file with two bad lines, an entry removed with a reason, the message of an opt-out opened. Webhooks:
 * an endpoint that gets a signed test, goes down, is disabled, comes back and gets what failed. By keyboard, at 320 px.
 */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BrowserContext, Page } from 'playwright-core'
import { patchEnv } from '../faults/patch.ts'
import { until } from '../harness/process.ts'
import { type Demo, exampleChat } from './demo.ts'
import { widthOver } from './every-page.ts'

/** The receiver is on this machine, and two failures disable it: twenty take hours. */
export const listsEnv = {
  PARLEY_WEBHOOK_ALLOW: '127.0.0.1',
  ...patchEnv([
    { marker: 'limit: failures that disable a webhook', replace: 'export const disablingFailures = 2' },
  ]),
}

interface Visit {
  readonly page: Page
  readonly demo: Demo
  readonly workspace: string
}

export async function useLists(context: BrowserContext, demo: Demo, workspace_id: string): Promise<void> {
  const page = await context.newPage()
  const visit = { page, demo, workspace: `${demo.address}/dashboard/w/${workspace_id}` }
  await importList(visit)
  await removeEntry(visit)
  await openEvidence(visit)
  await useWebhooks(visit)
  await page.close()
}

async function importList({ page, workspace }: Visit): Promise<void> {
  await page.goto(`${workspace}/suppressions`)
  await page.getByRole('button', { name: 'Import' }).click()
  const text = 'username,phone\r\nlist_one,\r\n=1+1,\r\n,12\r\nlist_two,+49 170 5550144\r\n'
  const choose = (content: string) =>
    page
      .getByLabel('File', { exact: true })
      .setInputFiles({ name: 'Liste für März.csv', mimeType: 'text/csv', buffer: Buffer.from(content) })
  await choose('')
  await page.getByText('This file is empty.').waitFor()
  await choose(text)
  await page.getByRole('dialog').getByRole('button', { name: 'Import' }).click()
  await page.getByText('3 added, 2 lines skipped.').waitFor()
  const skipped = page.getByRole('list', { name: 'Skipped lines' })
  assert.match(
    (await skipped.textContent()) ?? '',
    /Line 3 "=1\+1" is not a username.*Line 4 "12" is not a phone/,
  )
  const saving = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Save the report' }).click()
  const report = await saving
  assert.equal(report.suggestedFilename(), 'skipped-Liste für März.csv')
  assert.match(await readFile(await report.path(), 'utf8'), /^line,reason\r\n3,.*\r\n4,/)
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByText('Liste für März.csv, line 5').first().waitFor()
  const exporting = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Export' }).click()
  assert.equal((await exporting).suggestedFilename(), 'suppressions.csv')
}

/** The keyboard alone. */
async function removeEntry({ page }: Visit): Promise<void> {
  await page.keyboard.press('/')
  await page.keyboard.type('@LIST_one')
  await page.waitForURL((url) => url.searchParams.get('q') === '@LIST_one')
  const remove = page.getByRole('button', { name: 'Remove @list_one' })
  await remove.waitFor()
  await remove.focus()
  await page.keyboard.press('Enter')
  await page.getByLabel('Reason').waitFor()
  await page.keyboard.type('She asked for the newsletter again.')
  await page.keyboard.press('Enter')
  await page.getByText('Not on the list.').waitFor()
}

/** The list is open while the person asks to stop. */
async function openEvidence({ page, demo, workspace }: Visit): Promise<void> {
  await page.goto(`${workspace}/suppressions?kind=platform_id`)
  await page.getByRole('heading', { name: 'Suppression' }).waitFor()
  const { person_id } = (await demo.platform('addPerson', {
    name: 'Opal Stern',
    username: 'opal_stern',
    behaviour: 'silent',
  })) as { person_id: number }
  await demo.platform('writeMessage', { account_id: exampleChat.account_id, person_id, text: 'Stop!' })
  const evidence = page.getByRole('link', { name: 'Asked to stop: “Stop!”' })
  await evidence.waitFor()
  await page.setViewportSize({ width: 320, height: 720 })
  assert.equal(await widthOver(page), 0)
  await page.setViewportSize({ width: 1280, height: 720 })
  await evidence.click()
  await page.waitForURL(/\/inbox\?.*message=/)
  await page.getByRole('heading', { name: 'Opal Stern' }).waitFor()
}

interface Receiver {
  readonly server: Server
  readonly url: string
  /** The status of each answer from now on. */
  status: number
  readonly received: { readonly body: string; readonly signature: string; readonly type: string }[]
}

async function openReceiver(): Promise<Receiver> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const piece of request) body += piece
    const signature = String(request.headers['x-service-signature'])
    receiver.received.push({ body, signature, type: JSON.parse(body).type })
    response.writeHead(receiver.status).end(receiver.status === 200 ? '' : 'out of order <b>now</b>')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  const receiver: Receiver = { server, url, status: 200, received: [] }
  return receiver
}

async function useWebhooks(visit: Visit): Promise<void> {
  const receiver = await openReceiver()
  try {
    const secret = await addEndpoint(visit, receiver)
    await sendTest(visit, receiver, secret)
    await goDown(visit, receiver)
    await comeBack(visit, receiver)
  } finally {
    receiver.server.closeAllConnections()
    receiver.server.close()
  }
}

/** The keyboard alone. Reloaded while the secret is shown, the page offers another one. */
async function addEndpoint({ page, workspace }: Visit, { url }: Receiver): Promise<string> {
  await page.goto(`${workspace}/webhooks`)
  await page.getByRole('heading', { name: 'No endpoints yet' }).waitFor()
  await page.keyboard.press('n')
  await page.getByLabel('Address').waitFor()
  await page.keyboard.type(url)
  await page.keyboard.press('Enter')
  await page.getByLabel(`The secret of ${url}`).waitFor()
  await page.reload()
  await page.getByText('nobody confirmed that it was saved').waitFor()
  await page.getByRole('button', { name: 'Rotate the secret' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate secret' }).click()
  const secret = await page.getByLabel(`The secret of ${url}`).inputValue()
  await page.getByRole('button', { name: 'I saved it' }).click()
  assert.equal(await page.getByText('nobody confirmed').count(), 0)
  return secret
}

async function sendTest({ page }: Visit, { received }: Receiver, secret: string): Promise<void> {
  await page.getByRole('button', { name: 'Send a test' }).click()
  await page.getByText('The test arrived: status 200').waitFor()
  const test = received.find(({ type }) => type === 'webhook.test')
  const expected = createHmac('sha256', secret)
    .update(test?.body ?? '')
    .digest('hex')
  assert.equal(test?.signature, `sha256=${expected}`)
}

async function goDown({ page, demo }: Visit, receiver: Receiver): Promise<void> {
  receiver.status = 500
  await page.getByRole('button', { name: 'Send a test' }).click()
  await page.getByText('The test failed: status 500').waitFor()
  const { person_id } = (await demo.platform('addPerson', { name: 'Pia Down', behaviour: 'silent' })) as {
    person_id: number
  }
  for (const text of ['one', 'two']) {
    await demo.platform('writeMessage', { account_id: exampleChat.account_id, person_id, text })
  }
  await page.getByText('2 attempts in a row failed. The last one: status 500').waitFor()
  await page.getByRole('button', { name: 'Failed', exact: true }).click()
  await page.getByRole('button', { name: 'webhook.test' }).first().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('out of order <b>now</b>').waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
}

async function comeBack({ page }: Visit, receiver: Receiver): Promise<void> {
  receiver.status = 200
  receiver.received.length = 0
  await page.getByRole('button', { name: 'Activate' }).click()
  await page.getByText('attempts in a row failed').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Resend webhook.test' }).click()
  await page.getByText('No failed deliveries.').waitFor()
  const tests = () => receiver.received.filter(({ type }) => type === 'webhook.test').length
  await until('the delivery is resent', 20_000, () => tests() > 0)
  await page.getByRole('button', { name: 'Delivered', exact: true }).click()
  await page.getByRole('button', { name: 'webhook.test' }).nth(1).waitFor()
  assert.equal(tests(), 1)
  await page.setViewportSize({ width: 320, height: 720 })
  assert.equal(await widthOver(page), 0)
  await page.setViewportSize({ width: 1280, height: 720 })
}
