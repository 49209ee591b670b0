import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hangMs, until } from '../../../test/harness/process.ts'
import type { Tenant } from '../../../test/harness/service.ts'
import { openNeighbour, openWorkplace, type Workplace } from '../../../test/harness/worker.ts'
import { hashOf } from '../../../test/platform/conformance-downloads.ts'
import { sql } from '../../db/sql.ts'
import { noteFlood } from '../../ledger/floods.ts'
import { revokeLease } from '../../ledger/leases.ts'
import { makeFile } from '../../platform/sandbox/control-files.ts'
import { deleteMessage, editMessage, writeMessage } from '../../platform/sandbox/person-acts.ts'
import { forgetMedia } from './media.ts'

let place: Workplace
let tenant: Tenant
let account_id: string
beforeAll(async () => {
  place = await openWorkplace({ env: { PARLEY_MEDIA_CACHE_MB: '50' } })
  tenant = await place.service.tenant()
  await place.work()
  account_id = await place.connected(tenant)
})
afterAll(() => place.close())

type Given = Parameters<typeof makeFile>[0]

interface Sent {
  readonly person_id: number
  readonly message_id: number
  readonly path: string
}

/** A person sends a file; returns its address once the message is stored. */
async function sendFile(given: Given, to = account_id): Promise<Sent> {
  const person_id = place.person()
  const file = makeFile(given)
  const message_id = writeMessage(place.sandbox.world, { account_id: to, person_id, text: '', file })
  await untilStored(to, person_id)
  const path = `/chats/platform:chat:${person_id}/messages/${message_id}/attachments/0?account_id=${to}`
  return { person_id, message_id, path }
}

function untilStored(to: string, person_id: number): Promise<unknown> {
  return until('the message is stored', hangMs, async () =>
    (await place.messages(to)).find(({ chat_id }) => chat_id === String(person_id)),
  )
}

interface Got {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
  readonly code: string | undefined
}

