/** What a message is listed under, and what to look under for a word: lists are kept by these names. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { hash, type List, type Listing, mix, positionOf, tagMax } from '../../lib/postings.ts'
import { type Term, tokenise } from '../../lib/tokens.ts'

export interface Listed extends Listing {
  readonly sender_id: string | null
  readonly text: string
}

/** Four times the longest message. */
const textMax = 16_384

/** Names of lists, from `low` to `high`; with a tag, what it marks in them. */
export interface Look {
  readonly low: string
  readonly high: string
  readonly tag?: number
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
 * many, and each has few messages, so they share lists, and each has a tag there.
 */
export interface Mark {
  /** The number of its list. */
  readonly list: number
  readonly tag: number
}

const markLists = 16_384
const markSign = '+'
const markNames = Array.from({ length: markLists }, (_, at) => markSign + at.toString(36).padStart(4, '0'))

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
  return { low: name, high: name, tag }
}

export function isMarkList(name: string): boolean {
  return name.startsWith(markSign)
}

/** The lists of these messages, by name. Others get their turn meanwhile. */
export async function listMessages(messages: readonly Listed[]): Promise<Map<string, List>> {
  const lister = new Lister()
  const placed = messages
    .map((message) => ({ message, position: positionOf(message) }))
    .sort((a, b) => b.position - a.position)
  for (const [at, { message, position }] of placed.entries()) {
    if (at % inOneTurn === 0) await nextTurn()
    lister.add(message, position)
  }
  return lister.lists()
}

const inOneTurn = 200

/** A word of these messages, with all that is the same wherever it stands. */
interface Known {
  readonly positions: number[]
  readonly beginnings: readonly number[][]
  readonly hashes: Hashes
}

/** Takes messages from the newest to the oldest. A list has no position twice: what was just added is its last. */
class Lister {
  readonly #words = new Map<string, Known>()
  readonly #beginnings = new Map<string, number[]>()
  readonly #marks = new Map<number, { positions: number[]; tags: number[] }>()

  add({ chat_id, sender_id, text }: Listed, position: number): void {
    this.#mark(chatMark(chat_id), position)
    // In a private chat the chat says it.
    if (isGroup(chat_id) && sender_id !== null) this.#mark(senderMark(sender_id), position)
    let before: Known | undefined
    for (const { word } of tokenise(text.slice(0, textMax))) {
      const known = this.#know(word)
      if (note(known.positions, position)) for (const list of known.beginnings) note(list, position)
      if (before) this.#mark(markOf(pair(before.hashes, known.hashes)), position)
      before = known
    }
  }

  lists(): Map<string, List> {
    const lists = new Map<string, List>()
    for (const [word, { positions }] of this.#words) lists.set(word, { positions })
    for (const [beginning, positions] of this.#beginnings) lists.set(beginningSign + beginning, { positions })
    for (const [list, marked] of this.#marks) lists.set(markNames[list] ?? '', marked)
    return lists
  }

  #know(word: string): Known {
    let known = this.#words.get(word)
    if (!known) {
      const beginnings = new Set(beginningLengths.map((length) => beginningOf(word, length)))
      known = {
        positions: [],
        beginnings: [...beginnings].map((beginning) => listOf(this.#beginnings, beginning)),
        hashes: hashes(word),
      }
      this.#words.set(word, known)
    }
    return known
  }

  #mark({ list, tag }: Mark, position: number): void {
    const marked = this.#marks.get(list)
    if (!marked) {
      this.#marks.set(list, { positions: [position], tags: [tag] })
      return
    }
    const { positions, tags } = marked
    for (let at = positions.length - 1; positions[at] === position; at--) if (tags[at] === tag) return
    positions.push(position)
    tags.push(tag)
  }
}

function listOf(lists: Map<string, number[]>, name: string): number[] {
  const list = lists.get(name) ?? []
  if (list.length === 0) lists.set(name, list)
  return list
}

/** False: it is there. */
function note(positions: number[], position: number): boolean {
  if (positions.at(-1) === position) return false
  positions.push(position)
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
