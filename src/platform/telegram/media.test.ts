/** Downloads from the data centre on loopback, with everything that goes wrong on the way. */
import { describe, expect, test } from 'vitest'
import { hashOf } from '../../../test/platform/conformance-downloads.ts'
import { within } from '../../../test/platform/conformance-recorder.ts'
import { openMediaScene } from '../../../test/platform/media-scene.ts'
import { makeFile } from '../sandbox/control-files.ts'
import { editMessage, writeMessage } from '../sandbox/person-acts.ts'

const gone = { kind: 'refused', reason: 'file_unavailable' }

describe('a download', () => {
  test('of a photo, a voice message and 25 MiB arrives whole, over one more connection', async () => {
    const { centre, connect, sendFile, fetch } = await openMediaScene()
    const { session } = await connect()
    const photo = sendFile({ kind: 'photo', size: 300_000, seed: 1, width: 1280, height: 960 })
    const voice = sendFile({ kind: 'voice', size: 20_000, seed: 2, seconds: 7 })
    const large = sendFile({ size: 26_214_400, seed: 3 })
    expect(await fetch(session, photo)).toBe(hashOf(300_000, 1))
    expect(await fetch(session, voice)).toBe(hashOf(20_000, 2))
    expect(await fetch(session, large)).toBe(hashOf(26_214_400, 3))
    expect(centre.connections()).toEqual([2, 2])
  })

  test('from another data centre needs one key exchange and one export, also for the next session', async () => {
    const { centre, connect, sendFile, fetch, fault, keysOf } = await openMediaScene()
    const { session } = await connect()
    const place = sendFile({ size: 900_000, seed: 4, dc: 4 })
    const both = await Promise.all([fetch(session, place), fetch(session, place)])
    expect(both).toEqual([hashOf(900_000, 4), hashOf(900_000, 4)])
    expect(centre.connections()).toEqual([2, 4])
    expect(keysOf(4)).toHaveLength(1)
    await session.close()
    fault({ on: 'export', fault: 'refuse', error: 'DC_ID_INVALID', times: 0 })
    const next = await connect()
    expect(await fetch(next.session, place)).toBe(hashOf(900_000, 4))
    expect(keysOf(4)).toHaveLength(1)
  })

  test("keeps the account's own key as the login wrote it", async () => {
    const { connect, sendFile, fetch, store } = await openMediaScene()
    const { session } = await connect()
    const before = JSON.parse(String(store.session))
    await fetch(session, sendFile({ size: 9, seed: 1 }))
    expect(JSON.parse(String(store.session))).toEqual(before)
    await fetch(session, sendFile({ size: 9, seed: 1, dc: 4 }))
    const { others, ...rest } = JSON.parse(String(store.session))
    expect(rest).toEqual(before)
    expect(Object.keys(others)).toEqual(['4'])
  })

  test('exports the login again if the data centre has forgotten it', async () => {
    const { centre, connect, sendFile, fetch, keysOf } = await openMediaScene()
    const { session } = await connect()
    const place = sendFile({ size: 9, seed: 5, dc: 4 })
    await fetch(session, place)
    for (const key of keysOf(4)) centre.store.commit({ ...key, account_id: null })
    expect(await fetch(session, place)).toBe(hashOf(9, 5))
  })

  test('follows a file that has moved; one at an unknown data centre is gone', async () => {
    const { connect, sendFile, fetch, fault } = await openMediaScene()
    const { session } = await connect()
    const moved = sendFile({ size: 600_000, seed: 6 })
    fault({ on: 'download', fault: 'refuse', error: '303 FILE_MIGRATE_4', times: 3 })
    expect(await fetch(session, moved)).toBe(hashOf(600_000, 6))
    expect(await fetch(session, sendFile({ size: 9, seed: 1, dc: 9 }))).toMatchObject(gone)
    expect(await session.ping()).toBe(true)
  })

  test('renews an expired reference once', async () => {
    const { world, connect, sendFile, fetch, fault } = await openMediaScene()
    const { session } = await connect()
    const place = sendFile({ size: 2_000_000, seed: 7 })
    fault({ on: 'download', fault: 'refuse', error: 'FILE_REFERENCE_EXPIRED', times: 3 })
    expect(await fetch(session, place)).toBe(hashOf(2_000_000, 7))
    fault({ on: 'download', fault: 'refuse', error: 'FILE_REFERENCE_EXPIRED', times: 6 })
    expect(await fetch(session, place)).toMatchObject(gone)
    world.clearFaults()
  })

  test('does not mix two files: one that an edit replaces meanwhile is gone', async () => {
    const { world, connect, sendFile, account_id, person_id } = await openMediaScene()
    const { session } = await connect()
    const place = sendFile({ size: 5_000_000, seed: 8 })
    const outcome = await session.download(place)
    if (outcome.kind !== 'accepted') throw new Error(outcome.kind)
    const chunks = outcome.value.chunks[Symbol.asyncIterator]()
    await chunks.next()
    const file = makeFile({ size: 5_000_000, seed: 9 })
    editMessage(world, { account_id, person_id, message_id: Number(place.message_id), text: 'x', file })
    world.addFault({ on: 'download', fault: 'refuse', error: 'FILE_REFERENCE_EXPIRED', times: 3 })
    let last: unknown
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) last = next.value
    expect(last).toMatchObject(gone)
  })

  test('of a file that is cut short fails, also one of a single part', async () => {
    const { world, connect, fetch, account_id, person_id } = await openMediaScene()
    const { session } = await connect()
    const bytes = Buffer.alloc(50_000, 'x').toString('base64')
    for (const size of [50_001, 2_000_000]) {
      const file = { ...makeFile({ data: bytes }), size }
      const id = writeMessage(world, { account_id, person_id, text: '', file })
      const place = { chat_id: `${person_id}`, message_id: String(id), index: 0 } as const
      expect(await fetch(session, place)).toMatchObject({ kind: 'unknown' })
    }
    expect(await session.ping()).toBe(true)
  })

  test('sits out short waits and retries after server errors; a long wait counts as reading', async () => {
    const { connect, sendFile, fetch, fault } = await openMediaScene()
    const { session } = await connect()
    const place = sendFile({ size: 600_000, seed: 10 })
    fault({ on: 'download', fault: 'flood_wait', seconds: 1 })
    fault({ on: 'download', fault: 'refuse', error: '420 FLOOD_PREMIUM_WAIT_1' })
    fault({ on: 'download', fault: 'refuse', error: '-503 TIMEOUT' })
    expect(await fetch(session, place)).toBe(hashOf(600_000, 10))
    fault({ on: 'download', fault: 'flood_wait', seconds: 11, times: 3 })
    expect(await fetch(session, place)).toEqual({
      kind: 'flood_wait',
      retry_after_seconds: 11,
      stops: 'reading',
    })
    expect(await fetch(session, place)).toBe(hashOf(600_000, 10))
  })

  test('an export that must wait is reported, and works later; a refused one does not end the session', async () => {
    const { connect, sendFile, fetch, fault } = await openMediaScene()
    const { session, recorder } = await connect()
    const place = sendFile({ size: 9, seed: 11, dc: 4 })
    fault({ on: 'export', fault: 'flood_wait', seconds: 145 })
    expect(await fetch(session, place)).toMatchObject({ kind: 'flood_wait', retry_after_seconds: 145 })
    fault({ on: 'export', fault: 'refuse', error: 'DC_ID_INVALID' })
    expect(await fetch(session, place)).toMatchObject({ kind: 'refused' })
    fault({ on: 'export', fault: 'refuse', error: 'A_NAME_THAT_IS_NOT_LISTED' })
    expect(await fetch(session, place)).toMatchObject({ kind: 'unknown' })
    expect(await fetch(session, place)).toBe(hashOf(9, 11))
    expect(recorder.closedWith).toBeNull()
  })

  test('continues over a new connection after a cut; after the second it fails, and the session continues', async () => {
    const { connect, sendFile, fetch, fault, world } = await openMediaScene()
    const { session, recorder } = await connect()
    const place = sendFile({ size: 3_000_000, seed: 12 })
    fault({ on: 'download', fault: 'drop_after' })
    expect(await fetch(session, place)).toBe(hashOf(3_000_000, 12))
    fault({ on: 'download', fault: 'drop_after', times: 0 })
    expect(await fetch(session, place)).toMatchObject({ kind: 'unknown' })
    world.clearFaults()
    expect(await fetch(session, place)).toBe(hashOf(3_000_000, 12))
    expect(await session.ping()).toBe(true)
    expect(recorder.closedWith).toBeNull()
  })

  test('a connection that the data centre refuses stops downloads for a minute, and not the session', async () => {
    const { centre, connect, sendFile, fetch, account_id } = await openMediaScene()
    const { session, recorder } = await connect()
    const place = sendFile({ size: 600_000, seed: 16 })
    const wait = { kind: 'flood_wait', retry_after_seconds: 60, stops: 'reading' }
    centre.hostilities.add({ case: 'error_429', on: 'upload.getFile', account_id })
    expect(await fetch(session, place)).toEqual(wait)
    const dials = centre.clientPorts().length
    expect(await fetch(session, place)).toEqual(wait)
    expect(centre.clientPorts()).toHaveLength(dials)
    expect(await session.ping()).toBe(true)
    expect(recorder.closedWith).toBeNull()
  })

  test('a login that the other data centre refuses for good does not end the session', async () => {
    const { connect, sendFile, fetch, fault } = await openMediaScene()
    const { session, recorder } = await connect()
    fault({ on: 'download', fault: 'refuse', error: '401 SESSION_REVOKED' })
    expect(await fetch(session, sendFile({ size: 9, seed: 1 }))).toMatchObject({ kind: 'unknown' })
    expect(recorder.closedWith).toBeNull()
  })

  test('writes no byte without the lease', async () => {
    const { connect, sendFile, lease } = await openMediaScene()
    const { session } = await connect()
    const outcome = await session.download(sendFile({ size: 20_000_000, seed: 13 }))
    if (outcome.kind !== 'accepted') throw new Error(outcome.kind)
    const kinds: string[] = []
    const reading = async () => {
      for await (const chunk of outcome.value.chunks) {
        kinds.push(chunk.kind)
        lease.held = false
      }
    }
    await within(15_000, reading())
    expect(kinds.length).toBeLessThan(8)
    expect(['not_written', 'unknown']).toContain(kinds.at(-1))
  })

  test('a file with a timer is never requested', async () => {
    const { connect, sendFile, fetch, fault } = await openMediaScene()
    const { session } = await connect()
    fault({ on: 'download', fault: 'refuse', error: '401 SESSION_REVOKED' })
    expect(
      await fetch(session, sendFile({ kind: 'photo', size: 9, seed: 1, timer_seconds: 5 })),
    ).toMatchObject(gone)
  })

  test('a file of another chat is not returned', async () => {
    const { connect, sendFile } = await openMediaScene()
    const { session } = await connect()
    const place = sendFile({ size: 9, seed: 14 })
    expect(await session.download({ ...place, chat_id: '999' })).toMatchObject(gone)
  })

  test('ends with the session at every step: no hang, nothing unhandled, no socket left', async () => {
    const { connect, sendFile, fetch } = await openMediaScene()
    for (let n = 0; n < 20; n++) {
      const { session } = await connect()
      const own = fetch(session, sendFile({ size: 2_000_000, seed: 15 }))
      const foreign = fetch(session, sendFile({ size: 2_000_000, seed: 15, dc: 4 }))
      await new Promise((resolve) => setTimeout(resolve, n * 15))
      await session.close()
      for (const ended of await Promise.all([own, foreign])) {
        if (ended === hashOf(2_000_000, 15)) continue
        expect(['unknown', 'not_written']).toContain((ended as { kind: string }).kind)
      }
    }
  })
})
