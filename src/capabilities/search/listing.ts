/** What a message is listed under, and what to look under for a word: lists are kept by these names. Pure. */
import { hash, type List, type Listing, positionOf, tagMax } from '../../lib/postings.ts'
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
const beginningLengths = [1, 3]
const beginningSign = '^'
/** After everything a word can go on with. */
const last = '\u{10ffff}'

export function lookForWord({ word, prefix }: Term[number]): Look {
  if (!prefix) return { low: word, high: word }
  const length = [...word].length
  if (length > Math.max(...beginningLengths)) return { low: word, high: word + last }
  const low = beginningSign + word
  return { low, high: beginningLengths.includes(length) ? low : low + last }
}

/** What is told from others by its hash alone shares lists with others: there are many, and each has few messages. */
const markSign = '+'
const markLists = 4096

export function lookForMark(name: string): Look & { readonly tag: number } {
  const list = markSign + (hash(name) % markLists).toString(36).padStart(3, '0')
  return { low: list, high: list, tag: hash(name, 40_503) % tagMax }
}

export function isMarkList(name: string): boolean {
  return name.startsWith(markSign)
}

export function chatMark(chat_id: string): string {
  return `#${chat_id}`
}

export function senderMark(sender_id: string): string {
  return `~${sender_id}`
}

/** Two words that stand one after the other. */
export function pairMark(word: string, next: string): string {
  return `${word} ${next}`
}

/** The lists of these messages, by name. */
export function listMessages(messages: readonly Listed[]): Map<string, List> {
  const placed = messages
    .map((message) => ({ message, position: positionOf(message) }))
    .sort((a, b) => b.position - a.position)
  const lists = new Map<string, { positions: number[]; tags?: number[] }>()
  const add = (name: string, position: number, tag?: number) => {
    const list = lists.get(name)
    if (list) {
      list.positions.push(position)
      if (tag !== undefined) list.tags?.push(tag)
    } else lists.set(name, { positions: [position], ...(tag !== undefined && { tags: [tag] }) })
  }
  for (const { message, position } of placed) {
    const { words, marks } = namesOf(message)
    for (const word of words) add(word, position)
    for (const mark of marks) {
      const { low, tag } = lookForMark(mark)
      add(low, position, tag)
    }
  }
  return lists
}

function namesOf({ chat_id, sender_id, text }: Listed): { words: Set<string>; marks: Set<string> } {
  const words = new Set<string>()
  const marks = new Set([chatMark(chat_id)])
  // In a private chat the chat says it.
  if (isGroup(chat_id) && sender_id !== null) marks.add(senderMark(sender_id))
  let before: string | undefined
  for (const { word } of tokenise(text.slice(0, textMax))) {
    if (before !== undefined) marks.add(pairMark(before, word))
    before = word
    if (words.has(word)) continue
    words.add(word)
    for (const length of beginningLengths) words.add(beginningSign + beginningOf(word, length))
  }
  return { words, marks }
}

export function isGroup(chat_id: string): boolean {
  return chat_id.startsWith('-')
}

function beginningOf(word: string, length: number): string {
  let end = 0
  for (let count = 0; count < length && end < word.length; count++)
    end += (word.codePointAt(end) ?? 0) > 0xffff ? 2 : 1
  return word.slice(0, end)
}
