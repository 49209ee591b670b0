/** How an account sees the world: the port's people, chats, messages and updates, built from the state. */
import type { ChatNumber } from '../../lib/shapes.ts'
import type { Attachment, Chat, Message, Person, Update } from '../port.ts'
import type { WorldFile } from './entries.ts'
import { showsPhone } from './people.ts'
import type { Account, Box, Happening, Post, State } from './state.ts'

export function viewPerson(state: State, account: Account, person_id: number): Person {
  const person = state.people.get(person_id)
  return {
    id: String(person_id),
    name: person?.name ?? '',
    username: person?.username ?? null,
    phone: person && showsPhone(person, account) ? person.phone : null,
    kind: person_id === account.person_id ? 'self' : (person?.kind ?? 'deleted'),
  }
}

export function viewChat(state: State, account: Account, box: Box): Chat {
  const { chat_id, unread_count } = box
  const self = viewPerson(state, account, account.person_id)
  if (chat_id > 0) {
    const person = viewPerson(state, account, chat_id)
    const { name, username } = person
    return { id: `${chat_id}`, kind: 'private', name, username, unread_count, participants: [self, person] }
  }
  const group = state.groups.get(chat_id)
  return {
    id: `${chat_id}`,
    kind: 'group',
    name: group?.name ?? '',
    username: group?.username ?? null,
    unread_count,
    participants: [self, ...(group?.members ?? []).map((id) => viewPerson(state, account, id))],
  }
}

export function viewMessage(post: Post): Message {
  return {
    id: String(post.message_id),
    text: post.text,
    is_sender: post.is_sender,
    sender_id: String(post.person_id),
    timestamp: post.at,
    edited_at: post.edited_at,
    attachments: post.attachments.filter((file) => file.timer_seconds === undefined).map(viewFile),
    random_id: post.random_id,
  }
}

function viewFile({ seed: _, data: __, dc: ___, ...attachment }: WorldFile): Attachment {
  return attachment
}

/** A message that arrived while no session was open is as live as any other: it lies after the stored position. */
export function viewUpdate(state: State, account: Account, happening: Happening): Update {
  const chat_id: ChatNumber = `${happening.chat_id}`
  switch (happening.kind) {
    case 'message': {
      const box = account.boxes.get(happening.chat_id)
      const chat = box ? viewChat(state, account, { ...box, unread_count: happening.unread_count }) : null
      if (!chat) throw new Error(`The account has no chat ${chat_id}.`)
      return { kind: 'message', chat, message: viewMessage(happening.post), live: true }
    }
    case 'sent': {
      const { random_id, message_id, at } = happening.post
      return { kind: 'sent', random_id: random_id ?? '', chat_id, message_id: String(message_id), at }
    }
    case 'edited':
      return { kind: 'edited', chat_id, message: viewMessage(happening.post) }
    case 'deleted':
      return { kind: 'deleted', chat_id, message_ids: happening.message_ids.map(String) }
    case 'read_by_them': {
      const { message_id, at } = happening
      return { kind: 'read_by_them', chat_id, up_to_message_id: String(message_id), at }
    }
    case 'unread':
      return { kind: 'unread', chat_id, unread_count: happening.unread_count }
    case 'person':
      return { kind: 'person', person: viewPerson(state, account, happening.chat_id) }
  }
}
