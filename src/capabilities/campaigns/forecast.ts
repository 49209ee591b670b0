/**
 * Plays campaigns through as the worker would, with the same planner and the same order, while nobody reads or answers.
 * Pure: the clock is the one of the story.
 */
import { localDay, nextDay } from '../../lib/zones.ts'
import {
  dueAt,
  type Hours,
  type PlannedAccount,
  type PlannedCampaign,
  type PlannedRecipient,
  plan,
} from './plan.ts'
import { canTake } from './pool.ts'

export interface ForecastCampaign extends PlannedCampaign {
  readonly id: string
  /** Accounts that may take contacts. */
  readonly pool: readonly string[]
}

export interface ForecastRecipient extends PlannedRecipient {
  readonly campaign_id: string
  readonly position: number
  readonly account_id: string | null
}

export interface Foretold {
  readonly campaign_id: string
  readonly recipient_id: string
  readonly account_id: string
  readonly step_no: number
  readonly branch: string | null
  readonly at: Date
  readonly day: string
}

export interface Story {
  readonly campaigns: readonly ForecastCampaign[]
  readonly recipients: readonly ForecastRecipient[]
  readonly accounts: ReadonlyMap<string, PlannedAccount>
  readonly hours: Hours
  readonly now: Date
  readonly pacing_ms: number
}

interface Account {
  readonly id: string
  state: PlannedAccount
  /** When to look at it next; null: nothing is left that it could do. */
  wake: Date | null
}

interface Day {
  readonly name: string
  readonly ends: Date
}

export class Forecast {
  readonly #story: Story
  readonly #campaigns: ReadonlyMap<string, ForecastCampaign>
  readonly #accounts: Account[]
  readonly #queues = new Map<string, Queue>()
  #day: Day

  constructor(story: Story) {
    this.#story = story
    this.#campaigns = new Map(story.campaigns.map((one) => [one.id, one]))
    const { now } = story
    this.#accounts = [...story.accounts].map(([id, state]) => ({ id, state: { ...state }, wake: now }))
    for (const one of story.recipients) this.#queueOf(one).add(one)
    this.#day = this.#dayOf(now)
  }

  /** Every message in the order of time. It ends, because every recipient has an end. */
  *messages(): Generator<Foretold> {
    for (;;) {
      const account = this.#next()
      if (!account?.wake) return
      this.#turnTo(account.wake)
      const told = this.#act(account, account.wake)
      if (told) yield told
    }
  }

  /** The account that comes first; of several the one with most of its day left. */
  #next(): Account | undefined {
    let first: Account | undefined
    for (const one of this.#accounts) {
      if (!one.wake) continue
      const apart = first?.wake ? one.wake.getTime() - first.wake.getTime() : -1
      if (apart < 0 || (apart === 0 && first && this.#usedAtWake(one) < this.#usedAtWake(first))) first = one
    }
    return first
  }

  /** Who wakes on another day has used nothing of it. */
  #usedAtWake({ wake, state }: Account): number {
    return wake && wake < this.#day.ends ? state.used : 0
  }

