/**
 * Runs the logins and logouts that users start at the dashboard, as the terminal does: this worker has the platform, and
 * takes the account's lease. What is shown and typed passes through the database.
 */
import type { App } from '../app.ts'
import {
  type ClaimedLogin,
  claimLogins,
  endLost,
  failLogin,
  findWaitingLogin,
  finishLogin,
  type LoginDialogue,
  logIn,
  loginsChanged,
  logOut,
  renewLogins,
  showStep,
  takeAnswers,
} from '../capabilities/accounts/accounts.ts'
import { claimAccount, releaseLease, renewLeases, requireLease } from '../ledger/leases.ts'
import { ApiError } from '../lib/errors.ts'
import { findGivingWay, type Share } from '../lib/shares.ts'
import type { Loop } from '../loop.ts'
import type { LoginStep, Platform } from '../platform/port.ts'

const tickMs = 500
const renewMs = 4_000
/** A login keeps a connection to the database open for as long as it lasts, which may be ten minutes. */
const runsMax = 20
/** As long as a lease lasts, and a little more: its worker may have been killed. */
const leaseMsMax = 20_000
const wrongMax = 3

interface Run {
  readonly request: ClaimedLogin
  readonly left: AbortController
  epoch: string | undefined
  /** Receives what the user types; undefined while nothing is asked. */
  answer: ((text: string) => void) | undefined
}

interface LoginRunnerOptions {
  readonly worker_id: string
  readonly platforms: ReadonlyMap<string, Platform>
  readonly atOnceMax?: number
}

export class LoginRunner {
  readonly loop: Loop = {
    name: 'logins',
    restMs: tickMs,
    wakeOn: loginsChanged,
    step: async () => {
      await this.#renew()
      await this.#claim()
      await this.#answer()
      return false
    },
  }
  readonly #app: App
  readonly #worker_id: string
  readonly #platforms: ReadonlyMap<string, Platform>
  /** The oldest first. */
  readonly #runs = new Map<string, Run>()
  readonly #runsMax: number
  readonly #running = new Set<Promise<void>>()
  #renewedAt = 0

  constructor(app: App, { worker_id, platforms, atOnceMax = runsMax }: LoginRunnerOptions) {
    this.#app = app
    this.#runsMax = atOnceMax
    this.#worker_id = worker_id
    this.#platforms = platforms
  }

