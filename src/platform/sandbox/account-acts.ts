/** What an account can ask of the platform. Each returns immediately; the session sends the answer when `World.durable` resolves. */
import { Heap } from '../../lib/heap.ts'
import { isWellFormed, lengthOf } from '../../lib/text.ts'
import type { Identifier } from '../../rules/identifier.ts'
import type {
  AskedPerson,
  Chat,
  ChatPage,
  FilePlace,
  HistoryPage,
  Message,
  Outcome,
  Person,
  PlatformRefusal,
  Sent,
  Submission,
} from '../port.ts'
import { partBytes } from './calls.ts'
import type { KeptFile } from './entries.ts'
import { hasBytes, readFile } from './file-bytes.ts'
import { digitsOf } from './people.ts'
import { type Account, type Box, indexOfPost, type State } from './state.ts'
import { viewChat, viewMessage, viewPerson } from './view.ts'
import type { World } from './world.ts'

const textLengthMax = 4096
const int64 = /^(0|-?[1-9]\d{0,18})$/

export function accepted<T>(value: T): Outcome<T> {
  return { kind: 'accepted', value }
}

export function refused(reason: PlatformRefusal): Outcome<never> {
  return { kind: 'refused', reason }
}

/** Finds people by a phone number also where they do not show it. Nobody is found by an id. */
export function resolve(world: World, account: Account, { kind, value }: Identifier): Outcome<Person> {
  const { state } = world
  const found = find(state, { kind, value })
  if (found === undefined) return refused('username_not_found')
  // A public group has a username too, but is not a person.
  if (found < 0) return refused('identity_ineligible')
  return accepted(viewPerson(state, account, found))
}

function find(state: State, { kind, value }: Identifier): number | undefined {
  if (kind === 'username') return state.usernames.get(value.toLowerCase())
  return kind === 'phone' ? state.phones.get(digitsOf(value)) : undefined
}

/** By id, anybody: the sandbox has no access hashes. Under a name, only people with whom the account shares a chat. */
export function askPerson(
  { state }: World,
  account: Account,
  { person_id, identifier: { kind, value } }: { readonly person_id: string; readonly identifier: Identifier },
): AskedPerson | null {
  const id = Number(person_id)
  if (!state.people.has(id) || (kind !== 'id' && !sharesChat(state, account, id))) return null
  const person = viewPerson(state, account, id)
  if (kind === 'username') return { person, has_name: person.username?.toLowerCase() === value.toLowerCase() }
  const has_name = kind === 'id' || (person.phone !== null && digitsOf(person.phone) === digitsOf(value))
  return { person, has_name }
}

function sharesChat(state: State, { boxes }: Account, person_id: number): boolean {
  if (boxes.has(person_id)) return true
  return [...boxes.keys()].some((chat_id) => state.groups.get(chat_id)?.members.includes(person_id))
}

export function openChat(world: World, account: Account, person_id: string): Outcome<Chat> {
  const { state } = world
  const chat_id = Number(person_id)
  const person = state.people.get(chat_id)
  if (!person) return refused('chat_unavailable')
  if (person.kind !== 'person' || chat_id === account.person_id) return refused('identity_ineligible')
  const seq = state.journal.length + 1
  world.commit({ entry: 'start', seq, account_id: account.account_id, chat_id, at: world.nowText() })
  return viewBox(world, account, chat_id)
}

export function send(
  world: World,
  account: Account,
  { message, file }: { message: Omit<Submission, 'file'>; file: KeptFile | null },
): Outcome<Sent> {
  const { text, random_id } = message
  const chat_id = Number(message.chat_id)
  const refusal = refusalOf(world, account, chat_id)
  if (refusal) return refused(refusal)
  if (!isWellFormed(text) || lengthOf(text) > textLengthMax || (text.trim() === '' && !file)) {
    return refused('message_invalid')
  }
  if (!isInt64(random_id)) return refused('message_invalid')
  const first = world.dedupe ? findSent(world, account, random_id) : undefined // guard: random id accepted once
  if (first) return accepted(first)
  const wait = floodWait(world, account)
  if (wait > 0) return { kind: 'flood_wait', retry_after_seconds: wait, stops: 'sends' }
  const at = world.nowText()
  const message_id = account.last_message_id + 1
  const seq = world.state.journal.length + 1
  const { account_id } = account
  const delivery = world.takeDelivery(account_id)
  world.commit({
    entry: 'send',
    seq,
    account_id,
    chat_id,
    message_id,
    text,
    random_id,
    file,
    at,
    ...delivery,
  })
  return accepted({ message_id: String(message_id), at })
}

/** The message as which this random id was accepted. */
function findSent(world: World, account: Account, random_id: string): Sent | undefined {
  const message_id = account.sent_ids.get(random_id)
  if (message_id === undefined) return undefined
  const box = account.boxes.get(account.chat_of_message.get(message_id) ?? 0)
  const post = box?.posts[indexOfPost(box, message_id)]
  // Not even a message that was deleted since is sent again.
  return { message_id: String(message_id), at: post?.at ?? world.nowText() }
}

function isInt64(text: string): boolean {
  return int64.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text)
}

