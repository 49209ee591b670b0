/** What a message is listed under, and what to look under for a word: lists are kept by these names. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { hash, type List, type Marked, mix, tagMax } from '../../lib/postings.ts'
import { type Term, tokenise } from '../../lib/tokens.ts'
import type { Key } from './keys.ts'

export interface Listed extends Key {
  readonly sender_id: string | null
  readonly text: string
}

/** Four times the longest message. */
const textMax = 16_384

/** Names of lists, from `low` to `high`. */
export interface Look {
  readonly low: string
  readonly high: string
  /** What is marked with it there, or all of another list. */
  readonly mark?: { readonly tag: number; readonly own: string }
}

/** Beginnings of words have lists of their own, where words that begin alike would be many. */
const beginningLengths = [1, 2, 4]
const beginningSign = '^'
/** After every name, and after everything a word can go on with. */
export const lastWord = '\u{10ffff}'

export function lookForWord({ word, prefix }: Term[number]): Look {
  if (!prefix) return { low: word, high: word }
  const length = [...word].length
  if (length > Math.max(...beginningLengths)) return { low: word, high: word + lastWord }
  const low = beginningSign + word
  return { low, high: beginningLengths.includes(length) ? low : low + lastWord }
}

/**
 * What is told from others by its hash alone: a chat, who wrote in a group, two words one after the other. There are
 * many, and most have few messages, so they share lists, and each has a tag there. What has many has a list of its own.
 */
export interface Mark {
  /** The number of its list. */
  readonly list: number
  readonly tag: number
}

const markLists = 16_384
const markSign = '+'
const markNames = Array.from({ length: markLists }, (_, at) => markSign + at.toString(36).padStart(4, '0'))
const markNameLength = 5
/** From so many messages on a list of its own takes less room, and is read sooner. */
const ownMin = 64

export function chatMark(chat_id: string): Mark {
  return markOf(hashes(`#${chat_id}`))
}

export function senderMark(sender_id: string): Mark {
  return markOf(hashes(`~${sender_id}`))
}

export function pairMark(word: string, next: string): Mark {
  return markOf(pair(hashes(word), hashes(next)))
}

/** One for the list, one for the tag. */
type Hashes = readonly [number, number]

function hashes(text: string): Hashes {
  return [hash(text), hash(text, 40_503)]
}

function pair(word: Hashes, next: Hashes): Hashes {
  return [mix(Math.imul(word[0], 0x9e3779b1) ^ next[0]), mix(Math.imul(word[1], 0x9e3779b1) ^ next[1])]
}

function markOf([one, other]: Hashes): Mark {
  return { list: one % markLists, tag: other % tagMax }
}

export function lookForMark({ list, tag }: Mark): Look {
  const name = markNames[list] ?? ''
  return { low: name, high: name, mark: { tag, own: ownName(name, tag) } }
}

/** After the name of the list that others share. */
function ownName(name: string, tag: number): string {
  return `${name}=${tag.toString(36).padStart(5, '0')}`
}

/** The list that others share, or that a list of its own stands after; undefined: no marks. */
export function markListOf(name: string): string | undefined {
  return name.startsWith(markSign) ? name.slice(0, markNameLength) : undefined
}

/** The tag of what has a list of its own; undefined: it is a list that others share. */
export function ownTagOf(name: string): number | undefined {
  return name.length > markNameLength ? Number.parseInt(name.slice(markNameLength + 1), 36) : undefined
}

