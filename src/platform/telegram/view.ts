/** The port's messages, chats and updates, made from Telegram's. Pure; omits everything about channels and login codes. */
import type { tl } from '@mtcute/core'
import type { ChatNumber } from '../../lib/shapes.ts'
import type { Attachment, AttachmentKind, Chat, Message, Person, Update } from '../port.ts'
import { type KnownPeople, serviceUserId } from './peers.ts'

/** The account whose view it is. */
export interface Viewer {
  readonly self: Person
  readonly peers: KnownPeople
}

export function timeOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString()
}

/** Undefined: a channel or supergroup, the user's own saved messages, or Telegram's service chat. */
export function findChatNumber(peer: tl.TypePeer, self_id: string): ChatNumber | undefined {
  if (peer._ === 'peerChat') return `${-peer.chatId}`
  if (peer._ !== 'peerUser' || String(peer.userId) === self_id) return undefined
  if (peer.userId === serviceUserId) return undefined // guard: the service chat is not shown
  return `${peer.userId}`
}

/** The people of shown chats who are named by these messages. Of all others nothing is kept. */
export function peopleIn(messages: readonly tl.TypeMessage[], self_id: string): Set<number> {
  return new Set(
    messages.flatMap((message) => {
      if (message._ !== 'message' || findChatNumber(message.peerId, self_id) === undefined) return []
      const { peerId, fromId } = message
      return [peerId, fromId].flatMap((peer) => (peer?._ === 'peerUser' ? [peer.userId] : []))
    }),
  )
}

/** The messages that these updates carry. */
export function messagesIn(updates: readonly tl.TypeUpdate[]): tl.TypeMessage[] {
  return updates.flatMap((update) =>
    update._ === 'updateNewMessage' || update._ === 'updateEditMessage' ? [update.message] : [],
  )
}

/** Updates carry no unread count, and groups no members. */
export function viewChat({ self, peers }: Viewer, id: ChatNumber, unread_count: number | null): Chat {
  if (Number(id) < 0) {
    return { id, kind: 'group', name: peers.groupName(id), username: null, unread_count, participants: null }
  }
  const person = peers.findPerson(id) ?? stranger(id)
  const { name, username } = person
  return { id, kind: 'private', name, username, unread_count, participants: [self, person] }
}

function stranger(id: ChatNumber): Person {
  return { id, name: '', username: null, phone: null, kind: 'person', stale: true }
}

export function viewMessage(self: Person, message: tl.RawMessage, random_id: string | null = null): Message {
  const { attachments, word } = viewMedia(message.media)
  return {
    id: String(message.id),
    text: [message.message, word].filter(Boolean).join('\n'),
    is_sender: message.out ?? false,
    sender_id: senderOf(self, message),
    timestamp: timeOf(message.date),
    // guard: a reaction is no edit
    edited_at: message.editDate && !message.editHide ? timeOf(message.editDate) : null,
    attachments,
    random_id,
  }
}

function senderOf(self: Person, { out, fromId, peerId }: tl.RawMessage): string | null {
  if (fromId?._ === 'peerUser') return String(fromId.userId)
  if (out) return self.id
  return peerId._ === 'peerUser' ? String(peerId.userId) : null
}

/** Media that is not a file, as a word. */
const words: Readonly<Record<string, string>> = {
  messageMediaGeo: '[location]',
  messageMediaGeoLive: '[location]',
  messageMediaVenue: '[location]',
  messageMediaContact: '[contact]',
  messageMediaPoll: '[poll]',
  messageMediaDice: '[dice]',
  messageMediaGame: '[game]',
  messageMediaInvoice: '[invoice]',
  messageMediaStory: '[story]',
  messageMediaGiveaway: '[giveaway]',
  messageMediaGiveawayResults: '[giveaway]',
  messageMediaPaidMedia: '[paid media]',
  messageMediaToDo: '[checklist]',
  messageMediaVideoStream: '[video stream]',
  messageMediaUnsupported: '[unsupported message]',
}

interface Media {
  readonly attachments: readonly Attachment[]
  readonly word: string
}

function viewMedia(media: tl.TypeMessageMedia | undefined): Media {
  if (media?._ === 'messageMediaPhoto') {
    const photo = media.photo?._ === 'photo' ? media.photo : undefined
    // A self-destructing one is already gone, or shows once.
    if (!photo || media.ttlSeconds !== undefined) return { attachments: [], word: '[photo]' }
    return { attachments: [viewPhoto(photo)], word: '' }
  }
  if (media?._ === 'messageMediaDocument') {
    const document = media.document?._ === 'document' ? media.document : undefined
    return document && media.ttlSeconds === undefined
      ? { attachments: [viewDocument(document)], word: '' }
      : { attachments: [], word: '[file]' }
  }
  return { attachments: [], word: (media && words[media._]) ?? '' }
}

function viewPhoto({ sizes }: tl.RawPhoto): Attachment {
  const whole = findWholeSize(sizes)
  return {
    index: 0,
    kind: 'photo',
    file_name: 'photo',
    media_type: 'image/jpeg',
    size: whole?.size ?? 0,
    ...(whole && { width: whole.width, height: whole.height }),
  }
}

interface WholeSize {
  readonly type: string
  readonly width: number
  readonly height: number
  readonly size: number
}

/** The largest of the sizes in which Telegram keeps a photo. */
export function findWholeSize(sizes: readonly tl.TypePhotoSize[]): WholeSize | undefined {
  const whole = sizes.flatMap((each): WholeSize[] => {
    if (each._ !== 'photoSize' && each._ !== 'photoSizeProgressive') return []
    const size = each._ === 'photoSize' ? each.size : Math.max(0, ...each.sizes)
    return [{ type: each.type, width: each.w, height: each.h, size }]
  })
  return whole.sort((one, other) => other.width * other.height - one.width * one.height)[0]
}