/** Why the account cannot write here, or null. It need not open a chat with a person first: knowing them is enough. */
function refusalOf(world: World, account: Account, chat_id: number): PlatformRefusal | null {
  if (chat_id < 0) return account.boxes.has(chat_id) ? null : 'chat_unavailable'
  const person = world.state.people.get(chat_id)
  if (!person || person.kind === 'deleted') return 'chat_unavailable'
  return person.behaviour === 'blocks' ? 'blocked_by_person' : null
}

/** Seconds until the account's flood rule lets it send again; 0 is now. */
function floodWait(world: World, account: Account): number {
  const rule = account.flood_rule
  if (!rule) return 0
  const [oldest] = account.sent_at
  if (oldest === undefined || account.sent_at.length < rule.sends_max) return 0
  const ms = Date.parse(oldest) + rule.seconds * 1000 - world.clock.now().getTime()
  return Math.max(0, Math.ceil(ms / 1000))
}

export function readHistory(account: Account, page: HistoryPage): Outcome<readonly Message[]> {
  const box = account.boxes.get(Number(page.chat_id))
  if (!box) return refused('chat_unavailable')
  const end = page.before ? indexOfPost(box, Number(page.before.message_id)) : box.posts.length
  const posts = box.posts.slice(Math.max(0, end - page.limit), end)
  return accepted(posts.reverse().map(viewMessage))
}

/** Pages by time of the last message, then by id. An update reports a chat that moves up meanwhile. */
export function listChats(
  world: World,
  account: Account,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Outcome<ChatPage> {
  let total = 0
  // Only a page is sorted: an account may have fifty thousand chats.
  const newest = new Heap<{ readonly box: Box; readonly order: string }>((a, b) =>
    a.order < b.order ? -1 : 1,
  )
  let found = 0
  // From the end, where most of the newest are: the others cost one comparison each.
  for (const box of [...account.boxes.values()].reverse()) {
    if (!isListed(box)) continue
    total++
    const least = found < limit ? undefined : newest.first()
    if (least && box.last_at < least.box.last_at) {
      found++
      continue
    }
    const order = orderOf(box)
    if (after !== null && order >= after) continue
    if (++found > limit) {
      if (order < (newest.first()?.order ?? '')) continue
      newest.takeFirst()
    }
    newest.add({ box, order })
  }
  const page: { readonly box: Box; readonly order: string }[] = []
  for (let one = newest.takeFirst(); one; one = newest.takeFirst()) page.unshift(one)
  const chats = page.map(({ box }) => ({ chat: viewChat(world.state, account, box), last: lastOf(box) }))
  return accepted({ chats, next: found > limit ? (page.at(-1)?.order ?? null) : null, total })
}

/** A private chat that was opened but has no messages is not listed, as on Telegram. */
function isListed({ chat_id, posts }: Box): boolean {
  return chat_id < 0 || posts.length > 0
}

function lastOf({ posts }: Box): Message | null {
  const post = posts.at(-1)
  return post ? viewMessage(post) : null
}

/** An empty chat comes last. */
export function orderOf(box: Box): string {
  return `${box.last_at || '0'}_${box.chat_id}`
}

/** The people the account has a private chat with. */
export function listContacts(world: World, account: Account): Outcome<readonly Person[]> {
  const ids = [...account.boxes.keys()].filter((chat_id) => chat_id > 0)
  return accepted(ids.sort((a, b) => a - b).map((id) => viewPerson(world.state, account, id)))
}

export function setReadState(
  world: World,
  account: Account,
  {
    chat_id,
    unread,
    up_to_message_id: upTo,
  }: { readonly chat_id: string; readonly unread: boolean; readonly up_to_message_id?: string | undefined },
): Outcome<{ readonly unread_count: number }> {
  const box = account.boxes.get(Number(chat_id))
  if (!box) return refused('chat_unavailable')
  const { account_id } = account
  const seq = world.state.journal.length + 1
  const delivery = world.takeDelivery(account_id)
  const at = world.nowText()
  const read = { unread, ...(upTo !== undefined && { up_to_message_id: Number(upTo) }) }
  world.commit({ entry: 'read_state', seq, account_id, chat_id: box.chat_id, ...read, at, ...delivery })
  return accepted({ unread_count: box.unread_count })
}

/** A part of a file that a person sent. */
export function readFilePart(
  account: Account,
  { chat_id, message_id, index, offset }: FilePlace & { readonly offset: number },
): Outcome<{ readonly size: number; readonly data: string }> {
  const box = account.boxes.get(Number(chat_id))
  const post = box?.posts[indexOfPost(box, Number(message_id))]
  const file = post?.message_id === Number(message_id) ? post.attachments[index] : undefined
  if (!file || !hasBytes(file)) return refused('file_unavailable')
  const bytes = readFile(file, offset, partBytes)
  return accepted({ size: file.size, data: Buffer.from(bytes).toString('base64') })
}

function viewBox(world: World, account: Account, chat_id: number): Outcome<Chat> {
  const box = account.boxes.get(chat_id)
  return box ? accepted(viewChat(world.state, account, box)) : refused('chat_unavailable')
}
