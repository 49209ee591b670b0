/**
 * What the team writes by hand in a story, and what must follow from it, by what the platform knows: a member's send at the inbox and
 * a message written on a phone end the sequences that have written to the person before and ask for it. It reads nothing that the
 * product has concluded about who wrote a message.
 */
import { type Database, type Sql, sql } from '../../src/db/sql.ts'
import type { Update, UpdateBatch } from '../../src/platform/port.ts'
import type { World } from '../../src/platform/sandbox/world.ts'
import type { Random } from '../faults/random.ts'

/** How many of our messages the platform shows without their random ids, as Telegram does to other devices. */
const hiddenShare = 0.3

interface Message {
  readonly account_id: string
  readonly chat_id: string
  readonly message_id: number
  /** In milliseconds, by the clock of the platform. */
  readonly at: number
}

/** A member's send that may have been or may yet be submitted. */
interface MemberSend {
  readonly account_id: string
  readonly random_id: string
  readonly state: string
  readonly closed_as: string | null
}

/** A sequence and its first message. */
interface Sequence {
  readonly account_id: string
  readonly chat_id: string
  readonly random_id: string
  readonly stops: boolean
  readonly sends: readonly MemberSend[]
}

export class Hands {
  readonly #world: World
  readonly #random: Random
  readonly #phone: Message[] = []
  /** Where in its account's stream a message of ours was shown without a random id, by account and number. */
  readonly #shown = new Map<string, { readonly chat_id: string; readonly position: number }>()
  /** How far the updates of each account are stored. */
  #stored: Readonly<Record<string, string>> = {}

  constructor(world: World, random: Random) {
    this.#world = world
    this.#random = random
  }

  phoned(account_id: string, chat_id: string, message_id: number): void {
    this.#phone.push({ account_id, chat_id, message_id, at: this.#world.clock.now().getTime() })
  }

  /** What the account's worker is shown of a batch. The same message is shown the same way each time. */
  show(account_id: string, batch: UpdateBatch): UpdateBatch {
    const updates = batch.updates.flatMap((update) => this.#showOne(account_id, update))
    for (const update of updates) {
      if (update.kind !== 'message' || !update.message.is_sender || update.message.random_id !== null)
        continue
      const key = `${account_id} ${update.message.id}`
      const position = Math.min(Number(batch.position), this.#shown.get(key)?.position ?? Infinity)
      this.#shown.set(key, { chat_id: update.chat.id, position })
    }
    return { ...batch, updates }
  }

  #showOne(account_id: string, update: Update): Update[] {
    if (update.kind === 'sent') return this.#isHidden(account_id, update.message_id) ? [] : [update]
    if (update.kind !== 'message' || !update.message.is_sender) return [update]
    const { message } = update
    return this.#isHidden(account_id, message.id)
      ? [{ ...update, message: { ...message, random_id: null } }]
      : [update]
  }

  #isHidden(account_id: string, message_id: string): boolean {
    return this.#random.fork(`${account_id} ${message_id}`).chance(hiddenShare)
  }

  /** Call it after the checks of every step. */
  note(stored: Readonly<Record<string, string>>): void {
    this.#stored = stored
  }

  #isStored({ account_id, message_id }: Message): boolean {
    const shown = this.#shown.get(`${account_id} ${message_id}`)
    return shown !== undefined && Number(this.#stored[account_id]) >= shown.position
  }