  /** Ends the logins. Their users see that they have to start again. */
  async stop(): Promise<void> {
    for (const { left } of this.#runs.values()) left.abort(stopped())
    await Promise.all(this.#running)
  }

  /** Ends the logins that users cancelled, and all of them if the database was unreachable for too long. */
  async #renew(): Promise<void> {
    const { db, sources } = this.#app
    if (sources.now() - this.#renewedAt > renewMs) {
      await endLost(this.#app)
      this.#renewedAt = sources.now()
    }
    if (this.#runs.size === 0) return
    const wanted = await renewLogins(db, [...this.#runs.keys()])
    for (const [attempt, { left }] of this.#runs) if (!wanted.has(attempt)) left.abort(givenUp())
    const leases = [...this.#runs.values()].flatMap(({ request: { account_id }, epoch }) =>
      epoch === undefined ? [] : [{ account_id, epoch, silent_ms: null }],
    )
    if (leases.length > 0) await renewLeases(db, this.#worker_id, leases)
  }

  async #claim(): Promise<void> {
    const limit = this.#runsMax - this.#runs.size
    const platforms = [...this.#platforms.keys()]
    if (limit <= 0) return this.#makeRoom(platforms)
    for (const request of await claimLogins(this.#app, { worker_id: this.#worker_id, platforms, limit })) {
      const run: Run = { request, left: new AbortController(), epoch: undefined, answer: undefined }
      this.#runs.set(request.attempt, run)
      const running = this.#run(run).finally(() => {
        this.#runs.delete(request.attempt)
        this.#running.delete(running)
      })
      this.#running.add(running)
    }
  }

  /** The newest login of the workspace with the most ends, if another workspace waits for a place. */
  async #makeRoom(platforms: readonly string[]): Promise<void> {
    const logins = [...this.#runs.values()].filter(({ request }) => request.way !== 'logout').toReversed()
    if (logins.some(({ left }) => left.signal.aborted)) return
    const waiting = await findWaitingLogin(this.#app.db, platforms)
    const found = waiting && findGivingWay(logins, ({ request }) => shareOf(request), shareOf(waiting))
    if (found?.request.workspace_id !== waiting?.workspace_id) found?.left.abort(crowded()) // guard: a login gives way
  }

  async #answer(): Promise<void> {
    const asking = [...this.#runs].filter(([, { answer }]) => answer).map(([attempt]) => attempt)
    if (asking.length === 0) return
    for (const [attempt, text] of await takeAnswers(this.#app, asking)) {
      const run = this.#runs.get(attempt)
      const answer = run?.answer
      if (run) run.answer = undefined
      answer?.(text)
    }
  }

  async #run(run: Run): Promise<void> {
    const { request } = run
    const { log } = this.#app
    const { account_id, attempt } = request
    try {
      await (request.way === 'logout' ? this.#logOut(request) : this.#logIn(run))
    } catch (error) {
      if (!(error instanceof ApiError)) log.error({ err: error, account_id }, 'a login failed')
      await failLogin(this.#app, attempt, error).catch((err) =>
        log.warn({ err, account_id }, 'that a login failed could not be noted'),
      )
    } finally {
      await this.#release(run)
    }
  }

  async #logOut({ account_id: id, actor, attempt, platform }: ClaimedLogin): Promise<void> {
    await logOut(this.#app, actor, { id, platform: this.#requirePlatform(platform) })
    await this.#app.db.transaction((tx) => finishLogin(tx, attempt))
  }

  async #logIn(run: Run): Promise<void> {
    const { account_id, attempt, actor, phone, platform } = run.request
    run.epoch = await this.#takeLease(run)
    const held = { worker_id: this.#worker_id, account_id, epoch: run.epoch }
    await logIn(this.#app, actor, {
      id: account_id,
      phone,
      platform: this.#requirePlatform(platform),
      dialogue: this.#dialogueOf(run),
      left: run.left.signal,
      confirm: async (tx) => {
        // guard: a login is stored under its lease
        await requireLease(tx, held).catch(refuseLostLease)
        await finishLogin(tx, attempt)
      },
    })
  }

  /** The worker that finds out that a new account has no login still holds its lease. */
  async #takeLease({ request: { account_id }, left }: Run): Promise<string> {
    const { db, sources } = this.#app
    const deadline = sources.now() + leaseMsMax
    for (;;) {
      left.signal.throwIfAborted()
      const lease = await claimAccount(db, { worker_id: this.#worker_id, account_id })
      if (lease) return lease.epoch
      if (sources.now() > deadline) {
        throw new ApiError('conflict', { detail: 'Another worker drives the account. Start again.' })
      }
      await sources.sleep(tickMs)
    }
  }

  #dialogueOf(run: Run): LoginDialogue {
    let wrongs = 0
    let last: Promise<void> = Promise.resolve()
    const show = (step: Extract<LoginStep, { kind: 'qr' | 'code' | 'password' }>) => {
      if (step.kind !== 'qr' && step.wrong) wrongs++
      const shown = { ...shownOf(step), tries_left: wrongMax - wrongs }
      last = last
        .then(() => showStep(this.#app, run.request.attempt, { state: step.kind, shown }))
        .catch((error) => run.left.abort(error))
      return last
    }
    return {
      show: (step) => void show(step),
      ask: async (step) => {
        const typed = new Promise<string>((resolve) => {
          run.answer = resolve
        })
        await show(step)
        return typed
      },
    }
  }

  async #release({ request: { account_id }, epoch }: Run): Promise<void> {
    if (epoch === undefined) return
    await releaseLease(this.#app.db, this.#worker_id, { account_id, epoch }).catch((err) =>
      this.#app.log.warn({ err, account_id }, 'a lease could not be given back'),
    )
  }

  #requirePlatform(name: string): Platform {
    const platform = this.#platforms.get(name)
    if (!platform) throw new ApiError('provider_unavailable')
    return platform
  }
}

function shownOf(step: Extract<LoginStep, { kind: 'qr' | 'code' | 'password' }>) {
  if (step.kind === 'qr') return { qr_url: step.url, qr_expires_at: step.expires_at, wrong: false }
  if (step.kind === 'code') {
    const { sent_by, wrong, place, again } = step
    return { sent_by, wrong, place, again }
  }
  return { hint: step.hint, wrong: step.wrong }
}

function refuseLostLease(): never {
  throw new ApiError('conflict', {
    detail: 'The account was taken from this login. Nothing was stored. Start again.',
  })
}

function stopped(): ApiError {
  const detail = 'The worker that ran the login has stopped. Nothing was stored. Start again.'
  return new ApiError('provider_unavailable', { detail })
}

function shareOf({ workspace_id, actor }: Pick<ClaimedLogin, 'workspace_id' | 'actor'>): Share {
  return { workspace: workspace_id, user: actor }
}

function crowded(): ApiError {
  return new ApiError('rate_limited', {
    detail:
      'Other workspaces wait to log in, and this one has the most logins in progress. Nothing was stored. Start again in a few minutes.',
    retry_after: 60,
  })
}

function givenUp(): ApiError {
  return new ApiError('conflict', { detail: 'The login was cancelled.' })
}
