/**
 * Simulates a campaign from its facts and returns one page of the result. It runs in its own thread (`play-thread.ts`) and
 * takes and returns texts, so that the thread that serves requests neither parses the facts nor builds the answer.
 */
import { createHash } from 'node:crypto'
import { render } from '../../rules/placeholders.ts'
import type { ZoneChange } from '../../rules/zones.ts'
import { Forecast, type ForecastCampaign, type ForecastRecipient, type PlannedMessage } from './forecast.ts'
import { formOf } from './planning/personalize.ts'
import { branches, type Hours, type PlannedAccount, trackOf } from './planning/plan.ts'

/** For how many recipients the texts are shown. */
const textsMax = 20
/** How many messages a play simulates at most: beyond that, the end is unknown. */
export const messagesMax = 200_000
/** How many steps a play runs before it checks whether to stop: about a millisecond. */
const stepsBetweenLooks = 100
/** How long a play is cached to serve further pages. */
const keptMs = 60_000
/** How many messages all cached plays of a thread may hold: about 40 MB. */
const keptMessagesMax = 2 * messagesMax

/** The input of a play without its recipients. In JSON its dates are texts. */
export interface PlayHead {
  /** The campaign that the caller asked about. */
  readonly campaign: ForecastCampaign
  /** The other campaigns that write from the same accounts. */
  readonly others: readonly ForecastCampaign[]
  readonly accounts: readonly (readonly [string, PlannedAccount])[]
  readonly hours: Hours
  readonly pacing_ms: number
}

/** A time in milliseconds. `now`: the start of the play, so that repeating a preview gives the same facts. */
type PlayTime = number | 'now' | null

/** The columns of a recipient. */
export type PlayRow = readonly [
  id: string,
  campaign_id: string,
  position: number,
  account_id: string | null,
  chat_id: string | null,
  identifier: string | null,
  name: string | null,
  username: string | null,
  status: 'queued' | 'waiting',
  step: number,
  last_sent_at: PlayTime,
  next_action_at: PlayTime,
  unknown_since: PlayTime,
  read: boolean,
  cold: boolean,
  known_until?: PlayTime,
  asked_by?: readonly string[],
]

export interface PlayJob {
  /** A `PlayHead` as JSON. */
  readonly head: string
  /** Lists of `PlayRow` as JSON. Those of the campaign are ordered by position. */
  readonly rows: readonly string[]
  /** Milliseconds. */
  readonly now: number
  readonly cpu_ms: number
  /** Its first number is not 0 once no caller waits for the answer. */
  readonly stop: Int32Array
  /** Only recipients after this position. */
  readonly after: number
  readonly limit: number
}

export interface PlayAnswer {
  /** An object as JSON: `texts`, `timetable`, `load`, `end`. */
  readonly text: string
  /** The position after which the next page starts; null: there is none. */
  readonly next: number | null
}

interface NamedRecipient extends ForecastRecipient {
  readonly identifier: string | null
}

interface Play {
  readonly begins: number
  /** The recipients of the campaign. */
  readonly recipients: readonly NamedRecipient[]
  readonly messages: ReadonlyMap<string, readonly PlannedMessage[]>
  readonly count: number
  /** As JSON. */
  readonly texts: string
  readonly load: string
  readonly end: Date | null
}

/** Caches the plays of the last minute by everything they depend on, except the time. */
export class Plays {
  readonly #kept = new Map<string, Play>()

  /** Undefined if it was stopped. */
  answer(job: PlayJob): PlayAnswer | undefined {
    const version = versionOf(job)
    let play = this.#find(version, job.now)
    if (!play) {
      play = playThrough(job)
      if (play) this.#keep(version, play)
    }
    return play && pageOf(play, job)
  }

  #find(version: string, now: number): Play | undefined {
    const play = this.#kept.get(version)
    if (!play || now < play.begins) return undefined
    return now - play.begins < keptMs ? play : undefined // guard: a play is kept for a minute
  }

  #keep(version: string, play: Play): void {
    this.#kept.delete(version)
    this.#kept.set(version, play)
    let messages = 0
    for (const [key, { count }] of [...this.#kept].reverse()) {
      messages += count
      if (messages > keptMessagesMax && key !== version) this.#kept.delete(key)
    }
    // The domain's clock may stand still, so a timer in real time frees the memory.
    setTimeout(() => {
      if (this.#kept.get(version) === play) this.#kept.delete(version)
    }, keptMs).unref()
  }
}

function versionOf({ head, rows }: PlayJob): string {
  const hash = createHash('sha256').update(head)
  for (const text of rows) hash.update(text)
  return hash.digest('base64')
}

