/** The chats that clients name in their requests. */
import type { tl } from '@mtcute/core'
import type { Account } from '../../../src/platform/sandbox/state.ts'
import { type Channel, chatIdOfChannel } from './channels.ts'
import { refuse } from './connection.ts'
import type { Store } from './store.ts'
import { accessHashOf } from './views.ts'

/** A private chat or a basic group. */
export function chatIdOf(account: Account, peer: tl.TypeInputPeer): number {
  switch (peer._) {
    case 'inputPeerSelf':
      return account.person_id
    case 'inputPeerChat':
      return -peer.chatId
    case 'inputPeerUser':
      if (peer.accessHash.eq(accessHashOf(account, peer.userId))) return peer.userId // guard: a number needs its access hash
  }
  return refuse('PEER_ID_INVALID')
}

export function requireChannel(
  { state }: Store,
  account: Account,
  peer: tl.TypeInputChannel | tl.RawInputPeerChannel,
): Channel {
  if (peer._ !== 'inputChannel' && peer._ !== 'inputPeerChannel') return refuse('CHANNEL_INVALID')
  const channel = state.channels.get(peer.channelId)
  const isKnown = channel && peer.accessHash.eq(accessHashOf(account, chatIdOfChannel(peer.channelId)))
  if (!isKnown) return refuse('CHANNEL_INVALID')
  if (!channel.account_ids.includes(account.account_id)) return refuse('CHANNEL_PRIVATE')
  return channel
}

/** Null: none given. Undefined: it does not resolve. */
export function offsetOf(store: Store, account: Account, peer: tl.TypeInputPeer): number | null | undefined {
  if (peer._ === 'inputPeerEmpty') return null
  try {
    return peer._ === 'inputPeerChannel'
      ? chatIdOfChannel(requireChannel(store, account, peer).channel_id)
      : chatIdOf(account, peer)
  } catch {
    return undefined
  }
}
