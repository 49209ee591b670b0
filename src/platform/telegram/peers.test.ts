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

test('finds people again after a start, by number, username and phone', async () => {
  const { store } = await openPeers(ada)
  const peers = await Peers.load(store)
  const person = { id: '7', name: 'Ada L', username: 'Ada', phone: '+4930123', kind: 'person' }
  expect(peers.findPerson('7')).toEqual(person)
  expect(peers.findByUsername('aDA')).toEqual(person)
  expect(peers.findByPhone('4930123')).toEqual(person)
  expect(peers.findInput('7')).toMatchObject({ userId: 7, accessHash: Long.fromNumber(70) })
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

test('finds a username that moved only with its new owner', async () => {
  const { peers } = await openPeers(ada)
  peers.rename({ _: 'updateUserName', userId: 7, firstName: 'Ada', lastName: '', usernames: [] })
  expect(peers.findByUsername('ada')).toBeUndefined()
  peers.learn({ users: [{ ...ada, id: 8 }] })
  expect(peers.findByUsername('ada')?.id).toBe('8')
})
