/** The position of an account's updates, and how a container of Telegram's relates to it. Pure. */
import type { tl } from '@mtcute/core'

export interface UpdateState {
  readonly pts: number
  readonly qts: number
  readonly date: number
  readonly seq: number
}

export function stateOf({ pts, qts, date, seq }: tl.updates.TypeState): UpdateState {
  return { pts, qts, date, seq }
}

/** As the port's `position`. */
export function writePosition({ pts, qts, date, seq }: UpdateState): string {
  return [pts, qts, date, seq].join('.')
}

export function readPosition(position: string): UpdateState {
  const [pts, qts, date, seq, ...more] = position.split('.').map(Number)
  const numbers = [pts, qts, date, seq]
  if (more.length > 0 || !numbers.every(Number.isSafeInteger)) throw new Error('The position is not ours.')
  return { pts, qts, date, seq } as UpdateState
}

/** A container with the same parts, whichever of Telegram's seven it was. */
export interface Container {
  readonly updates: readonly tl.TypeUpdate[]
  readonly users: readonly tl.TypeUser[]
  readonly chats: readonly tl.TypeChat[]
  /** 0: it has no position in the order of containers. */
  readonly seqStart: number
  readonly seq: number
  readonly date: number
}

/** Null: there is more than Telegram pushes. `send.ts` turns an `updateShortSentMessage` into a message. */
export function unpack(container: tl.TypeUpdates): Container | null {
  const nothing = { updates: [], users: [], chats: [], seqStart: 0, seq: 0 }
  switch (container._) {
    case 'updatesTooLong':
      return null
    case 'updates':
      return { ...container, seqStart: container.seq }
    case 'updatesCombined':
      return container
    case 'updateShort':
      return { ...nothing, date: container.date, updates: [container.update] }
    case 'updateShortSentMessage':
      return { ...nothing, date: container.date }
    default:
      return { ...nothing, date: container.date, updates: [lengthen(container)] }
  }
}

/** Updates without a position in the account's order that are still shown. */
const shownKinds: ReadonlySet<tl.TypeUpdate['_']> = new Set([
  'updateMessageID',
  'updateUserName',
  'updateDialogUnreadMark',
])

/**
 * Without what is never shown and moves nothing: supergroups and channels push every message that anybody writes there, and
 * contacts push whenever they come and go. Null: nothing is left of it.
 */
export function reduceContainer(container: Container): Container | null {
  const updates = container.updates.filter((update) => placeOf(update) || shownKinds.has(update._))
  return updates.length > 0 || container.seq > 0 ? { ...container, updates } : null // guard: nothing is queued for strangers
}

/** A short message is a message without the people it names. */
function lengthen(short: tl.RawUpdateShortMessage | tl.RawUpdateShortChatMessage): tl.RawUpdateNewMessage {
  const { id, out, date, message, pts, ptsCount } = short
  const place: Pick<tl.RawMessage, 'peerId' | 'fromId'> =
    short._ === 'updateShortMessage'
      ? { peerId: { _: 'peerUser', userId: short.userId } }
      : {
          peerId: { _: 'peerChat', chatId: short.chatId },
          fromId: { _: 'peerUser', userId: short.fromId },
        }
  return {
    _: 'updateNewMessage',
    message: { _: 'message', id, ...(out && { out }), ...place, date, message },
    pts,
    ptsCount,
  }
}

/** `hole`: something before it is missing. `known`: it contains nothing new. */
type Fit = 'hole' | 'known' | { readonly fresh: readonly tl.TypeUpdate[]; readonly state: UpdateState }

export function fitContainer(state: UpdateState, { updates, seqStart, seq, date }: Container): Fit {
  if (seqStart > state.seq + 1) return 'hole' // guard: a container that is missing
  if (seqStart !== 0 && seqStart <= state.seq) return 'known'
  let { pts } = state
  const fresh: tl.TypeUpdate[] = []
  for (const update of updates) {
    const place = placeOf(update)
    if (place && place.pts > pts) {
      // guard: an update that is missing
      if (place.pts - place.count !== pts) return 'hole'
      pts = place.pts
    } else if (place && place.count > 0) continue // guard: an update that is known
    fresh.push(update)
  }
  return { fresh, state: { ...state, pts, seq: seq || state.seq, date: Math.max(date, state.date) } }
}

/** An update's position in the account's order. Channels have their own order. */
function placeOf(update: tl.TypeUpdate): { pts: number; count: number } | undefined {
  if (!('pts' in update && 'ptsCount' in update) || update._.includes('Channel')) return undefined
  return { pts: update.pts as number, count: update.ptsCount as number }
}

/** The people and groups of new messages. Unless all of them are known, their chats could not be answered. */
export function peersNamed({ updates }: Container): tl.TypePeer[] {
  return updates.flatMap((update) => {
    if (update._ !== 'updateNewMessage' || update.message._ !== 'message') return []
    const { peerId, fromId } = update.message
    return fromId ? [peerId, fromId] : [peerId]
  })
}