  #dayOf(at: Date): Day {
    const { timezone } = this.#story.hours
    return { name: localDay(at, timezone), ends: nextDay(at, timezone) }
  }

  /** With a new day every account begins to count anew. */
  #turnTo(at: Date): void {
    if (at < this.#day.ends) return
    this.#day = this.#dayOf(at)
    for (const one of this.#accounts) one.state = { ...one.state, used: 0, used_cold: 0, lookups: 0 }
  }

  /** The first thing that the account can do now, in the worker's order; otherwise when to look again. */
  #act(account: Account, now: Date): Foretold | undefined {
    const waits: Date[] = []
    for (const { queue, head } of this.#heads(account)) {
      const campaign = this.#campaignAt(head.campaign_id, now)
      if (!campaign) continue
      const blocker = head.account_id === null ? this.#blockerOf(account, campaign, now) : undefined
      if (blocker) {
        if (blocker.wake) waits.push(blocker.wake)
        continue
      }
      const { hours } = this.#story
      const planned = plan({ campaign, recipient: head, account: account.state, hours, now })
      if (planned.do === 'wait') {
        if (planned.until) waits.push(planned.until)
        continue
      }
      queue.remove(head)
      account.wake = now
      if (planned.do === 'look_up') return this.#found(account, head)
      if (planned.do !== 'send') return undefined
      return this.#sent(account, head, { ...planned, now, campaign })
    }
    const next = waits.reduce<Date | null>(
      (least, one) => (least === null || one < least ? one : least),
      null,
    )
    // Whoever waits for another account comes after it.
    account.wake = next === null ? null : next > now ? next : new Date(now.getTime() + 1)
    return undefined
  }

  /** A schedule whose time has come is under way. */
  #campaignAt(id: string, now: Date): ForecastCampaign | undefined {
    const campaign = this.#campaigns.get(id)
    const starts = campaign?.status === 'scheduled' && campaign.scheduled_at && campaign.scheduled_at <= now
    return campaign && starts ? { ...campaign, status: 'queued' } : campaign
  }

  /** Another account of the pool that has more of its day left takes new contacts first. */
  #blockerOf({ id, state }: Account, { pool }: ForecastCampaign, now: Date): Account | undefined {
    return this.#accounts.find(
      (other) =>
        other.id !== id &&
        pool.includes(other.id) &&
        canTake(other.state, now) &&
        other.state.used < state.used,
    )
  }

  #found(account: Account, recipient: ForecastRecipient): undefined {
    account.state = { ...account.state, lookups: account.state.lookups + 1 }
    const known = { chat_id: recipient.id, name: recipient.name ?? 'somebody', account_id: account.id }
    this.#put({ ...recipient, ...known })
  }

  #sent(
    account: Account,
    recipient: ForecastRecipient,
    sent: { step_no: number; branch: string | null; cold: boolean; now: Date; campaign: ForecastCampaign },
  ): Foretold {
    const { step_no, branch, cold, now, campaign } = sent
    const { state } = account
    account.wake = new Date(now.getTime() + this.#story.pacing_ms)
    account.state = {
      ...state,
      used: state.used + (campaign.daily_quota_per_account === null ? 0 : 1),
      used_cold: state.used_cold + (cold ? 1 : 0),
      next_campaign_at: account.wake,
    }
    const had: ForecastRecipient = {
      ...recipient,
      account_id: account.id,
      status: 'waiting',
      step: step_no + 1,
      last_sent_at: now,
      read: false,
    }
    const next_action_at = dueAt(campaign, had)
    if (next_action_at) this.#put({ ...had, next_action_at })
    const { id: recipient_id, campaign_id } = recipient
    return {
      campaign_id,
      recipient_id,
      account_id: account.id,
      step_no,
      branch,
      at: now,
      day: this.#day.name,
    }
  }

  #put(recipient: ForecastRecipient): void {
    this.#queueOf(recipient).add(recipient)
  }

  /** Follow-ups, first messages to people who wrote, to people who did not, and contacts of nobody: each in order. */
  #queueOf({ campaign_id, account_id, status, cold }: ForecastRecipient): Queue {
    const kind = account_id === null ? 'free' : status === 'waiting' ? 'waiting' : cold ? 'cold' : 'warm'
    const key = `${account_id ?? ''} ${campaign_id} ${kind}`
    let queue = this.#queues.get(key)
    if (!queue) {
      queue = new Queue()
      this.#queues.set(key, queue)
    }
    return queue
  }

  #heads({ id }: Account): { queue: Queue; head: ForecastRecipient }[] {
    const heads: { queue: Queue; head: ForecastRecipient }[] = []
    for (const { id: campaign_id, pool } of this.#campaigns.values()) {
      for (const kind of ['waiting', 'warm', 'cold']) push(this.#queues.get(`${id} ${campaign_id} ${kind}`))
      if (pool.includes(id)) push(this.#queues.get(` ${campaign_id} free`))
    }
    return heads.sort((one, other) => order(one.head, other.head))

    function push(queue: Queue | undefined): void {
      const head = queue?.first()
      if (queue && head) heads.push({ queue, head })
    }
  }
}

/** Follow-ups first, then by when they are due; of one moment by campaign and place. */
function order(one: ForecastRecipient, other: ForecastRecipient): number {
  const late = Number(one.status !== 'waiting') - Number(other.status !== 'waiting')
  const due = (one.next_action_at?.getTime() ?? 0) - (other.next_action_at?.getTime() ?? 0)
  const campaign = one.campaign_id < other.campaign_id ? -1 : Number(one.campaign_id > other.campaign_id)
  return late || due || campaign || one.position - other.position
}

/** A binary heap: the first by `order` comes first. */
class Queue {
  readonly #heap: ForecastRecipient[] = []

  first(): ForecastRecipient | undefined {
    return this.#heap[0]
  }

  add(one: ForecastRecipient): void {
    const heap = this.#heap
    let at = heap.push(one) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      if (order(heap[above] as ForecastRecipient, one) <= 0) break
      heap[at] = heap[above] as ForecastRecipient
      at = above
    }
    heap[at] = one
  }

  /** Only the first is ever taken. */
  remove(one: ForecastRecipient): void {
    const heap = this.#heap
    const last = heap.pop()
    if (heap.length === 0 || last === undefined || one !== heap[0]) return
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      const right = heap[below + 1]
      if (right && order(right, heap[below] as ForecastRecipient) < 0) below++
      const smaller = heap[below]
      if (!smaller || order(last, smaller) <= 0) break
      heap[at] = smaller
      at = below
    }
    heap[at] = last
  }
}
