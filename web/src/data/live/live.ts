/**
 * Keeps pages up to date. All tabs of a browser share one stream, because a browser opens only six connections to a service:
 * the tab that holds a lock reads it and passes marks on. Without locks, or without a stream, pages read again every 10 s.
 */
import { SharedState, useShared } from '../shared-state.ts'
import { mayNotify } from './notification-settings.ts'
import { type Mark, readWhileHidden, staleBy, staleEverything } from './stale.ts'
import { readStream } from './stream.ts'

/** `lost` is shown only after a while: most losses are short. */
type LiveState = 'live' | 'lost' | 'polling'

const lockName = 'parley.live'
const leaderSilentMsMax = 45_000
const lookMs = 1_000
/** Makes up for lost marks. */
const restMs = 30_000
const pollMs = 10_000
const lostMs = 3_000

type Passed =
  | { readonly what: 'marks'; readonly marks: readonly Mark[] }
  | { readonly what: 'state'; readonly state: LiveState; readonly reopened: boolean }
  | { readonly what: 'alive' | 'who' | 'notify' }

const shown = new SharedState<LiveState>('live')
const markListeners = new Set<(marks: readonly Mark[]) => void>()

/** Whether the page is up to date, for the frame to show. */
export function useLiveState(): LiveState {
  return useShared(shown)
}

/** Marks as they arrive, in every tab. */
export function onMarks(listener: (marks: readonly Mark[]) => void): () => void {
  markListeners.add(listener)
  return () => markListeners.delete(listener)
}

let lostTimer: ReturnType<typeof setTimeout> | undefined

function show(next: LiveState): void {
  clearTimeout(lostTimer)
  lostTimer = undefined
  if (next !== shown.get()) shown.set(next)
}

let current: Tab | undefined

/** Calls when another tab of this browser has opened a stream, so that a session may have begun, until the result is called. */
export function onOpenedElsewhere(heard: () => void): () => void {
  const channel = openChannel()
  channel?.addEventListener('message', ({ data }: MessageEvent<Passed>) => {
    if (data.what === 'state' && data.reopened) heard()
  })
  return () => channel?.close()
}

/** Until the returned function is called. */
export function startLive(): () => void {
  const stop = new AbortController()
  current = new Tab(stop.signal)
  current.start()
  return () => stop.abort()
}

/** After the settings of notifications have changed: the tab that leads takes them over. */
export function restartNotifying(): void {
  current?.restartNotifying()
}

const loadNotifications = () => import('./notifications.ts')

function openChannel(): BroadcastChannel | undefined {
  return 'BroadcastChannel' in globalThis ? new BroadcastChannel(lockName) : undefined
}

class Tab {
  readonly #signal: AbortSignal
  readonly #channel = openChannel()
  /** The state of the stream, as the leader reports it. */
  #state: LiveState = 'live'
  #leads = false
  /** Whether to take the lock from the tab that holds it. */
  #steal = false
  #ended = false
  #waiting: AbortController | undefined
  #reading: AbortController | undefined
  #heardAt = Date.now()
  #readAt = Date.now()

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  start(): void {
    const look = setInterval(() => this.#look(), lookMs)
    const visible = () => this.#look()
    document.addEventListener('visibilitychange', visible)
    this.#signal.addEventListener('abort', () => {
      clearInterval(look)
      document.removeEventListener('visibilitychange', visible)
      this.#channel?.close()
      show('live')
    })
    // Undefined on a page without TLS, although the types say otherwise.
    if (!this.#channel || !(navigator.locks as LockManager | undefined)) {
      readWhileHidden(true)
      this.#enter('polling')
      return
    }
    this.#channel.onmessage = ({ data }: MessageEvent<Passed>) => this.#hear(data)
    void this.#takePart()
    this.#pass({ what: 'who' })
  }

  restartNotifying(): void {
    this.#pass({ what: 'notify' })
    this.#startNotifying()
  }

  #startNotifying(): void {
    if (this.#leads && mayNotify()) void loadNotifications().then(({ startNotifying }) => startNotifying())
  }

  /** Leads as soon as no other tab does, or in place of one that is silent. */
  async #takePart(): Promise<void> {
    while (!this.#signal.aborted && !this.#ended) {
      this.#waiting = new AbortController()
      const signal = AbortSignal.any([this.#signal, this.#waiting.signal])
      const leading = navigator.locks.request(lockName, this.#steal ? { steal: true } : { signal }, () =>
        this.#lead(),
      )
      this.#steal = false
      // Rejects when another tab takes the lock, when this tab is to take it, and when it stops.
      await leading.catch(() => {})
      this.#leads = false
      readWhileHidden(false)
      this.#reading?.abort()
    }
  }

  async #lead(): Promise<void> {
    this.#leads = true
    readWhileHidden(true)
    this.#reading = new AbortController()
    this.#startNotifying()
    const events = {
      opened: () => this.#enter('live', true),
      lost: () => this.#enter('lost'),
      refused: () => this.#enter('polling'),
      marks: (marks: readonly Mark[]) => {
        this.#pass({ what: 'marks', marks })
        receive(marks)
        // Only here, so that a browser with many tabs notifies once.
        if (mayNotify()) void loadNotifications().then(({ notifyBy }) => notifyBy(marks))
      },
      // Also before the stream is open: while this tab tries, no other tab needs to.
      alive: () => this.#pass({ what: 'alive' }),
    }
    const signal = AbortSignal.any([this.#signal, this.#reading.signal])
    await readStream(events, signal)
    if (signal.aborted) return
    // The session has ended: the next read of every tab leads it to the sign-in.
    this.#ended = true
    this.#enter('live', true)
  }

  /** Reports as the leader. Followers store the same. */
  #enter(next: LiveState, reopened = false): void {
    this.#pass({ what: 'state', state: next, reopened })
    this.#note(next, reopened)
  }

  #note(next: LiveState, reopened: boolean): void {
    this.#state = next
    if (next === 'lost') lostTimer ??= setTimeout(() => show('lost'), lostMs)
    else show(next)
    if (reopened) this.#readAll()
  }

  #pass(passed: Passed): void {
    if (!this.#signal.aborted) this.#channel?.postMessage(passed)
  }

  #hear(passed: Passed): void {
    if (passed.what === 'who') {
      if (this.#leads) this.#pass({ what: 'state', state: this.#state, reopened: false })
      return
    }
    if (passed.what === 'notify') {
      this.#startNotifying()
      return
    }
    this.#heardAt = Date.now()
    if (passed.what === 'marks') receive(passed.marks)
    else if (passed.what === 'state') this.#note(passed.state, passed.reopened)
  }

  #look(): void {
    const now = Date.now()
    const visible = document.visibilityState === 'visible'
    const gapMs = this.#state === 'live' ? restMs : pollMs
    if (visible && now - this.#readAt >= gapMs) this.#readAll()
    const follows = this.#channel && navigator.locks && !this.#leads && !this.#ended
    // A frozen or crashed tab may keep the lock. Tabs do not all take it at the same moment.
    if (!follows || now - this.#heardAt < leaderSilentMsMax + Math.random() * 1_000) return
    this.#heardAt = now
    this.#steal = true
    this.#waiting?.abort()
  }

  #readAll(): void {
    this.#readAt = Date.now()
    staleEverything()
  }
}

function receive(marks: readonly Mark[]): void {
  staleBy(marks)
  for (const listener of markListeners) listener(marks)
}
