/** Files sent through the API reach Telegram whole, and cost the worker little memory. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { timed } from './harness/timed.ts'
import { openTelegramStage, peakRss, type TelegramStage } from './platform/telegram-stage.ts'

const mib = 1024 * 1024
/** The largest file the API takes; on demand, because twenty of them take a minute. */
const crowdBytes = Number(process.env.TEST_TELEGRAM_FILE_BYTES ?? 3 * mib)
const crowd = 20
/** A worker sends one file per account at a time, and eight in all. */
const accounts = 8
const rssMax = 64 * mib

let stage: TelegramStage
const ids: string[] = []
let person: number
beforeAll(async () => {
  stage = await openTelegramStage()
  person = await stage.person({ username: 'mara_lind' })
  for (let n = 0; n < accounts; n++) {
    const id = await stage.account()
    await stage.ask('writeMessage', { account_id: id, person_id: person, text: 'Send it, please.' })
    ids.push(id)
  }
})
afterAll(() => stage.close())

async function upload(account_id: string, bytes: Buffer): Promise<void> {
  const form = new FormData()
  form.set('account_id', account_id)
  form.set('chat_id', `platform:chat:${person}`)
  form.set('attachments', new Blob([bytes], { type: 'application/pdf' }), 'offer.pdf')
  const response = await fetch(`${stage.service.url}/api/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${stage.tenant.key}`, 'idempotency-key': randomUUID() },
    body: form,
  })
  expect([response.status, await response.json()]).toEqual([200, expect.anything()])
}

const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** The hashes of what has arrived since the given number of messages. */
async function arrived(after: number): Promise<(string | null)[]> {
  return (await stage.journal()).slice(after).map(({ file_sha256 }) => file_sha256)
}

test.each([1, 262_144, 10 * mib - 1, 10 * mib + 1, 26_214_400])(
  'a file of %i bytes arrives with its SHA-256',
  async (size) => {
    const bytes = randomBytes(size)
    const before = (await stage.journal()).length
    await upload(ids[0] ?? '', bytes)
    expect(await arrived(before)).toEqual([hashOf(bytes)])
  },
)

test(`${crowd} files at once cost the worker less than 64 MB`, timed, async () => {
  const files = Array.from({ length: crowd }, () => randomBytes(crowdBytes))
  // Measured from a worker that has sent files before, as everywhere: the first one grows the heap.
  const before = await stage.workerRss()
  const from = (await stage.journal()).length
  const most = await peakRss(stage, async () => {
    await Promise.all(files.map((bytes, n) => upload(ids[n % accounts] ?? '', bytes)))
  })
  expect((await arrived(from)).toSorted()).toEqual(files.map(hashOf).toSorted())
  process.stdout.write(`${crowd} × ${crowdBytes} bytes: ${Math.round((most - before) / mib)} MiB more\n`)
  expect(most - before).toBeLessThan(rssMax)
})