function playThrough(job: PlayJob): Play | undefined {
  const began = process.threadCpuUsage()
  const { campaign, others, accounts, hours, pacing_ms } = readHead(job.head)
  const all = job.rows.flatMap((text) => (JSON.parse(text) as PlayRow[]).map((row) => readRow(row, job.now)))
  const forecast = new Forecast({
    ...{ hours, pacing_ms, now: new Date(job.now) },
    campaigns: [campaign, ...others],
    recipients: all,
    accounts: new Map(accounts),
  })
  const recipients = all.filter(({ campaign_id }) => campaign_id === campaign.id)
  const messages = new Map<string, PlannedMessage[]>(recipients.map(({ id }) => [id, []]))
  const load = new Load()
  let [steps, count, whole] = [0, 0, true]
  let end: Date | null = null
  for (const message of forecast.steps()) {
    if (++steps % stepsBetweenLooks === 0) {
      if (Atomics.load(job.stop, 0) !== 0) return undefined // guard: a play stops when the caller leaves
      const { user, system } = process.threadCpuUsage(began)
      if ((user + system) / 1_000 > job.cpu_ms) whole = false // guard: a play has a budget of processor time
    }
    if (!whole) break
    if (!message) continue
    const own = message.campaign_id === campaign.id
    load.add(message, own)
    if (own) {
      messages.get(message.recipient_id)?.push(message)
      end = message.at
    }
    if (++count === messagesMax) whole = false
  }
  return {
    ...{ begins: job.now, recipients, messages, count, load: load.toText(), end: whole ? end : null },
    texts: JSON.stringify(
      recipients.slice(0, textsMax).map((one) => ({ ...nameOf(one), messages: textsOf(campaign, one) })),
    ),
  }
}

function readHead(text: string): PlayHead {
  const head = JSON.parse(text) as PlayHead
  const started = (one: ForecastCampaign) => ({ ...one, scheduled_at: dateOf(one.scheduled_at) })
  return {
    ...head,
    hours: { ...head.hours, change: changeIn(head.hours) },
    campaign: started(head.campaign),
    others: head.others.map(started),
    accounts: head.accounts.map(([id, one]) => [
      id,
      {
        ...one,
        flood_until: dateOf(one.flood_until),
        lookup_flood_until: dateOf(one.lookup_flood_until),
        next_campaign_at: dateOf(one.next_campaign_at),
      },
    ]),
  }
}

function changeIn({ change }: Hours): ZoneChange | null {
  return change ? { ...change, from: new Date(change.from) } : null
}

function readRow(row: PlayRow, now: number): NamedRecipient {
  const [id, campaign_id, position, account_id, chat_id, identifier, name, username, status, step] = row
  const [last_sent_at, next_action_at, unknown_since, read, cold, known_until = null, asked_by = []] =
    row.slice(10) as unknown as [
      ...[PlayTime, PlayTime, PlayTime],
      ...[boolean, boolean, PlayTime?, (readonly string[])?],
    ]
  const time = (at: PlayTime) => dateOf(at === 'now' ? now : at)
  return {
    ...{
      id,
      campaign_id,
      position,
      account_id,
      chat_id,
      identifier,
      name,
      username,
      status,
      step,
      read,
      cold,
      asked_by,
    },
    known_until: time(known_until),
    last_sent_at: time(last_sent_at),
    next_action_at: time(next_action_at),
    unknown_since: time(unknown_since),
  }
}

function dateOf(at: Date | number | string | null): Date | null {
  return at === null ? null : new Date(at)
}

interface RecipientAddress {
  readonly account_id: string | null
  readonly chat_id: string | null
  readonly identifier: string | null
}

/** A recipient as the answer names it. */
export function nameOf({ account_id, chat_id, identifier }: RecipientAddress) {
  return { account_id, chat_id: chat_id === null ? null : `platform:chat:${chat_id}`, identifier }
}

/** Every text that they could get; null while a contact's name is unknown. */
function textsOf(campaign: ForecastCampaign, recipient: ForecastRecipient): object[] {
  const form = formOf(campaign.kind)
  const show = (text: string) => {
    const shown = render(text, form, recipient)
    return 'text' in shown ? shown.text : null
  }
  const first = { step: 0, branch: null, variants: [show(campaign.message_text)] }
  const steps = branches.flatMap((branch) =>
    trackOf(campaign, branch).map(({ variants }, at) => ({
      step: at + 1,
      branch,
      variants: variants.map(show),
    })),
  )
  return [first, ...steps]
}

function pageOf(play: Play, { after, limit }: PlayJob): PlayAnswer {
  const beyond = play.recipients.filter(({ position }) => position > after)
  const shown = beyond.slice(0, limit)
  const timetable = shown.map((one) => ({
    ...nameOf(one),
    messages: (play.messages.get(one.id) ?? []).map(({ step_no, branch, account_id, at }) => ({
      step: step_no,
      branch,
      account_id,
      at,
    })),
  }))
  const { texts, load, end } = play
  const text = `{"texts":${texts},"timetable":${JSON.stringify(timetable)},"load":${load},"end":${JSON.stringify(end)}}`
  return { text, next: beyond.length > limit ? (shown.at(-1)?.position ?? 0) : null }
}

interface DayLoad {
  readonly account_id: string
  readonly day: string
  messages: number
  total: number
}

/** How much each account sends on each day: for this campaign, and in total. */
class Load {
  /** In the order of the days, as the messages come. */
  readonly #days: { readonly day: string; readonly accounts: Map<string, DayLoad> }[] = []

  add({ account_id, day }: PlannedMessage, own: boolean): void {
    let last = this.#days.at(-1)
    if (last?.day !== day) {
      last = { day, accounts: new Map() }
      this.#days.push(last)
    }
    let one = last.accounts.get(account_id)
    if (!one) {
      one = { account_id, day, messages: 0, total: 0 }
      last.accounts.set(account_id, one)
    }
    one.total++
    if (own) one.messages++
  }

  toText(): string {
    const loads = this.#days.flatMap(({ accounts }) =>
      [...accounts.values()].toSorted((one, other) => (one.account_id < other.account_id ? -1 : 1)),
    )
    return JSON.stringify(loads.filter(({ messages }) => messages > 0))
  }
}