async function get(path: string, headers: Record<string, string> = {}, key = tenant.key): Promise<Got> {
  const response = await fetch(`${place.service.url}/api/v1${path}`, {
    headers: { authorization: `Bearer ${key}`, ...headers },
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  const code = response.ok ? undefined : (JSON.parse(bytes.toString()) as { code: string }).code
  return { status: response.status, headers: response.headers, bytes, code }
}

/** Undefined if the file was deleted while it was sent: then its response ends early. */
function whole(path: string): Promise<Got | undefined> {
  return get(path).catch(() => undefined)
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function rows(): Promise<{ files: number; chunks: number }> {
  return place.db.one(sql`
    select (select count(*)::int from media_files) as files, (select count(*)::int from media_chunks) as chunks`)
}

describe('GET /chats/{chat_id}/messages/{message_id}/attachments/{index}', () => {
  test.each([1, 262_143, 262_144, 262_145, 26_214_400])(
    '200 with a file of %i bytes, whole and in ranges',
    async (size) => {
      const { path } = await sendFile({ size, seed: size })
      const whole = await get(path)
      expect(whole.status).toBe(200)
      expect(whole.headers.get('content-length')).toBe(String(size))
      expect(sha256(whole.bytes)).toBe(hashOf(size, size))
      const cuts = [0, Math.floor(size / 3), Math.min(262_144, size), size].sort((a, b) => a - b)
      const parts: Buffer[] = []
      for (const [n, end] of cuts.slice(1).entries()) {
        const start = cuts[n] ?? 0
        if (end <= start) continue
        const part = await get(path, { range: `bytes=${start}-${end - 1}` })
        expect(part.status).toBe(206)
        expect(part.headers.get('content-range')).toBe(`bytes ${start}-${end - 1}/${size}`)
        expect(part.bytes.length).toBe(end - start)
        parts.push(part.bytes)
      }
      expect(sha256(Buffer.concat(parts))).toBe(hashOf(size, size))
      const last = await get(path, { range: 'bytes=-1' })
      expect(last.bytes).toEqual(whole.bytes.subarray(-1))
    },
  )

  test('416 for a range past its end; the whole file for several ranges, or for a conditional one', async () => {
    const { path } = await sendFile({ size: 9, seed: 1 })
    const none = await get(path, { range: 'bytes=9-' })
    expect([none.status, none.code, none.headers.get('content-range')]).toEqual([
      416,
      'range_not_satisfiable',
      'bytes */9',
    ])
    for (const headers of [
      { range: 'bytes=0-1,3-4' },
      { range: 'lines=1-2' },
      { range: 'bytes=0-1', 'if-range': '"x"' },
    ]) {
      expect((await get(path, headers)).status).toBe(200)
    }
  })

  test('two callers cause one download, and the next is served without the platform', async () => {
    const { path } = await sendFile({ size: 2_000_000, seed: 3 })
    const [one, two] = await Promise.all([get(path), get(path)])
    expect([sha256(one.bytes), sha256(two.bytes)]).toEqual([hashOf(2_000_000, 3), hashOf(2_000_000, 3)])
    place.fault({ on: 'download', fault: 'refuse', account_id })
    expect((await get(path)).status).toBe(200)
    place.sandbox.world.clearFaults()
  })

  test('404 for an unknown message, file or chat, and after the message is deleted, which deletes the file too', async () => {
    const { path, person_id, message_id } = await sendFile({ size: 300_000, seed: 4 })
    expect((await get(path)).status).toBe(200)
    const before = await rows()
    for (const wrong of [
      path.replace('attachments/0', 'attachments/1'),
      path.replace(`messages/${message_id}/`, 'messages/999999/'),
      path.replace(`chat:${person_id}/`, 'chat:999999/'),
    ]) {
      expect((await get(wrong)).status).toBe(404)
    }
    deleteMessage(place.sandbox.world, { account_id, person_id, message_id })
    // A request before that would queue it again and leave a row without bytes for an hour.
    await until('its deletion is stored', hangMs, () =>
      place.db.maybe(sql`
        select 1 from messages where account_id = ${account_id} and id = ${message_id} and deleted_at is not null`),
    )
    expect((await get(path)).status).toBe(404)
    expect(await rows()).toEqual({ files: before.files - 1, chunks: before.chunks - 2 })
  })

  test('an edit that replaces the file is served; the same name and size do not hide it', async () => {
    const { path, person_id, message_id } = await sendFile({ size: 300_000, seed: 5 })
    expect(sha256((await get(path)).bytes)).toBe(hashOf(300_000, 5))
    const file = makeFile({ size: 300_000, seed: 6 })
    editMessage(place.sandbox.world, { account_id, person_id, message_id, text: 'better', file })
    await until('the new one is served', hangMs, async () => {
      const answer = await whole(path)
      return answer && sha256(answer.bytes) === hashOf(300_000, 6)
    })
  })

  test('200 after PostgreSQL crashed during the download, which empties the cache', async () => {
    const { path, message_id } = await sendFile({ size: 300_000, seed: 14 })
    place.fault({ on: 'download', fault: 'slow', seconds: 1, times: 1, account_id })
    const answer = get(path)
    await until('it is wanted', hangMs, () =>
      place.db.maybe(sql`select 1 from media_files where message_id = ${message_id}`),
    )
    await place.db.run(sql`truncate media_files, media_chunks`)
    const { status, bytes } = await answer
    expect([status, sha256(bytes)]).toEqual([200, hashOf(300_000, 14)])
  })

  test('404 where the platform no longer has it, 413 over 25 MiB, and neither leaves a chunk', async () => {
    const { chunks } = await rows()
    const gone = await sendFile({ size: 9, seed: 7 })
    place.fault({ on: 'download', fault: 'refuse', account_id })
    expect(await get(gone.path)).toMatchObject({ status: 404, code: 'not_found' })
    const large = await sendFile({ size: 26_214_401, seed: 8 })
    expect(await get(large.path)).toMatchObject({ status: 413, code: 'attachment_too_large' })
    // The message says less than the platform has.
    await place.db.run(sql`
      update messages set attachments = jsonb_set(attachments, '{0,size}', '5') where account_id = ${account_id} and id = ${large.message_id}`)
    expect(await get(large.path)).toMatchObject({ status: 413, code: 'attachment_too_large' })
    expect((await rows()).chunks).toBe(chunks)
  })

  test('503 in a flood wait, which counts as reading, and while the session is not live', async () => {
    const { path } = await sendFile({ size: 9, seed: 9 })
    place.fault({ on: 'download', fault: 'flood_wait', seconds: 40, account_id })
    const flooded = await get(path)
    expect([flooded.status, flooded.code, Number(flooded.headers.get('retry-after')) > 0]).toEqual([
      503,
      'flood_wait',
      true,
    ])
    expect(await get(path)).toMatchObject({ status: 503, code: 'flood_wait' })
    await place.db.run(sql`update account_hosts set reading_flood_until = null`)
    await place.db.run(sql`update account_hosts set observed_at = null where account_id = ${account_id}`)
    expect(await get(path)).toMatchObject({ status: 503, code: 'session_unavailable' })
    await place.db.run(
      sql`update account_hosts set observed_at = real_now() where account_id = ${account_id}`,
    )
    expect((await get(path)).status).toBe(200)
  })

  test("404 or 403 for another workspace's file", async () => {
    const { path } = await sendFile({ size: 9, seed: 10 })
    const other = await place.service.tenant('Other')
    expect(await get(path, {}, other.key)).toMatchObject({ status: 403, code: 'account_unavailable' })
    const own = await place.connected(other)
    const elsewhere = path.replace(account_id, own)
    expect(await get(elsewhere, {}, other.key)).toMatchObject({ status: 404, code: 'chat_not_found' })
  })

  test('400 for a malformed message id or index', async () => {
    const { path, message_id } = await sendFile({ size: 9, seed: 11 })
    for (const wrong of [
      'attachments/-1',
      'attachments/x',
      'attachments/1.5',
      'attachments/00',
      'attachments/9999999',
    ]) {
      expect(await get(path.replace('attachments/0', wrong))).toMatchObject({
        status: 400,
        code: 'invalid_request',
      })
    }
    for (const id of ['0', '-1', 'x', '99999999999999999999']) {
      expect((await get(path.replace(`messages/${message_id}/`, `messages/${id}/`))).status).toBe(400)
    }
  })

  const shown: [string, string, string][] = [
    ['a PNG', Buffer.from('89504e470d0a1a0a', 'hex').toString('base64'), 'image/png'],
    ['a JPEG', Buffer.from('ffd8ffe0', 'hex').toString('base64'), 'image/jpeg'],
    ['a GIF', btoa('GIF89a'), 'image/gif'],
    ['a WebP', btoa('RIFF0000WEBPVP8 '), 'image/webp'],
    ['a voice message', btoa(`OggS${'\0'.repeat(24)}OpusHead`), 'audio/ogg'],
    ['an MP3', btoa('ID3\x04\0'), 'audio/mpeg'],
    ['an MP4', btoa('\0\0\0\x20ftypisom'), 'video/mp4'],
  ]
  test.each(shown)('%s is shown, whatever its name says', async (_, data, type) => {
    const { path } = await sendFile({ data, file_name: 'page.html', media_type: 'text/html' })
    const { status, headers } = await get(path)
    expect([status, headers.get('content-type')]).toEqual([200, type])
    expect(headers.get('content-disposition')).toBe("inline; filename*=UTF-8''page.html")
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('content-security-policy')).toContain("default-src 'none'; sandbox")
  })

  const hidden: [string, string][] = [
    ['HTML', '<!doctype html><script>alert(1)</script>'],
    ['SVG', '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'],
    ['a PDF', '%PDF-1.7'],
    ['a HEIC', '\0\0\0\x20ftypheic'],
    ['an Ogg file of another kind', 'OggS'],
    ['text that starts with a blank and HTML', '  <html>'],
  ]
  test.each(hidden)('%s is saved, never shown', async (_, text) => {
    const name = 'a"\r\nX-Evil: 1\u202e;.png'
    const { path } = await sendFile({
      data: btoa(text),
      file_name: name,
      media_type: 'image/png',
      kind: 'photo',
    })
    const { status, headers } = await get(path)
    expect([status, headers.get('content-type')]).toEqual([200, 'application/octet-stream'])
    expect(headers.get('content-disposition')).toBe(
      "attachment; filename*=UTF-8''a%22%20X-Evil%3A%201%20%3B.png",
    )
    expect(headers.get('x-evil')).toBeNull()
  })
})

/** Looks at the size of the cache again and again until it is stopped. */
function watchCache(most: { bytes: number; looks: number }): { stop(): Promise<void> } {
  let isOver = false
  const look = async () => {
    const { bytes } = await place.db.one<{ bytes: number }>(sql`
      select coalesce(sum(octet_length(bytes)), 0)::float8 as bytes from media_chunks`)
    most.bytes = Math.max(most.bytes, bytes)
    most.looks++
  }
  const watching = (async () => {
    for (; !isOver; await sleep(10)) await look()
    await look()
  })()
  return {
    stop() {
      isOver = true
      return watching
    },
  }
}

describe('the cache', () => {
  /** How much passes through the cache; on demand, because two GiB take minutes. */
  const passedBytes = Number(process.env.TEST_MEDIA_BYTES ?? 75_000_000)

  test('stays below its bound at every moment, forgets the oldest first, and refuses no send', async () => {
    const size = 25_000_000
    const most = { bytes: 0, looks: 0 }
    const watch = watchCache(most)
    const kept: string[] = []
    for (let n = 0; n * size < passedBytes; n++) {
      const { path } = await sendFile({ size, seed: 20 + n })
      kept.push(path)
      expect((await get(path)).status).toBe(200)
    }
    await watch.stop()
    process.stdout.write(
      `${kept.length} files: at most ${most.bytes} bytes in the cache, in ${most.looks} looks\n`,
    )
    expect(most.bytes).toBeLessThanOrEqual(50 * 1024 * 1024)
    const ids = await place.db.rows<{ size: string }>(sql`select size from media_files where size = ${size}`)
    expect(ids).toHaveLength(2)
    place.fault({ on: 'download', fault: 'unavailable', times: 0, account_id })
    expect((await get(kept.at(-1) ?? '')).status).toBe(200)
    expect((await get(kept[0] ?? '')).status).toBe(503)
    place.sandbox.world.clearFaults()
    const person_id = place.person()
    place.write(account_id, person_id, 'hello')
    await untilStored(account_id, person_id)
    const form = new FormData()
    form.set('account_id', account_id)
    form.set('chat_id', `platform:chat:${person_id}`)
    form.set('attachments', new File([new Uint8Array(1_000_000)], 'offer.pdf', { type: 'application/pdf' }))
    const sent = await fetch(`${place.service.url}/api/v1/messages`, {
      method: 'POST',
      body: form,
      headers: { authorization: `Bearer ${tenant.key}`, 'idempotency-key': 'full-cache' },
    })
    expect(sent.status).toBe(200)
  })

  test('forgets a file after a week, and after an hour what was never finished', async () => {
    const week = await sendFile({ size: 9, seed: 30 })
    const fresh = await sendFile({ size: 9, seed: 31 })
    for (const { path } of [week, fresh]) await get(path)
    const { person_id, message_id } = await sendFile({ size: 9, seed: 32 })
    await place.db.run(sql`
      update media_files set ended_at = ended_at - interval '7 days 1 minute' where message_id = ${week.message_id}`)
    await place.db.run(sql`
      insert into media_files (id, account_id, chat_id, message_id, index, workspace_id, wanted_at, size)
      values (gen_random_uuid(), ${account_id}, ${person_id}, ${message_id}, 0, ${tenant.workspace_id},
        clock_timestamp() - interval '61 minutes', 9)`)
    await place.db.run(sql`
      insert into media_chunks select id, 0, 'half' from media_files where message_id = ${message_id}`)
    const before = await rows()
    expect(await forgetMedia(place.db)).toBe(2)
    expect(await rows()).toEqual({ files: before.files - 2, chunks: before.chunks - 2 })
    expect(await forgetMedia(place.db)).toBe(0)
  })
})

describe('the worker', () => {
  test('that loses its lease halfway leaves no chunks, and the next worker fetches the file', async () => {
    const other = await place.service.tenant('Losing')
    const losing = await place.connected(other)
    const { path, message_id } = await sendFile({ size: 20_000_000, seed: 40 }, losing)
    const reading = get(path, {}, other.key)
    await until('some of it is stored', hangMs, async () => {
      const { n } = await place.db.one<{ n: number }>(sql`
        select count(*)::int as n from media_chunks join media_files f on f.id = file_id where message_id = ${message_id}`)
      return n > 3 || undefined
    })
    await place.db.transaction((tx) => revokeLease(tx, losing))
    const { status, bytes } = await reading
    // The response has the whole file or none of it.
    if (status === 200) expect(sha256(bytes)).toBe(hashOf(20_000_000, 40))
    else expect(status).toBe(503)
    await until('it is fetched', hangMs, async () => (await get(path, {}, other.key)).status === 200)
    expect(sha256((await get(path, {}, other.key)).bytes)).toBe(hashOf(20_000_000, 40))
    const { n } = await place.db.one<{ n: number }>(sql`
      select count(*)::int as n from media_chunks join media_files f on f.id = file_id where message_id = ${message_id}`)
    expect(n).toBe(Math.ceil(20_000_000 / 262_144))
  })

  test('a file that another process fetches reaches a caller of this one', async () => {
    const neighbour = await openNeighbour(place.service.database.url)
    const { path } = await sendFile({ size: 500_000, seed: 41 })
    expect(sha256((await get(path)).bytes)).toBe(hashOf(500_000, 41))
    await neighbour.close()
  })

  test('records a flood wait for reading only', async () => {
    await noteFlood(place.db, account_id, { retry_after_seconds: 60, stops: 'sends' })
    const { path } = await sendFile({ size: 9, seed: 42 })
    expect((await get(path)).status).toBe(200)
    await place.db.run(sql`update account_hosts set flood_until = null`)
  })
})
