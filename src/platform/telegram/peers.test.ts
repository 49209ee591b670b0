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

async function openPeers(...users: tl.RawUser[]) {
  const store = new MemoryAccountStore()
  const peers = await Peers.load(store)
  peers.learn({ users })
  await peers.save()
  return { store, peers }
}

test('finds people again after a start by number, and keeps no phone number', async () => {
  const { store } = await openPeers(ada)
  expect([...store.peers.values()].join()).not.toContain('4930123')
  // What a release before this one stored has it.
  const stored = JSON.stringify({ name: 'Ada L', hash: '70', username: 'Ada', phone: '4930123' })
  await store.writePeers([{ number: '7', text: stored }])
  const peers = await Peers.load(store)
  const person = { id: '7', name: 'Ada L', username: 'Ada', phone: null, kind: 'person' }
  expect(peers.findPerson('7')).toEqual(person)
  expect(peers.with([]).findPerson('7')).toEqual(person)
  expect(peers.with([ada]).findPerson('7')).toEqual({ ...person, phone: '+4930123' })
  expect(peers.findInput('7')).toMatchObject({ userId: 7, accessHash: Long.fromNumber(70) })
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
  for (const known of [peers, await Peers.load(store)]) {
    expect(known.findPerson('7')).toMatchObject({ username: null })
    expect(known.findPerson('8')).toMatchObject({ username: 'Ada' })
  }
})
