/** Files that take longer than a limit: a silent data centre, an idle connection, a caller who waits too long. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeFile } from '../../src/platform/sandbox/control-files.ts'
import { writeMessage } from '../../src/platform/sandbox/person-acts.ts'
import { hangMs, until } from '../harness/process.ts'
import { openWorkplace, type Workplace } from '../harness/worker.ts'
import { hashOf } from '../platform/conformance-downloads.ts'
import { openMediaScene } from '../platform/media-scene.ts'

describe('Telegram', () => {
  test('a part without an answer is requested once more; then the download ends, and the session continues', async () => {
    const { connect, sendFile, fetch, fault, world } = await openMediaScene()
    const { session, recorder } = await connect()
    const place = sendFile({ size: 600_000, seed: 1 })
    fault({ on: 'download', fault: 'timeout_before' })
    expect(await fetch(session, place)).toBe(hashOf(600_000, 1))
    fault({ on: 'download', fault: 'timeout_before', times: 0 })
    expect(await fetch(session, place)).toMatchObject({ kind: 'unknown' })
    world.clearFaults()
    expect(await session.ping()).toBe(true)
    expect(recorder.closedWith).toBeNull()
  })

  test('an idle connection closes, the session does not, and the next file opens another', async () => {
    const { centre, connect, sendFile, fetch } = await openMediaScene()
    const { session, recorder } = await connect()
    const place = sendFile({ size: 9, seed: 2 })
    expect(await fetch(session, place)).toBe(hashOf(9, 2))
    await expect.poll(() => centre.connections(), { timeout: 20_000 }).toEqual([2])
    expect(await fetch(session, place)).toBe(hashOf(9, 2))
    expect(recorder.closedWith).toBeNull()
  })
})

describe('a caller', () => {
  let place: Workplace
  beforeAll(async () => {
    place = await openWorkplace()
    await place.work()
  })
  afterAll(() => place.close())

  test('gets 503 after the wait, and the file later: the download continues', async () => {
    const tenant = await place.service.tenant()
    const account_id = await place.connected(tenant)
    const person_id = place.person()
    const file = makeFile({ size: 300_000, seed: 3 })
    const id = writeMessage(place.sandbox.world, { account_id, person_id, text: '', file })
    await place.untilStored(account_id, 1)
    place.fault({ on: 'download', fault: 'slow', seconds: 5, account_id })
    const path = `/chats/platform:chat:${person_id}/messages/${id}/attachments/0?account_id=${account_id}`
    const get = () => place.service.get(path, { key: tenant.key })
    expect(await get()).toMatchObject({ status: 503, body: { code: 'session_unavailable' } })
    await until('it is there', hangMs, async () => (await get()).status === 200)
  })
})