  /** The message with this random id, if the platform has accepted it. */
  #accepted(account_id: string, random_id: string): Message | undefined {
    const { accounts, journal } = this.#world.state
    const message_id = accounts.get(account_id)?.sent_ids.get(random_id)
    const entry = journal.find((one) => one.kind === 'send' && one.random_id === random_id)
    if (message_id === undefined || !entry) return undefined
    return { account_id, chat_id: String(entry.chat_id), message_id, at: Date.parse(entry.at) }
  }

  /**
   * What was written by hand after a sequence's first message: on a phone, and by members at the inbox. Of messages of two accounts at
   * the same moment nobody knows which was first: `certainly` leaves those out.
   */
  #after(
    { account_id, chat_id, random_id, sends }: Sequence,
    { certainly }: { certainly: boolean },
  ): Message[] {
    const first = this.#accepted(account_id, random_id)
    if (!first) return []
    const sent = sends.flatMap((one) => this.#accepted(one.account_id, one.random_id) ?? [])
    const phoned = this.#phone.filter((one) => one.chat_id === chat_id)
    return [...sent, ...phoned].filter((one) =>
      one.account_id === first.account_id
        ? one.message_id > first.message_id
        : one.at > first.at || (one.at === first.at && !certainly),
    )
  }

  /** Whether a follow-up that has crossed in the last step had to wait, or the sequence had to end. */
  *wrongFollowUp(sequence: Sequence): Generator<string> {
    const isOpen = ({ state, closed_as }: MemberSend) => state !== 'completed' && closed_as === null
    if (sequence.sends.some(isOpen)) {
      yield "by hand: a follow-up crossed while a member's send to the person was open"
    }
    const phoned = new Set(this.#phone)
    if (this.#after(sequence, { certainly: true }).some((one) => !phoned.has(one) || this.#isStored(one))) {
      yield 'by hand: a follow-up crossed after a message by hand'
    }
  }

  /** Whether a sequence that has ended because of a message by hand had one. */
  *wrongEnd(sequence: Sequence): Generator<string> {
    if (!sequence.stops) yield 'by hand: ended a sequence that does not ask for it'
    if (this.#after(sequence, { certainly: false }).length === 0)
      yield 'by hand: ended a sequence after which nobody wrote'
  }

  /** Whom the platform has shown messages to, as ours and without a random id. */
  get shown(): { account_id: string; chat_id: string }[] {
    return [...this.#shown].map(([key, { chat_id }]) => ({ account_id: key.split(' ')[0] ?? '', chat_id }))
  }
}

/** Sends of members to the person of recipient `r` that were not taken back. */
const memberSends: Sql = sql`(
  select coalesce(json_agg(json_build_object('account_id', h.account_id, 'random_id', h.random_id::text,
    'state', h.state, 'closed_as', h.closed_as) order by h.id), '[]')
  from operations h where h.workspace_id = r.workspace_id and h.chat_id = r.chat_id and h.campaign_id is null
    and h.key_id is null and h.user_id is not null and h.kind = 'send_message'
    and h.state not in ('released', 'refused') and h.closed_as is distinct from 'not_sent')`

const sequence: Sql = sql`first.account_id, r.chat_id::text, first.random_id::text, k.stop_on_own_message as stops,
  ${memberSends} as sends`

/** Whether the follow-ups that crossed in the last step were allowed to, for all that was written by hand before it. */
export async function wrongHands(db: Database, hands: Hands, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return []
  const rows = await db.rows<Sequence>(sql`
    select ${sequence} from operations o join campaign_recipients r on r.id = o.recipient_id
    join campaigns k on k.id = r.campaign_id and k.stop_on_own_message
    join operations first on first.recipient_id = r.id and first.step_no = 0
    where o.id = any(${ids}::uuid[]) and o.step_no > 0 and o.proof_message_id is null`)
  return rows.flatMap((row) => [...hands.wrongFollowUp(row)])
}

/** Whether what has ended because of a message by hand had to. */
export async function wrongEnds(db: Database, hands: Hands): Promise<string[]> {
  const rows = await db.rows<Sequence>(sql`
    select ${sequence} from campaign_recipients r join campaigns k on k.id = r.campaign_id
    left join operations first on first.recipient_id = r.id and first.step_no = 0
    where r.reason = 'answered_by_hand'`)
  return rows.flatMap((row) => [...hands.wrongEnd(row)])
}

/**
 * The unknown operations that keep it open who wrote a message to the person of a recipient that waits: sends of members, and any
 * in a chat in which a message of ours was shown without its random id. Nothing ends that wait but proof, or a person who
 * closes the operation.
 */
export function listUndecided(
  db: Database,
  hands: Hands,
): Promise<{ id: string; random_id: string; recipient_id: string }[]> {
  const { shown } = hands
  return db.rows(sql`
    select q.id, q.random_id::text, r.id as recipient_id from campaign_recipients r
    join campaigns k on k.id = r.campaign_id and k.stop_on_own_message
    join operations q on q.workspace_id = r.workspace_id and q.chat_id = r.chat_id and q.state = 'ambiguous'
      and q.closed_as is null and q.proof_message_id is null
    where r.status = 'waiting' and r.step > 0
      and ((q.campaign_id is null and q.key_id is null) or (q.account_id, q.chat_id::text) in (
        select * from unnest(${shown.map(({ account_id }) => account_id)}::text[],
          ${shown.map(({ chat_id }) => chat_id)}::text[])))
    order by q.id, r.id`)
}
