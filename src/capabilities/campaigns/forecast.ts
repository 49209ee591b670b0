/**
 * Simulates campaigns as the worker would run them, with the same planner and the same order, assuming that no recipient
 * reads or replies. Pure: it has its own clock.
 */
import { Heap } from '../../lib/heap.ts'
import { dayAt, dayEnds } from '../../rules/zones.ts'
import {
  dueAt,
  type Hours,
  type PlannedAccount,
  type PlannedCampaign,
  type PlannedRecipient,
  plan,
} from './planning/plan.ts'
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
  /** Accounts for which asking who has the name is no look-up. */
  readonly asked_by?: readonly string[]
}

export interface PlannedMessage {
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
  /** Its index among all accounts, which breaks ties. */
  readonly place: number
  /** Changed in place: nothing else holds it. */
  readonly state: { -readonly [Name in keyof PlannedAccount]: PlannedAccount[Name] }
  /** When to look at it next; null: it has nothing left to do. */
  wake: Date | null
  /** Recipients that it may write to, including contacts that no account has taken. */
  readonly queues: Heap<ForecastRecipient>[]
}

interface Day {
  readonly name: string
  readonly ends: Date
}

export class Forecast {
  readonly #story: Story
  readonly #campaigns: Map<string, ForecastCampaign>
  readonly #accounts: readonly Account[]
  /** The accounts of each campaign's pool, in the order of `#accounts`. */
  readonly #pools: ReadonlyMap<string, readonly Account[]>
  readonly #queues = new Map<string, Heap<ForecastRecipient>>()
  /** Accounts that have a `wake`: the earliest first, then the one that has used least of its day. */
  readonly #awake = new Heap<Account>((one, other) => {
    const apart = (one.wake?.getTime() ?? 0) - (other.wake?.getTime() ?? 0)
    return apart || this.#usedAtWake(one) - this.#usedAtWake(other) || one.place - other.place
  })
  #day: Day

  constructor(story: Story) {
    this.#story = story
    this.#campaigns = new Map(story.campaigns.map((one) => [one.id, one]))
    const { now } = story
    this.#accounts = [...story.accounts].map(([id, state], place) => ({
      ...{ id, place, wake: now, queues: [] },
      state: { ...state },
    }))
    this.#pools = new Map(
      story.campaigns.map(({ id, pool }) => {
        const ids = new Set(pool)
        return [id, this.#accounts.filter((one) => ids.has(one.id))]
      }),
    )
    this.#day = this.#dayOf(now)
    for (const one of story.recipients) this.#put(one)
    for (const one of this.#accounts) this.#awake.add(one)
  }

  /**
   * One account acts at a time. Yields every message in order of time, and undefined where the account found nothing to
   * send. It terminates, because every recipient's sequence does.
   */
  *steps(): Generator<PlannedMessage | undefined> {
    for (;;) {
      const account = this.#awake.takeFirst()
      if (!account?.wake) return
      this.#turnTo(account.wake)
      const message = this.#act(account, account.wake)
      if (account.wake) this.#awake.add(account)
      yield message
    }
  }

  /**
   * An account that wakes on a later day has used none of its quota yet. The order of waiting accounts stays valid, because a
   * day begins for all accounts at the same time, before any of them acts in it.
   */
  #usedAtWake({ wake, state }: Account): number {
    return wake && wake < this.#day.ends ? state.used : 0
  }

  #dayOf(at: Date): Day {
    const { hours } = this.#story
    return { name: dayAt(hours, at), ends: dayEnds(hours, at) }
  }

  /** A new day resets the counts of every account. */
  #turnTo(at: Date): void {
    if (at < this.#day.ends) return
    this.#day = this.#dayOf(at)
    for (const { state } of this.#accounts) {
      state.used = 0
      state.used_cold = 0
      state.lookups = 0
    }
  }

  /** Does the first thing that the account can do now, in the worker's order; otherwise sets when to look again. */
  #act(account: Account, now: Date): PlannedMessage | undefined {
    let next: Date | null = null
    for (const queue of inOrder(account.queues)) {
      const head = queue.first()
      const campaign = head && this.#campaignAt(head.campaign_id, now)
      if (!campaign) continue
      const blocker = head.account_id === null ? this.#blockerOf(account, campaign, now) : undefined
      const { hours } = this.#story
      const planned = blocker
        ? { do: 'wait' as const, until: blocker.wake }
        : plan({ campaign, recipient: asOf(account, head), account: account.state, hours, now })
      if (planned.do === 'wait') {
        if (planned.until && (!next || planned.until < next)) next = planned.until
        continue
      }
      queue.takeFirst()
      account.wake = now
      if (planned.do === 'look_up') return this.#found(account, head)
      if (planned.do !== 'send') return undefined
      return this.#sent(account, head, { ...planned, now, campaign })
    }
    // An account that waits for another one acts after it.
    account.wake = next && next <= now ? new Date(now.getTime() + 1) : next
    return undefined
  }

  /** A scheduled campaign starts once its time has come. */
  #campaignAt(id: string, now: Date): ForecastCampaign | undefined {
    const campaign = this.#campaigns.get(id)
    const starts = campaign?.status === 'scheduled' && campaign.scheduled_at && campaign.scheduled_at <= now
    if (!campaign || !starts) return campaign
    const started: ForecastCampaign = { ...campaign, status: 'queued' }
    this.#campaigns.set(id, started)
    return started
  }

  /** Another account of the pool that has used less of its day takes new contacts first. */
  #blockerOf({ state }: Account, { id }: ForecastCampaign, now: Date): Account | undefined {
    const at = { now, hours: this.#story.hours }
    return this.#pools.get(id)?.find((other) => other.state.used < state.used && canTake(other.state, at))
  }

  #found(account: Account, recipient: ForecastRecipient): undefined {
    if (asOf(account, recipient).needs_lookup) account.state.lookups++ // guard: a forecast counts look ups only
    const known = {
      ...{ chat_id: recipient.id, name: recipient.name ?? 'somebody', account_id: account.id },
      known_until: null,
    }
    this.#put({ ...recipient, ...known })
  }

  #sent(
    account: Account,
    recipient: ForecastRecipient,
    sent: { step_no: number; branch: string | null; cold: boolean; now: Date; campaign: ForecastCampaign },
  ): PlannedMessage {
    const { step_no, branch, cold, now, campaign } = sent
    const { state } = account
    account.wake = new Date(now.getTime() + this.#story.pacing_ms)
    if (campaign.daily_quota_per_account !== null) state.used++
    if (cold) state.used_cold++
    state.next_campaign_at = account.wake
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

  /** One queue each for follow-ups, first messages to people who wrote, to people who did not, and untaken contacts. */
  #queueOf({ campaign_id, account_id, status, cold }: ForecastRecipient): Heap<ForecastRecipient> {
    const kind = account_id === null ? 'free' : status === 'waiting' ? 'waiting' : cold ? 'cold' : 'warm'
    const key = `${account_id ?? ''} ${campaign_id} ${kind}`
    let queue = this.#queues.get(key)
    if (!queue) {
      queue = new Heap(order)
      this.#queues.set(key, queue)
      for (const one of this.#writersTo(campaign_id, account_id)) one.queues.push(queue)
    }
    return queue
  }

  #writersTo(campaign_id: string, account_id: string | null): readonly Account[] {
    if (account_id === null) return this.#pools.get(campaign_id) ?? []
    return this.#accounts.filter(({ id }) => id === account_id)
  }
}

/** The recipient as the account sees it. */
function asOf({ id }: Account, recipient: ForecastRecipient): ForecastRecipient {
  return { ...recipient, needs_lookup: !recipient.asked_by?.includes(id) }
}

/** The queues that are not empty, by their first recipient. */
function inOrder(queues: readonly Heap<ForecastRecipient>[]): Heap<ForecastRecipient>[] {
  return queues
    .filter((queue) => queue.first())
    .sort((one, other) => order(one.first() as ForecastRecipient, other.first() as ForecastRecipient))
}

/** Follow-ups first, then by due time, then by campaign and position. */
function order(one: ForecastRecipient, other: ForecastRecipient): number {
  const late = Number(one.status !== 'waiting') - Number(other.status !== 'waiting')
  const due = (one.next_action_at?.getTime() ?? 0) - (other.next_action_at?.getTime() ?? 0)
  const campaign = one.campaign_id < other.campaign_id ? -1 : Number(one.campaign_id > other.campaign_id)
  return late || due || campaign || one.position - other.position
}
