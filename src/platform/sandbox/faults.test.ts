import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { heldAccount } from '../../../test/platform/account-store.ts'
import { expectAccepted, Recorder, within } from '../../../test/platform/conformance-recorder.ts'
import type { Chat, Session } from '../port.ts'
import { sandboxPlatform } from './adapter.ts'
import { directLink } from './direct-link.ts'
import type { NewFault } from './faults.ts'
import { writeMessage } from './person-acts.ts'
import { openWorld, type World } from './world.ts'

const worlds: World[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

async function setScene(fault?: NewFault) {
  const world = openWorld({ data_dir: null })
  worlds.push(world)
  const platform = sandboxPlatform(directLink(world))
  const recorder = new Recorder()
  const account = heldAccount({ account_id: 'acc_one', name: 'Sales desk' })
  const session = expectAccepted(await platform.connect(account, recorder))
  const { person_id } = world.addPerson({ name: 'Mara' })
  const chat_id: Chat['id'] = `${person_id}`
  expectAccepted(await session.openChat(chat_id))
  if (fault) world.addFault(fault)
  return { world, platform, account, recorder, session, person_id, chat_id }
}

function sendTo(session: Session, chat_id: Chat['id'], text = 'Hello') {
  return session.send({ chat_id, text, file: null, random_id: '1' })
}

describe('a fault', () => {
  test('strikes once unless another number is given', async () => {
    const { session, chat_id, world } = await setScene({ on: 'send', fault: 'flood_wait', seconds: 3 })
    expect(await sendTo(session, chat_id)).toEqual({
      kind: 'flood_wait',
      retry_after_seconds: 3,
      stops: 'sends',
    })
    expect(await sendTo(session, chat_id)).toMatchObject({ kind: 'accepted' })
    world.addFault({ on: 'send', fault: 'refuse', times: 2 })
    expect(await sendTo(session, chat_id)).toMatchObject({ kind: 'refused' })
    expect(await sendTo(session, chat_id)).toMatchObject({ kind: 'refused' })
    expect(await sendTo(session, chat_id)).toMatchObject({ kind: 'accepted' })
  })

  test('with times 0 strikes until it is cleared', async () => {
    const { session, chat_id, world } = await setScene({ on: 'send', fault: 'unavailable', times: 0 })
    for (let n = 0; n < 5; n++) expect(await sendTo(session, chat_id)).toMatchObject({ kind: 'unknown' })
    expect(world.journal(1)).toEqual([])
    world.clearFaults()
    expect(await sendTo(session, chat_id)).toMatchObject({ kind: 'accepted' })
  })

  test('does not strike another account, or another call', async () => {
    const { session, chat_id, world } = await setScene({ on: 'send', fault: 'refuse', account_id: 'acc_two' })
    world.addFault({ on: 'start', fault: 'refuse' })
    expect(await sendTo(session, chat_id)).toMatchObject({ kind: 'accepted' })
    expect(await session.openChat(chat_id)).toEqual({ kind: 'refused', reason: 'identity_ineligible' })
  })

  test('strikes in the order in which the faults were added', async () => {
    const { session, chat_id, world } = await setScene({ on: 'read_state', fault: 'flood_wait', seconds: 9 })
    world.addFault({ on: 'read_state', fault: 'refuse' })
    expect(await session.setReadState(chat_id, true)).toMatchObject({ kind: 'flood_wait' })
    expect(await session.setReadState(chat_id, true)).toMatchObject({ kind: 'refused' })
    expect(await session.setReadState(chat_id, true)).toMatchObject({ kind: 'accepted' })
  })

  test('that is impossible on a call is refused', async () => {
    const { world } = await setScene()
    expect(() => world.addFault({ on: 'send', fault: 'late' })).toThrow('late cannot happen on send')
    expect(() => world.addFault({ on: 'updates', fault: 'refuse' })).toThrow('cannot happen on updates')
    expect(() => world.addFault({ on: 'connect', fault: 'resend' })).toThrow(
      'resend cannot happen on connect',
    )
    expect(() => world.addFault({ on: 'send', fault: 'slow', error: 'PEER_FLOOD' })).toThrow('Only the fault')
  })

  test('slow delays one call, and not its neighbours', async () => {
    const { session, chat_id, world } = await setScene({ on: 'send', fault: 'slow', seconds: 0.2 })
    const slow = sendTo(session, chat_id, 'slow')
    expect(await within(100, sendTo(session, chat_id, 'quick'))).toMatchObject({ kind: 'accepted' })
    expect(await slow).toMatchObject({ kind: 'accepted' })
    expect(world.journal(1).map(({ text }) => text)).toEqual(['quick', 'slow'])
  })

  test('timeout_before does nothing, timeout_after does it; neither answers', async () => {
    const { session, chat_id, world } = await setScene({ on: 'send', fault: 'timeout_before' })
    world.addFault({ on: 'send', fault: 'timeout_after' })
    const before = sendTo(session, chat_id, 'before')
    const after = sendTo(session, chat_id, 'after')
    await expect(within(100, Promise.race([before, after]))).rejects.toThrow('No answer')
    expect(world.journal(1).map(({ text }) => text)).toEqual(['after'])
    await session.close()
    expect(await before).toMatchObject({ kind: 'unknown' })
    expect(await after).toMatchObject({ kind: 'unknown' })
  })

  test('resend does it and does not answer: only a client of the data centre sends again', async () => {
    const { session, chat_id, world } = await setScene({ on: 'send', fault: 'resend' })
    const sending = sendTo(session, chat_id)
    await expect(within(100, sending)).rejects.toThrow('No answer')
    expect(world.journal(1)).toHaveLength(1)
    await session.close()
    expect(await sending).toMatchObject({ kind: 'unknown' })
  })

  test('drop_after does it, and this session does not find out', async () => {
    const { session, chat_id, world, recorder } = await setScene({ on: 'read_state', fault: 'drop_after' })
    expect(await session.setReadState(chat_id, true)).toMatchObject({ kind: 'unknown' })
    expect((await recorder.closedReason).status).toBe('lost')
    expect(world.journal(1).map(({ kind }) => kind)).toEqual(['read_state'])
    expect(recorder.updatesTaken).toEqual([])
  })

  test('freeze on updates holds the stream and the pings', async () => {
    const { session, person_id, world, recorder } = await setScene({
      on: 'updates',
      fault: 'freeze',
      seconds: 0.3,
    })
    writeMessage(world, { account_id: 'acc_one', person_id, text: 'hello' })
    await sleep(20)
    await expect(within(100, session.ping())).rejects.toThrow('No answer')
    expect(recorder.texts).toEqual([])
    await recorder.until(() => recorder.texts.length === 1)
    expect(await session.ping()).toBe(true)
  })

  test('freeze that outlasts the session drops the calls made in it', async () => {
    const { session, chat_id, world } = await setScene({ on: 'send', fault: 'freeze', seconds: 0.1 })
    const sending = sendTo(session, chat_id)
    await sleep(20)
    await session.close()
    expect(await sending).toMatchObject({ kind: 'unknown' })
    await sleep(150)
    expect(world.journal(1)).toEqual([])
  })

  test('drop_after on updates cuts the connection after the client took them', async () => {
    const { person_id, world, recorder, platform, account } = await setScene({
      on: 'updates',
      fault: 'drop_after',
    })
    writeMessage(world, { account_id: 'acc_one', person_id, text: 'first' })
    await recorder.closedReason
    writeMessage(world, { account_id: 'acc_one', person_id, text: 'second' })
    const next = recorder.continued()
    expectAccepted(await platform.connect({ ...account, position: next.position }, next))
    await next.until(() => next.texts.length === 1)
    expect([recorder.texts, next.texts]).toEqual([['first'], ['second']])
  })
})
