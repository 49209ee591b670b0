/** The rows that search is measured on. They lie in the table chat by chat, so messages close in time are far apart. */
import type { Share } from './processes/copy.ts'
import { type Random, seeded } from './texts.ts'

export interface World {
  readonly ids: readonly string[]
  readonly workspace_id: string
  readonly perAccount: number
}

export const columns = {
  chats: 'account_id, chat_id, workspace_id, kind, name',
  messages: 'account_id, chat_id, id, workspace_id, text, is_sender, sender_id, sent_at',
}

const newest = Date.UTC(2026, 10, 1)
const yearMs = 365 * 86_400_000
const perChat = 5

/** Made-up words in three alphabets. A word's position decides how common it is, as in any language. */
const vocabularies = [
  ['ba de fi go lu ma ne ri so tu ve ra ki po an el', 40_000],
  ['ка ло ме ни ру са то ви да по ше рю ан ел', 20_000],
  ['的 一 是 不 了 人 我 在 有 他 这 中 大 来 上 国', 3_000],
].map(([syllables, size]) => makeWords(String(syllables).split(' '), Number(size)))
/** One message in ten of the year's oldest quarter has it, later ones never. */
export const oldWord = 'formerly'

function makeWords(syllables: readonly string[], size: number): string[] {
  const random = seeded(size)
  const words = new Set<string>()
  while (words.size < size) {
    const length = 2 + Math.floor(random() * 3)
    words.add(Array.from({ length }, () => syllables[Math.floor(random() * syllables.length)]).join(''))
  }
  return [...words]
}

export function wordAt(vocabulary: number, place: number): string {
  return vocabularies[vocabulary]?.[place - 1] ?? ''
}

function sentence(random: Random, age: number): string {
  const words = vocabularies[Math.floor(random() ** 2 * vocabularies.length)] ?? []
  const length = 4 + Math.floor(random() * 14)
  const said = Array.from({ length }, () => words[Math.floor(words.length ** random()) - 1] ?? '')
  if (age > 0.75 && random() < 0.1) said.push(oldWord)
  return said.join(' ')
}

export function* rowsOf(
  table: keyof typeof columns,
  world: World,
  { part, parts }: Share,
): Generator<string> {
  for (const [at, account_id] of world.ids.entries()) {
    const last = table === 'chats' ? chatsIn(world.perAccount) : world.perAccount
    for (let number = 1 + part; number <= last; number += parts) {
      if (table === 'chats')
        yield `${account_id}\t${number}\t${world.workspace_id}\tprivate\tPerson ${number}\n`
      else yield messageRow(world, at, number)
    }
  }
}

function messageRow({ ids, workspace_id, perAccount }: World, at: number, id: number): string {
  const random = seeded(Math.imul(at + 1, 7_919) ^ Math.imul(id, 104_729))
  const account_id = ids[at] ?? ''
  const chat_id = String(chatOf(id, perAccount))
  const age = random()
  const sent_at = newest - Math.floor(age * yearMs)
  const text = sentence(random, age)
  const time = new Date(sent_at).toISOString()
  return `${account_id}\t${chat_id}\t${id}\t${workspace_id}\t${text}\tf\t${chat_id}\t${time}\n`
}

/** The first chat of each account is long. */
function chatOf(id: number, perAccount: number): number {
  const long = Math.floor(perAccount / 10)
  return id <= long ? 1 : 2 + Math.floor((id - long) / perChat)
}

export function chatsIn(perAccount: number): number {
  return chatOf(perAccount, perAccount)
}
