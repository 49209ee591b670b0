import type { tl } from '@mtcute/core'
import Long from 'long'
import { expect, test } from 'vitest'
import { MemoryAccountStore } from '../../../test/platform/account-store.ts'
import { Peers } from './peers.ts'

const ada: tl.RawUser = {
  _: 'user',
  ...{
    id: 7,
    accessHash: Long.fromNumber(70),
    firstName: 'Ada',
    lastName: 'L',
    username: 'Ada',
    phone: '4930123',
  },
}

const hourMs = 3_600_000

/** `at` is the time of the session, which a test may move. */
async function openPeers(...users: tl.RawUser[]) {
  const store = new MemoryAccountStore()
  const clock = { at: 0 }
  const peers = await Peers.load(store, () => clock.at)
  peers.learn({ users })
  await peers.save()
  return { store, peers, clock }
}

test('finds people again after a start by number, and keeps no phone number', async () => {
  const { store } = await openPeers(ada)
  expect([...store.peers.values()].join()).not.toContain('4930123')
  // What a release before this one stored has it.
  const stored = JSON.stringify({ name: 'Ada L', hash: '70', username: 'Ada', phone: '4930123' })
  await store.writePeers([{ number: '7', text: stored }])
  const peers = await Peers.load(store)
  expect(peers.findInput('7')).toMatchObject({ userId: 7, accessHash: Long.fromNumber(70) })
  peers.learn({ users: [ada] })
  const person = { id: '7', name: 'Ada L', username: 'Ada', phone: null, kind: 'person' }
  expect(peers.findPerson('7')).toEqual(person)
  expect(peers.with([]).findPerson('7')).toEqual(person)
  expect(peers.with([ada]).findPerson('7')).toEqual({ ...person, phone: '+4930123' })
})

test('a kept name is nobody’s until Telegram shows it in this session, and an hour later it is nobody’s again', async () => {
  const { store } = await openPeers(ada)
  const clock = { at: 0 }
  const peers = await Peers.load(store, () => clock.at)
  const kept = { id: '7', name: 'Ada L', username: null, phone: null, kind: 'person', stale: true }
  const shown = { id: '7', name: 'Ada L', username: 'Ada', phone: null, kind: 'person' }
  expect(peers.findPerson('7')).toEqual(kept)
  // Without a usable access hash the names may be old as well.
  peers.learn({ users: [{ ...ada, min: true }] })
  expect(peers.findPerson('7')).toEqual(kept)
  peers.learn({ users: [ada] })
  clock.at += hourMs - 1
  expect(peers.findPerson('7')).toEqual(shown)
  clock.at += 1
  expect(peers.findPerson('7')).toEqual(kept)
  const usernames: tl.RawUsername[] = [{ _: 'username', username: 'Augusta', active: true }]
  peers.rename({ _: 'updateUserName', userId: 7, firstName: 'Augusta', lastName: '', usernames })
  expect(peers.findPerson('7')).toEqual({ ...shown, name: 'Augusta', username: 'Augusta' })
})

test('never keeps the service user, whose chat brings login codes', async () => {
  const { store, peers } = await openPeers({ ...ada, id: 777_000 })
  expect(store.peers.size).toBe(0)
  expect(peers.findInput('777000')).toBeUndefined()
})

test('stores only changes', async () => {
  const { store, peers } = await openPeers(ada)
  const { phone: _, ...withoutPhone } = ada
  peers.learn({ users: [withoutPhone] })
  await peers.save()
  expect(store.writes).toEqual([1])
  peers.learn({ users: [{ ...ada, firstName: 'Augusta' }] })
  await peers.save()
  expect(store.writes).toEqual([1, 1])
})

test('a person without a usable access hash replaces no stored one', async () => {
  const { peers } = await openPeers(ada)
  peers.learn({ users: [{ ...ada, min: true, accessHash: Long.fromNumber(1) }] })
  expect(peers.findInput('7')).toMatchObject({ accessHash: Long.fromNumber(70) })
})

test('shows a name that passed on with its new owner only, also after a start', async () => {
  const { store, peers } = await openPeers(ada)
  peers.learn({ users: [{ ...ada, id: 8 }] })
  await peers.save()
  expect(peers.findPerson('8')).toMatchObject({ username: 'Ada' })
  // Ada may have another one by now.
  expect(peers.findPerson('7')).toMatchObject({ username: null, stale: true })
  const stored = Object.fromEntries([...store.peers].map(([number, text]) => [number, JSON.parse(text)]))
  expect(stored).toEqual({
    7: { name: 'Ada L', hash: '70' },
    8: { name: 'Ada L', hash: '70', username: 'Ada' },
  })
})