/** What is marked under one name, as lists: of its own for what has many messages. Ranks with their tags, in order. */
export function shareList(name: string, { ranks, tags }: Marked): Map<string, List> {
  const counts = new Map<number, number>()
  for (let at = 0; at < tags.length; at++) {
    const tag = tags[at] as number
    counts.set(tag, (counts.get(tag) ?? 0) + 1)
  }
  const shared = { ranks: [] as number[], tags: [] as number[] }
  const lists = new Map<string, List & { ranks: number[] }>()
  const own = new Map<number, number[]>()
  for (const [tag, count] of counts) if (count >= ownMin) own.set(tag, [])
  for (let at = 0; at < tags.length; at++) {
    const [rank, tag] = [ranks[at] as number, tags[at] as number]
    const list = own.get(tag)
    if (list) list.push(rank)
    else {
      shared.ranks.push(rank)
      shared.tags.push(tag)
    }
  }
  if (shared.ranks.length > 0) lists.set(name, shared)
  for (const [tag, list] of own) lists.set(ownName(name, tag), { ranks: list })
  return lists
}

/** The lists of these messages, by name; their ranks are their places here. Others get their turn meanwhile. */
export async function listMessages(messages: readonly Listed[]): Promise<Map<string, List>> {
  const lister = new Lister()
  for (const [rank, message] of messages.entries()) {
    if (rank % inOneTurn === 0) await nextTurn()
    lister.add(message, rank)
  }
  return lister.lists()
}

const inOneTurn = 200

/** A word of these messages, with all that is the same wherever it stands. */
interface Known {
  readonly ranks: number[]
  readonly beginnings: readonly number[][]
  readonly hashes: Hashes
}

/** Takes messages from the newest to the oldest. A list has no rank twice: what was just added is its last. */
class Lister {
  readonly #words = new Map<string, Known>()
  readonly #beginnings = new Map<string, number[]>()
  readonly #marks = new Map<number, { ranks: number[]; tags: number[] }>()

  add({ chat_id, sender_id, text }: Listed, rank: number): void {
    this.#mark(chatMark(chat_id), rank)
    // In a private chat the chat says it.
    if (isGroup(chat_id) && sender_id !== null) this.#mark(senderMark(sender_id), rank)
    let before: Known | undefined
    for (const { word } of tokenise(text.slice(0, textMax))) {
      const known = this.#know(word)
      if (note(known.ranks, rank)) for (const list of known.beginnings) note(list, rank)
      if (before) this.#mark(markOf(pair(before.hashes, known.hashes)), rank)
      before = known
    }
  }

  lists(): Map<string, List> {
    const lists = new Map<string, List>()
    for (const [word, { ranks }] of this.#words) lists.set(word, { ranks })
    for (const [beginning, ranks] of this.#beginnings) lists.set(beginningSign + beginning, { ranks })
    for (const [list, marked] of this.#marks) {
      for (const [name, shared] of shareList(markNames[list] ?? '', marked)) lists.set(name, shared)
    }
    return lists
  }

  #know(word: string): Known {
    let known = this.#words.get(word)
    if (!known) {
      const beginnings = new Set(beginningLengths.map((length) => beginningOf(word, length)))
      known = {
        ranks: [],
        beginnings: [...beginnings].map((beginning) => listOf(this.#beginnings, beginning)),
        hashes: hashes(word),
      }
      this.#words.set(word, known)
    }
    return known
  }

  #mark({ list, tag }: Mark, rank: number): void {
    const marked = this.#marks.get(list)
    if (!marked) {
      this.#marks.set(list, { ranks: [rank], tags: [tag] })
      return
    }
    const { ranks, tags } = marked
    for (let at = ranks.length - 1; ranks[at] === rank; at--) if (tags[at] === tag) return
    ranks.push(rank)
    tags.push(tag)
  }
}

function listOf(lists: Map<string, number[]>, name: string): number[] {
  const list = lists.get(name) ?? []
  if (list.length === 0) lists.set(name, list)
  return list
}

/** False: it is there. */
function note(ranks: number[], rank: number): boolean {
  if (ranks.at(-1) === rank) return false
  ranks.push(rank)
  return true
}

export function isGroup(chat_id: string): boolean {
  return chat_id.startsWith('-')
}

function beginningOf(word: string, length: number): string {
  let end = 0
  for (let count = 0; count < length && end < word.length; count++) {
    end += (word.codePointAt(end) ?? 0) > 0xffff ? 2 : 1
  }
  return word.slice(0, end)
}
