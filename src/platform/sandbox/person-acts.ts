/** What people do to an account when a call of the control address makes them. */
import { ApiError } from '../../lib/errors.ts'
import type { WorldFile } from './entries.ts'
import { type Account, type Box, indexOfPost, type Post } from './state.ts'
import type { World } from './world.ts'

interface ByPerson {
  readonly account_id: string
  readonly person_id: number
}

interface Writing extends ByPerson {
  /** The group; without it the message is private. */
  readonly chat_id?: number | undefined
  readonly text: string
  readonly file?: WorldFile | undefined
  /** The time of the message; now by default. */
  readonly at?: string | undefined
}

/** A person writes to the account. */
export function writeMessage(world: World, writing: Writing): number {
  const { account_id, person_id, text, file } = writing
  const account = world.requireAccount(account_id)
  world.requirePerson(person_id)
  const chat_id = writing.chat_id ?? person_id
  if (chat_id !== person_id) requireMember(world, { account_id, chat_id, person_id })
  const message_id = account.last_message_id + 1
  const at = writing.at === undefined ? world.nowText() : new Date(writing.at).toISOString()
  const delivery = world.takeDelivery(account_id)
  world.commit({
    entry: 'written',
    account_id,
    chat_id,
    person_id,
    message_id,
    text,
    at,
    ...(file && { file }),
    ...delivery,
  })
  return message_id
}

/** The account's user writes to a person on its phone: a message of the account that no session of ours has sent. */
export function writeFromPhone(
  world: World,
  { account_id, person_id, text, at }: ByPerson & { readonly text: string; readonly at?: string | undefined },
): number {
  const account = world.requireAccount(account_id)
  world.requirePerson(person_id)
  const message_id = account.last_message_id + 1
  world.commit({
    entry: 'written',
    account_id,
    chat_id: person_id,
    person_id: null,
    message_id,
    text,
    at: at === undefined ? world.nowText() : new Date(at).toISOString(),
    ...world.takeDelivery(account_id),
  })
  return message_id
}

function requireMember(world: World, of: { account_id: string; chat_id: number; person_id: number }): void {
  const group = world.state.groups.get(of.chat_id)
  if (group?.account_id !== of.account_id) {
    throw new ApiError('not_found', { detail: 'The account has no such group.' })
  }
  if (!group.members.includes(of.person_id)) {
    throw new ApiError('invalid_request', { detail: 'The person is not a member of this group.' })
  }
}

/** The person reads what the account wrote, up to a message or all of it. Returns how far they have read. */
export function readMessages(
  world: World,
  { account_id, person_id, up_to_message_id }: ByPerson & { up_to_message_id?: number | undefined },
): number {
  const { box } = requirePrivateChat(world, { account_id, person_id })
  const upTo = up_to_message_id ?? Number.MAX_SAFE_INTEGER
  const last = box.posts.findLast((post) => post.is_sender && post.message_id <= upTo)
  if (last && last.message_id > box.read_by_them) {
    const delivery = world.takeDelivery(account_id)
    const up_to = last.message_id
    const at = world.nowText()
    world.commit({
      entry: 'read_by_them',
      account_id,
      chat_id: person_id,
      up_to_message_id: up_to,
      at,
      ...delivery,
    })
  }
  return box.read_by_them
}

/** The person edits a message of their own. */
export function editMessage(
  world: World,
  {
    account_id,
    person_id,
    message_id,
    text,
    file,
  }: ByPerson & {
    message_id: number
    text: string
    file?: WorldFile | undefined
  },
): void {
  const { box, post } = requirePost(world, { account_id, person_id, message_id })
  if (post.person_id !== person_id) {
    throw new ApiError('invalid_request', { detail: 'The person did not write this message.' })
  }
  const delivery = world.takeDelivery(account_id)
  const at = world.nowText()
  world.commit({
    entry: 'edited',
    account_id,
    chat_id: box.chat_id,
    message_id,
    text,
    at,
    ...(file && { file }),
    ...delivery,
  })
}

/** The person deletes a message for both sides: their own, or any of the private chat. */
export function deleteMessage(
  world: World,
  { account_id, person_id, message_id }: ByPerson & { message_id: number },
): void {
  const { box } = requirePost(world, { account_id, person_id, message_id })
  const delivery = world.takeDelivery(account_id)
  const at = world.nowText()
  const message_ids = [message_id]
  world.commit({ entry: 'deleted', account_id, chat_id: box.chat_id, message_ids, at, ...delivery })
}

function requirePrivateChat(
  world: World,
  { account_id, person_id }: ByPerson,
): { account: Account; box: Box } {
  const account = world.requireAccount(account_id)
  world.requirePerson(person_id)
  const box = account.boxes.get(person_id)
  if (!box) throw new ApiError('not_found', { detail: 'The account has no chat with this person.' })
  return { account, box }
}

function requirePost(
  world: World,
  { account_id, person_id, message_id }: ByPerson & { message_id: number },
): { box: Box; post: Post } {
  const account = world.requireAccount(account_id)
  world.requirePerson(person_id)
  const box = account.boxes.get(account.chat_of_message.get(message_id) ?? 0)
  const post = box?.posts[indexOfPost(box, message_id)]
  if (!box || !post || (box.chat_id !== person_id && post.person_id !== person_id)) {
    throw new ApiError('not_found', { detail: 'The account has no such message with this person.' })
  }
  return { box, post }
}
