/** How each log entry changes the world: the same live and on replay. */
import { addDue, stream, streamDue, takeDue } from './dues.ts'
import type {
  AccountEntry,
  DeletedEntry,
  EditedEntry,
  Entry,
  GroupEntry,
  KeptFile,
  ReadByThemEntry,
  ReadStateEntry,
  SeededEntry,
  SendEntry,
  StartEntry,
  WorldFile,
  WrittenEntry,
} from './entries.ts'
import { useFault } from './faults.ts'
import { digitsOf, reactions, type WorldPerson } from './people.ts'
import {
  type Account,
  type Box,
  type Happening,
  indexOfPost,
  openBox,
  type Post,
  requireAccount,
  type State,
} from './state.ts'

export function apply(state: State, entry: Entry): void {
  if ('due_id' in entry && entry.entry !== 'streamed') takeDue(state, entry.due_id)
  switch (entry.entry) {
    case 'person':
      addPerson(state, entry.person)
      break
    case 'person_changed':
      for (const person of [...entry.former, entry.person]) changePerson(state, person)
      break
    case 'account':
      addAccount(state, entry)
      break
    case 'group':
      addGroup(state, entry)
      break
    case 'send':
      applySend(state, entry)
      break
    case 'start':
      record(state, entry, null, null)
      openBox(requireAccount(state, entry.account_id), entry.chat_id)
      break
    case 'read_state':
      applyReadState(state, entry)
      break
    case 'written':
      applyWritten(state, entry)
      break
    case 'seeded':
      applySeeded(state, entry)
      break
    case 'read_by_them':
      applyReadByThem(state, entry)
      break
    case 'edited':
      applyEdited(state, entry)
      break
    case 'deleted':
      applyDeleted(state, entry)
      break
    case 'streamed':
      streamDue(state, entry.due_id)
      break
    case 'fault':
      state.faults = [...state.faults, entry.fault]
      state.last_fault_id = entry.fault.fault_id
      break
    case 'fault_used':
      state.faults = useFault(state.faults, entry.fault_id)
      break
    case 'faults_cleared':
      state.faults = []
      break
    case 'flood_rule': {
      const account = requireAccount(state, entry.account_id)
      account.flood_rule = entry.rule
      account.sent_at = []
    }
  }
}

function addPerson(state: State, person: WorldPerson): void {
  state.people.set(person.person_id, person)
  state.last_person_id = Math.max(state.last_person_id, person.person_id)
  if (person.username !== null) state.usernames.set(person.username.toLowerCase(), person.person_id)
  if (person.phone !== null) state.phones.set(digitsOf(person.phone), person.person_id)
}

/** Only accounts that have the person in a chat get an update, as on Telegram. */
function changePerson(state: State, person: WorldPerson): void {
  const { person_id } = person
  const before = state.people.get(person_id)
  const forget = (names: Map<string, number>, name: string | undefined) => {
    if (name !== undefined && names.get(name) === person_id) names.delete(name)
  }
  forget(state.usernames, before?.username?.toLowerCase())
  forget(state.phones, before?.phone ? digitsOf(before.phone) : undefined)
  addPerson(state, person)
  for (const account of state.accounts.values()) {
    const shared = [...account.boxes.keys()].some(
      (chat_id) => chat_id === person_id || state.groups.get(chat_id)?.members.includes(person_id),
    )
    if (shared) stream(state, account, undefined, [{ kind: 'person', chat_id: person_id, person }])
  }
}

function addAccount(state: State, { account_id, person }: AccountEntry): void {
  addPerson(state, person)
  state.account_of_person.set(person.person_id, account_id)
  state.accounts.set(account_id, {
    account_id,
    person_id: person.person_id,
    boxes: new Map(),
    chat_of_message: new Map(),
    sent_ids: new Map(),
    stream: [],
    last_message_id: 0,
    last_at: '',
    flood_rule: null,
    sent_at: [],
  })
}

function addGroup(state: State, group: GroupEntry): void {
  state.groups.set(group.chat_id, group)
  state.last_group_id = Math.min(state.last_group_id, group.chat_id)
  if (group.username !== null) state.usernames.set(group.username.toLowerCase(), group.chat_id)
  openBox(requireAccount(state, group.account_id), group.chat_id)
}

function applySend(state: State, entry: SendEntry): void {
  const account = requireAccount(state, entry.account_id)
  record(state, entry, entry.text, entry.random_id)
  const post: Post = {
    message_id: entry.message_id,
    text: entry.text,
    is_sender: true,
    person_id: account.person_id,
    at: entry.at,
    edited_at: null,
    attachments: entry.file ? [sentFileOf(entry.file)] : [],
    random_id: entry.random_id,
  }
  const box = addPost(account, entry.chat_id, post)
  if (!account.sent_ids.has(entry.random_id)) account.sent_ids.set(entry.random_id, entry.message_id)
  if (account.flood_rule) {
    account.sent_at = [...account.sent_at, entry.at].slice(-account.flood_rule.sends_max)
  }
  const { chat_id } = entry
  stream(state, account, entry.delivery, [
    { kind: 'message', chat_id, post, unread_count: box.unread_count },
    { kind: 'sent', chat_id, post },
  ])
  planReaction(state, entry)
}

/** Its bytes were not kept, so it has neither a seed nor data. */
function sentFileOf({ file_name, media_type, size }: KeptFile): WorldFile {
  return { index: 0, kind: 'file', file_name, media_type, size }
}