function viewDocument({ attributes, mimeType, size }: tl.RawDocument): Attachment {
  const named = attributes.find((each) => each._ === 'documentAttributeFilename')
  const kind = attributes.map(kindOf).find((each) => each !== undefined)
  const file_name = kind ?? (named?._ === 'documentAttributeFilename' ? named.fileName : 'file')
  return { index: 0, kind: kind ?? 'file', file_name, media_type: mimeType, size, ...measuresOf(attributes) }
}

function kindOf(attribute: tl.TypeDocumentAttribute): AttachmentKind | undefined {
  if (attribute._ === 'documentAttributeSticker') return 'sticker'
  if (attribute._ === 'documentAttributeVideo') return 'video'
  return attribute._ === 'documentAttributeAudio' && attribute.voice ? 'voice' : undefined
}

function measuresOf(
  attributes: readonly tl.TypeDocumentAttribute[],
): Pick<Attachment, 'width' | 'height' | 'seconds'> {
  for (const each of attributes) {
    if (each._ === 'documentAttributeVideo') {
      return { width: each.w, height: each.h, seconds: Math.round(each.duration) }
    }
    if (each._ === 'documentAttributeImageSize') return { width: each.w, height: each.h }
    if (each._ === 'documentAttributeAudio') return { seconds: each.duration }
  }
  return {}
}

/** A batch of Telegram's updates as the port's, in their order. `at` is the time of updates without one. */
export function viewUpdates(viewer: Viewer, updates: readonly tl.TypeUpdate[], at: number): Update[] {
  const randomIds = new Map<number, string>()
  const messages = new Map<number, tl.RawMessage>()
  for (const update of updates) {
    if (update._ === 'updateMessageID') randomIds.set(update.id, update.randomId.toString())
    if (update._ === 'updateNewMessage' && update.message._ === 'message') {
      messages.set(update.message.id, update.message)
    }
  }
  return updates.flatMap((update): Update[] => {
    switch (update._) {
      case 'updateMessageID':
        return [viewSent(viewer, update, { message: messages.get(update.id), at })]
      case 'updateNewMessage':
        return viewNew(viewer, update.message, randomIds)
      case 'updateEditMessage':
        return viewEdit(viewer, update.message)
      case 'updateDeleteMessages':
        return [{ kind: 'deleted', chat_id: null, message_ids: update.messages.map(String), uncounted: true }]
      default:
        return viewReading(viewer, update, at)
    }
  })
}

function viewSent(
  { self }: Viewer,
  { id, randomId }: tl.RawUpdateMessageID,
  { message, at }: { message: tl.RawMessage | undefined; at: number },
): Update {
  return {
    kind: 'sent',
    random_id: randomId.toString(),
    chat_id: (message && findChatNumber(message.peerId, self.id)) ?? null,
    message_id: String(id),
    at: timeOf(message?.date ?? at),
  }
}

/** A service message contains no text that a person wrote. */
function viewNew(viewer: Viewer, message: tl.TypeMessage, randomIds: ReadonlyMap<number, string>): Update[] {
  if (message._ !== 'message') return []
  const isOfService = message.peerId._ === 'peerUser' && message.peerId.userId === serviceUserId
  if (isOfService && !message.out) return [{ kind: 'login_code', at: timeOf(message.date) }]
  const chat_id = findChatNumber(message.peerId, viewer.self.id)
  if (chat_id === undefined) return []
  const seen = viewMessage(viewer.self, message, randomIds.get(message.id) ?? null)
  return [{ kind: 'message', chat: viewChat(viewer, chat_id, null), message: seen, live: true }]
}

/** Telegram hides an edit that changes nothing visible, as with reactions. */
function viewEdit({ self }: Viewer, message: tl.TypeMessage): Update[] {
  const chat_id = message._ === 'message' ? findChatNumber(message.peerId, self.id) : undefined
  if (message._ !== 'message' || chat_id === undefined) return []
  // guard: an edit that changes nothing shown
  if (message.editHide || !message.editDate) return []
  return [{ kind: 'edited', chat_id, message: viewMessage(self, message) }]
}

function viewReading({ self, peers }: Viewer, update: tl.TypeUpdate, at: number): Update[] {
  switch (update._) {
    case 'updateReadHistoryOutbox': {
      const chat_id = findChatNumber(update.peer, self.id)
      if (chat_id === undefined) return []
      return [{ kind: 'read_by_them', chat_id, up_to_message_id: String(update.maxId), at: timeOf(at) }]
    }
    case 'updateReadHistoryInbox': {
      const chat_id = findChatNumber(update.peer, self.id)
      if (chat_id === undefined) return []
      const { maxId, stillUnreadCount: unread_count } = update
      return [{ kind: 'unread', chat_id, unread_count, ...(maxId > 0 && { read_up_to: String(maxId) }) }]
    }
    case 'updateDialogUnreadMark': {
      const { peer, unread } = update
      const chat_id = peer._ === 'dialogPeer' ? findChatNumber(peer.peer, self.id) : undefined
      return chat_id === undefined ? [] : [{ kind: 'unread', chat_id, unread_count: unread ? 1 : 0 }]
    }
    case 'updateUserName': {
      const person = peers.findPerson(`${update.userId}`)
      return person ? [{ kind: 'person', person }] : []
    }
    default:
      return []
  }
}
