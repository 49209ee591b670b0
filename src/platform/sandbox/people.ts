/** The people of the world: who they are and how they react to a message. */

export const behaviours = ['silent', 'reads', 'replies', 'blocks', 'stops'] as const
export type Behaviour = (typeof behaviours)[number]

export interface WorldPerson {
  readonly person_id: number
  readonly username: string | null
  readonly name: string
  readonly phone: string | null
  /** The accounts that see the phone number; all others only find the person by it. Null, or left out in an old log: all. */
  readonly phone_visible_to?: readonly string[] | null
  readonly kind: 'person' | 'bot' | 'deleted'
  readonly behaviour: Behaviour
  /** Their answer; null means a sentence that the seed chooses, or STOP. */
  readonly reply_text: string | null
  /** How long after a message they react. */
  readonly delay_seconds: number
}

export interface NewPerson {
  readonly username?: string | undefined
  readonly name: string
  readonly phone?: string | undefined
  readonly phone_visible_to?: readonly string[] | undefined
  readonly kind?: WorldPerson['kind'] | undefined
  readonly behaviour?: Behaviour | undefined
  readonly reply_text?: string | undefined
  readonly delay_seconds?: number | undefined
}

export const delaySecondsDefault = 3

/** Silent by default. A username that ends in "bot" is a bot's, as on the real platform. */
export function makePerson(person_id: number, given: NewPerson): WorldPerson {
  const isBot = given.username?.toLowerCase().endsWith('bot') ?? false
  return {
    person_id,
    username: given.username ?? null,
    name: given.name,
    phone: given.phone ?? null,
    phone_visible_to: given.phone_visible_to ?? null,
    kind: given.kind ?? (isBot ? 'bot' : 'person'),
    behaviour: given.behaviour ?? 'silent',
    reply_text: given.reply_text ?? null,
    delay_seconds: given.delay_seconds ?? delaySecondsDefault,
  }
}

/** What may change about a person. Null: they have none any more. */
export interface PersonChange {
  readonly name?: string | undefined
  readonly username?: string | null | undefined
  readonly phone?: string | null | undefined
  /** Null: every account sees the number. */
  readonly phone_visible_to?: readonly string[] | null | undefined
}

export function changed(person: WorldPerson, change: PersonChange): WorldPerson {
  const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined))
  return { ...person, ...given }
}

/** Whether an account sees the person's phone number. Everybody sees their own. */
export function showsPhone(
  { person_id, phone_visible_to }: WorldPerson,
  account: { readonly account_id: string; readonly person_id: number },
): boolean {
  return !phone_visible_to || person_id === account.person_id || phone_visible_to.includes(account.account_id)
}

/** A phone number in comparable form: `+44 20` and `4420` are the same one. */
export function digitsOf(phone: string): string {
  return phone.replace(/\D/g, '')
}

interface Reaction {
  readonly reads: boolean
  readonly answers: boolean
}

export const reactions: Record<Behaviour, Reaction> = {
  silent: { reads: false, answers: false },
  reads: { reads: true, answers: false },
  replies: { reads: true, answers: true },
  blocks: { reads: false, answers: false },
  stops: { reads: true, answers: true },
}

const sentences = [
  'Thanks for reaching out. Could you send me a bit more detail?',
  'Interesting, let me check with my team and come back to you.',
  'Sounds good. Does Thursday afternoon work for a short call?',
  'We already use something similar, what would be different?',
  'Not right now, but please write again next month.',
  'Yes, that is me. How did you find us?',
  'What does it cost for a team of twelve?',
  'Great timing, we were just talking about this.',
  'I am travelling this week, can we talk on Monday?',
  'Could you send that as a one-pager I can forward?',
  'Who else in our field is working with you?',
  'Happy to have a look. Send me the link, please.',
] as const

/** What a person answers to the message that made the `due_id`-th due act: the same seed gives the same answer. */
export function answerOf(person: WorldPerson, seed: number, due_id: number): string {
  if (person.reply_text !== null) return person.reply_text
  if (person.behaviour === 'stops') return 'STOP'
  return sentences[Math.floor(draw(seed, due_id) * sentences.length)] ?? sentences[0]
}

/** The n-th number of a seed, in [0, 1): mulberry32 by index, so that there is no state to keep. */
export function draw(seed: number, n: number): number {
  let a = (seed + Math.imul(n + 1, 0x6d2b79f5)) | 0
  a = Math.imul(a ^ (a >>> 15), a | 1)
  a ^= a + Math.imul(a ^ (a >>> 7), a | 61)
  return ((a ^ (a >>> 14)) >>> 0) / 2 ** 32
}
