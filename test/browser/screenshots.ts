/**
 * Makes the pictures of README and docs from a separate demo (`npm run screenshots`, after `npm run test:browser` has
 * installed its tools).
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { makeKey, mouse, setUp } from './approval-journey.ts'
import { openBrowser } from './browser.ts'
import { callTool, exampleChat, startDemo } from './demo.ts'

const folder = join(import.meta.dirname, '..', '..', 'docs', 'screenshots')
const text =
  'thank you for your patience. Your order left this morning and should be with you on Thursday. Shall I send the tracking link?'

const browser = await openBrowser()
if (!browser) throw new Error('There is no Chromium on this machine.')
const demo = await startDemo()
try {
  await mkdir(folder, { recursive: true })
  const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, colorScheme: 'light' })
  const page = await context.newPage()
  await setUp(page, demo, 'a long sentence nobody guesses')
  await page.goto(`${demo.address}/dashboard/`)
  const key = await makeKey(page, mouse, 'Claude on my laptop')
  await page.reload()
  await page.getByText('Claude on my laptop').waitFor()
  await page.screenshot({ path: join(folder, 'keys.png') })
  const { structuredContent } = await callTool(demo.address, key, {
    name: 'service_send_message',
    arguments: {
      account_id: exampleChat.account_id,
      chat_id: exampleChat.id,
      text: `Hello ${exampleChat.name.split(' ')[0]},\n\n${text}`,
    },
  })
  await page.goto(String(structuredContent.approval_url))
  await page.getByRole('button', { name: 'Approve' }).waitFor()
  await page.screenshot({ path: join(folder, 'approvals.png') })
} finally {
  await browser.close()
  await demo.close()
}
