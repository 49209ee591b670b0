/** What a search asks of a message. Pending messages, which are in no segment, are checked one by one. */
import { type Phrase, standsIn, tokenise } from '../../../lib/tokens.ts'

export interface Words {
  readonly all: readonly Phrase[]
  readonly none: readonly Phrase[]
  /** At least one of these keywords, each with all its phrases. */
  readonly any: readonly (readonly Phrase[])[]
}

export interface Condition {
  readonly words: Words
  /** By account, the numbers of people and chats with a matching name; undefined: the search has no names. */
  readonly people: ReadonlyMap<string, ReadonlySet<string>> | undefined
  /** The number of the only chat to search in. */
  readonly chat_id: string | undefined
  /** From `from` until before `until`, in milliseconds since 1970. */
  readonly from: number
  readonly until: number
}

/** The fields of a message that the condition tests. */
export interface Candidate {
  readonly account_id: string
  readonly chat_id: string
  readonly sender_id: string | null
  readonly sent_at: Date
  readonly text: string
}

export function isMatch({ words, people, chat_id, from, until }: Condition, message: Candidate): boolean {
  const at = message.sent_at.getTime()
  if (at < from || at >= until || (chat_id !== undefined && message.chat_id !== chat_id)) return false
  const named = people?.get(message.account_id)
  if (
    people &&
    !(named?.has(message.chat_id) || (isGroup(message.chat_id) && named?.has(message.sender_id ?? '')))
  ) {
    return false
  }
  const tokens = tokenise(message.text)
  const has = (phrase: Phrase) => standsIn(tokens, phrase)
  return (
    words.all.every(has) &&
    !words.none.some(has) &&
    (words.any.length === 0 || words.any.some((phrases) => phrases.every(has)))
  )
}

export function isGroup(chat_id: string): boolean {
  return chat_id.startsWith('-')
}
