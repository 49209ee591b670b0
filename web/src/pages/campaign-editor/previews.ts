/**
 * Asks for previews while a user types: the first twenty recipients soon, all of them after a second without a change, one
 * request at a time. A 429 waits as long as the service says. An answer is kept with the request it belongs to.
 */
import { type Answer, Refused } from '../../data/api.ts'
import type { CampaignRequest } from '../../data/api-types.ts'

type ForecastOfContract = Answer<'POST /w/{workspace_id}/campaigns/preview'>
/** At this door every exclusion has its sentence. */
export type Forecast = Omit<ForecastOfContract, 'excluded'> & {
  readonly excluded: readonly (ForecastOfContract['excluded'][number] & { readonly sentence?: string })[]
}

/** What people call what the request names by id. */
export interface Names {
  readonly account: (id: string) => string
  readonly recipient: (one: RecipientIds) => string
  readonly timezone: string
}

export interface RecipientIds {
  readonly account_id: string | null
  readonly chat_id: string | null
  readonly identifier: string | null
}

export interface PreviewState {
  readonly forecast: Forecast | undefined
  /** The request of the forecast, as text. */
  readonly of: string | undefined
  /** Whether the forecast has all recipients, not only the first. */
  readonly whole: boolean
  /** When the forecast arrived. */
  readonly at: string | undefined
  readonly busy: boolean
  readonly error: unknown
  /** A 429: when the next request leaves. */
  readonly until: string | undefined
}

const firstMax = 20
/** No more than two requests a second while a user types. */
const gapMs = 500
const quietMs = 1_000

export const noPreview: PreviewState = {
  forecast: undefined,
  of: undefined,
  whole: false,
  at: undefined,
  busy: false,
  error: undefined,
  until: undefined,
}

/** The forecast is of this very request, with everyone in it. */
export function isOf({ forecast, of, whole, error }: PreviewState, text: string): boolean {
  if (of !== text) return false // guard: a start needs a preview of this very draft
  return forecast !== undefined && whole && error === undefined
}

type AskPreview = (body: CampaignRequest) => Promise<Forecast>

interface Wanted {
  readonly body: CampaignRequest
  readonly text: string
  readonly since: number
}

export class Previews {
  readonly #ask: AskPreview
  readonly #show: (state: PreviewState) => void
  #state = noPreview
  #wanted: Wanted | undefined
  #askedAt = Number.NEGATIVE_INFINITY
  #waitUntil = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #closed = false
  /** The answer under way is from before `again`. */
  #repeat = false

  constructor(ask: AskPreview, show: (state: PreviewState) => void) {
    this.#ask = ask
    this.#show = show
  }

  /** Undefined: the draft cannot be previewed now. */
  want(body: CampaignRequest | undefined, text: string): void {
    if (body && this.#wanted?.text === text) return
    this.#wanted = body && { body, text, since: Date.now() }
    this.#go()
  }

  /** The same request again: something besides the draft has changed. */
  again(): void {
    this.#repeat = this.#state.busy
    this.#set({ of: undefined, error: undefined })
    this.#go()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  #set(more: Partial<PreviewState>): void {
    if (this.#closed) return
    this.#state = { ...this.#state, ...more }
    this.#show(this.#state)
  }

  #go(): void {
    clearTimeout(this.#timer)
    const wanted = this.#wanted
    const { busy, of, whole, error } = this.#state
    if (this.#closed || !wanted || busy) return
    const isKnown = of === wanted.text
    if (isKnown && (whole || error !== undefined)) return
    const count = (wanted.body.recipients ?? wanted.body.contacts ?? []).length
    const all = isKnown || count <= firstMax
    const at = Math.max(this.#askedAt + gapMs, this.#waitUntil, isKnown ? wanted.since + quietMs : 0)
    if (at > Date.now()) this.#timer = setTimeout(() => this.#go(), at - Date.now())
    else void this.#request(wanted, all)
  }

  async #request({ body, text }: Wanted, all: boolean): Promise<void> {
    this.#askedAt = Date.now()
    this.#set({ busy: true, until: undefined })
    try {
      const forecast = await this.#ask(all ? body : firstOf(body))
      this.#set({ forecast, of: text, whole: all, at: new Date().toISOString(), error: undefined })
    } catch (error) {
      const isBusy = error instanceof Refused && error.status === 429
      if (isBusy) {
        this.#waitUntil = Date.now() + (error.retry_after ?? 1) * 1_000
        this.#set({ until: new Date(this.#waitUntil).toISOString() })
      } else this.#set({ of: text, whole: false, error })
    }
    this.#set({ busy: false, ...(this.#repeat && { of: undefined }) })
    this.#repeat = false
    this.#go()
  }
}

function firstOf({ recipients, contacts, ...rest }: CampaignRequest): CampaignRequest {
  return {
    ...rest,
    ...(recipients && { recipients: recipients.slice(0, firstMax) }),
    ...(contacts && { contacts: contacts.slice(0, firstMax) }),
  }
}