/** A person who reads does so after their delay, and answers right after reading. */
function planReaction(state: State, { account_id, chat_id, message_id, at }: SendEntry): void {
  const person = state.people.get(chat_id)
  if (!person) return
  const { reads, answers } = reactions[person.behaviour]
  const due = new Date(Date.parse(at) + person.delay_seconds * 1000).toISOString()
  if (reads) addDue(state, { at: due, account_id, act: { kind: 'read', chat_id, message_id } })
  if (answers) addDue(state, { at: due, account_id, act: { kind: 'answer', chat_id, person_id: chat_id } })
}

function applyReadState(state: State, entry: ReadStateEntry): void {
  const account = requireAccount(state, entry.account_id)
  record(state, entry, null, null)
  const box = openBox(account, entry.chat_id)
  if (entry.unread) {
    box.unread_count = Math.max(box.unread_count, 1)
  } else {
    const last = box.posts.at(-1)?.message_id ?? 0
    const { up_to_message_id: upTo = last } = entry
    box.read_by_us = Math.max(box.read_by_us, Math.min(upTo, last))
    const isUnread = (post: Post) => !post.is_sender && post.message_id > box.read_by_us
    box.unread_count = upTo < last ? box.posts.filter(isUnread).length : 0
  }
  const cause = entry.unread ? 'marked' : 'read'
  stream(state, account, entry.delivery, [
    { kind: 'unread', chat_id: entry.chat_id, unread_count: box.unread_count, cause },
  ])
}

function applyWritten(state: State, entry: WrittenEntry): void {
  const account = requireAccount(state, entry.account_id)
  const is_sender = entry.person_id === null
  const post = postOf(entry, entry.person_id ?? account.person_id, is_sender)
  const box = addPost(account, entry.chat_id, post)
  if (!is_sender) box.unread_count++
  stream(state, account, entry.delivery, [
    { kind: 'message', chat_id: entry.chat_id, post, unread_count: box.unread_count },
  ])
}

function applySeeded(state: State, entry: SeededEntry): void {
  const account = requireAccount(state, entry.account_id)
  const is_sender = entry.person_id === null
  const box = addPost(account, entry.chat_id, postOf(entry, entry.person_id ?? account.person_id, is_sender))
  if (is_sender) {
    if (entry.read) box.read_by_them = entry.message_id
  } else if (entry.read) {
    box.read_by_us = entry.message_id
  } else {
    box.unread_count++
  }
}

function postOf(entry: WrittenEntry | SeededEntry, person_id: number, is_sender: boolean): Post {
  const { message_id, text, at } = entry
  const attachments = 'file' in entry && entry.file ? [entry.file] : []
  return { message_id, text, is_sender, person_id, at, edited_at: null, attachments, random_id: null }
}

function addPost(account: Account, chat_id: number, post: Post): Box {
  const box = openBox(account, chat_id)
  box.posts.push(post)
  if (post.at > box.last_at) box.last_at = post.at
  if (post.at > account.last_at) account.last_at = post.at
  account.last_message_id = post.message_id
  account.chat_of_message.set(post.message_id, chat_id)
  return box
}

function applyReadByThem(state: State, entry: ReadByThemEntry): void {
  const account = requireAccount(state, entry.account_id)
  const box = openBox(account, entry.chat_id)
  if (entry.up_to_message_id <= box.read_by_them) return
  box.read_by_them = entry.up_to_message_id
  const { chat_id, up_to_message_id: message_id, at } = entry
  stream(state, account, entry.delivery, [{ kind: 'read_by_them', chat_id, message_id, at }])
}

function applyEdited(state: State, entry: EditedEntry): void {
  const account = requireAccount(state, entry.account_id)
  const box = openBox(account, entry.chat_id)
  const index = indexOfPost(box, entry.message_id)
  const before = box.posts[index]
  if (before?.message_id !== entry.message_id) return
  const hidden = entry.text === before.text && !entry.file
  const attachments = entry.file ? [entry.file] : before.attachments
  const post: Post = hidden ? before : { ...before, text: entry.text, edited_at: entry.at, attachments }
  box.posts[index] = post
  stream(state, account, entry.delivery, [{ kind: 'edited', chat_id: entry.chat_id, post, hidden }])
}

function applyDeleted(state: State, entry: DeletedEntry): void {
  const account = requireAccount(state, entry.account_id)
  const box = openBox(account, entry.chat_id)
  const unreadBefore = box.unread_count
  for (const message_id of entry.message_ids) {
    const index = indexOfPost(box, message_id)
    const post = box.posts[index]
    if (post?.message_id !== message_id) continue
    box.posts.splice(index, 1)
    account.chat_of_message.delete(message_id)
    if (!post.is_sender && message_id > box.read_by_us && box.unread_count > 0) box.unread_count--
  }
  const { chat_id, message_ids } = entry
  const happenings: Happening[] = [{ kind: 'deleted', chat_id, message_ids }]
  if (box.unread_count !== unreadBefore) {
    happenings.push({ kind: 'unread', chat_id, unread_count: box.unread_count, cause: 'deleted' })
  }
  stream(state, account, entry.delivery, happenings)
}

function record(
  state: State,
  entry: SendEntry | StartEntry | ReadStateEntry,
  text: string | null,
  random_id: string | null,
): void {
  state.journal.push({
    seq: entry.seq,
    kind: entry.entry,
    account_id: entry.account_id,
    chat_id: `platform:chat:${entry.chat_id}`,
    text,
    random_id,
    file_sha256: entry.entry === 'send' ? (entry.file?.sha256 ?? null) : null,
    at: entry.at,
  })
}
