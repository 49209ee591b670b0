/** Files sent through the API reach Telegram whole, received ones reach the caller, and both cost the worker little memory. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { forgetMedia } from '../src/capabilities/media/media.ts'
import { sql } from '../src/db/sql.ts'
import { until } from './harness/process.ts'
import { timed } from './harness/timed.ts'
import { hashOf as hashOfSeed } from './platform/conformance-downloads.ts'
import { msMax, openTelegramStage, peakRss, type TelegramStage } from './platform/telegram-stage.ts'

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

interface CachedRows {
  readonly files: number
  readonly unfinished: number
  readonly chunks: number
}

function cachedRows(): Promise<CachedRows> {
  return stage.db.one<CachedRows>(sql`
    select count(*)::int as files, count(*) filter (where ended_at is null)::int as unfinished,
      (select count(*)::int from media_chunks) as chunks from media_files`)
}

test('a worker that is killed in the middle of a download leaves no rows after the hour; the next one fetches the file', async () => {
  const [account_id = ''] = ids
  const file = { size: 5 * mib, seed: 7 }
  const { message_id } = (await stage.ask('writeMessage', { account_id, person_id: person, file })) as {
    message_id: number
  }
  await until('the message is stored', msMax, () =>
    stage.db.maybe(sql`select 1 from messages where account_id = ${account_id} and id = ${message_id}`),
  )
  const path = `/chats/platform:chat:${person}/messages/${message_id}/attachments/0?account_id=${account_id}`
  const get = (signal?: AbortSignal) =>
    fetch(`${stage.service.url}/api/v1${path}`, {
      headers: { authorization: `Bearer ${stage.tenant.key}` },
      ...(signal && { signal }),
    })
  // Each part takes a second, so that the file is never complete before the kill.
  await stage.fault({ on: 'download', fault: 'slow', seconds: 1, times: 0, account_id })
  const leaving = new AbortController()
  const waiting = get(leaving.signal).catch(() => undefined)
  await until('some of it is stored', msMax, async () => (await cachedRows()).chunks > 0)
  await stage.killWorker()
  await stage.ask('clearFaults', {})
  // As long as a caller waits, the file is wanted.
  leaving.abort()
  expect(await waiting).toBe(undefined)
  expect(await cachedRows()).toMatchObject({ files: 1, unfinished: 1, chunks: expect.any(Number) })

  await stage.db.run(sql`update media_files set wanted_at = wanted_at - interval '1 hour'`)
  expect(await forgetMedia(stage.db)).toBe(1)
  expect(await cachedRows()).toEqual({ files: 0, unfinished: 0, chunks: 0 })

  await stage.startWorker()
  await stage.untilLive(account_id)
  const whole = await get()
  expect(whole.status).toBe(200)
  expect(hashOf(Buffer.from(await whole.arrayBuffer()))).toBe(hashOfSeed(file.size, file.seed))
})
