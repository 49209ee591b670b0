/** One login of a rehearsal: a key of its own, kept in memory only, and what its session has reported so far. */
import type {
  AccountRef,
  AccountStore,
  Closed,
  Listener,
  LoginStep,
  Outcome,
  StoredPeer,
  Update,
  UpdateBatch,
} from '../port.ts'
import type { Endpoint } from './client.ts'
import { ConnectMemory } from './connect-memory.ts'
import { findErrorText, nameOf } from './errors.ts'
import { beginLogin, logout } from './login.ts'
import { retryWithTime } from './server-clock.ts'
import { openSession, type TelegramSession } from './session.ts'
import { Tally } from './tally.ts'

/** How long an update may take. Telegram delivers most within a second. */
const updateMsMax = 30_000

/** Why a check did not pass: a sentence of ours, in which Telegram has at most the name of an error. */
export class CheckFailed extends Error {
  override readonly name = 'CheckFailed'
}

/** The sentence of the report. Of an error that is not ours it has the kind alone: its message may have anything in it. */
export function sentenceOf(error: unknown): string {
  if (error instanceof CheckFailed) return error.message
  const text = findErrorText(error)
  if (text !== undefined) return `Telegram refused it: ${printedName(text)}.`
  return `It failed: ${error instanceof Error ? printedName(error.name) : 'for no known reason'}.` // guard: a report has no foreign text
}

function printedName(text: string): string {
  return nameOf(text)
    .slice(0, 64)
    .replaceAll(/[^A-Za-z0-9_]/g, '_')
}

/** The value of an accepted call. */
export function accepted<T>(outcome: Outcome<T>): T {
  switch (outcome.kind) {
    case 'accepted':
      return outcome.value
    case 'refused':
      throw new CheckFailed(`Telegram refused it: ${printedName(outcome.detail ?? outcome.reason)}.`)
    case 'flood_wait':
      throw new CheckFailed(`Telegram asks to wait for ${outcome.retry_after_seconds} s.`)
    case 'not_written':
      throw new CheckFailed(`Nothing was sent: ${printedName(outcome.cause ?? 'no_connection')}.`)
    case 'unknown':
      throw new CheckFailed(`Its outcome is unknown: ${printedName(outcome.reason)}.`)
  }
}

class MemoryStore implements AccountStore {
  #session: Uint8Array
  readonly #peers = new Map<StoredPeer['number'], string>()

  constructor(session: Uint8Array) {
    this.#session = session
  }

  readSession(): Promise<Uint8Array> {
    return Promise.resolve(this.#session)
  }

  writeSession(session: Uint8Array): Promise<void> {
    this.#session = session
    return Promise.resolve()
  }

  listPeers({ after, limit }: Parameters<AccountStore['listPeers']>[0]): Promise<StoredPeer[]> {
    const peers = [...this.#peers].map(([number, text]) => ({ number, text }))
    const rest = peers.filter(({ number }) => after === null || BigInt(number) > BigInt(after))
    rest.sort((one, other) => (BigInt(one.number) < BigInt(other.number) ? -1 : 1))
    return Promise.resolve(rest.slice(0, limit))
  }

  writePeers(peers: readonly StoredPeer[]): Promise<void> {
    for (const { number, text } of peers) this.#peers.set(number, text)
    return Promise.resolve()
  }
}

function explainFailure({
  reason,
  detail,
  retry_after_seconds,
}: Extract<LoginStep, { kind: 'failed' }>): string {
  if (reason === 'misconfigured' && detail !== null) return detail // It is a sentence of ours.
  if (retry_after_seconds !== null) return `Telegram asks to wait for ${retry_after_seconds} s.`
  return `The login failed: ${printedName(detail ?? reason)}.`
}

export interface LoginHelp {
  /** Null: by a QR code, which `scan` accepts. */
  readonly phone: string | null
  scan?(url: string): Promise<void>
  ask(step: Extract<LoginStep, { kind: 'code' | 'password' }>): Promise<string>
}

/** Logs in as the product does, and returns the device with its key. */
export async function logInDevice(endpoint: Endpoint, help: LoginHelp): Promise<RehearsalDevice> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
  const login = beginLogin(endpoint, { phone: help.phone, proxy: null }, (step) => {
    const answer = (text: Promise<string>) => text.then((typed) => login.answer(typed), reject)
    if (step.kind === 'done') resolve(step.session)
    else if (step.kind === 'failed') reject(new CheckFailed(explainFailure(step)))
    else if (step.kind === 'qr') help.scan?.(step.url).catch(reject)
    else void answer(help.ask(step))
  })
  try {
    return new RehearsalDevice(endpoint, await promise)
  } finally {
    await login.close()
  }
}

export class RehearsalDevice implements Listener {
  readonly #endpoint: Endpoint
  readonly #store: MemoryStore
  /** Without doubt: a login that was ended must be refused at once. */
  readonly #memory = new ConnectMemory(0)
  readonly #seen: Update[] = []
  readonly #wakes = new Set<() => void>()
  #position: string | null = null
  #isCaughtUp = false
  #session: TelegramSession | undefined
  #isLoggedOut = false

  constructor(endpoint: Endpoint, session: Uint8Array) {
    this.#endpoint = endpoint
    this.#store = new MemoryStore(session)
  }

  get session(): TelegramSession {
    if (!this.#session) throw new CheckFailed('The account is not connected.')
    return this.#session
  }

  get isConnected(): boolean {
    return this.#session !== undefined
  }

  /** How many updates it has got so far. */
  get mark(): number {
    return this.#seen.length
  }

  async updates(batch: UpdateBatch): Promise<void> {
    this.#seen.push(...batch.updates)
    this.#position = batch.position
    this.#isCaughtUp ||= batch.caught_up
    for (const wake of this.#wakes) wake()
  }

  closed(_reason: Closed): void {
    this.#session = undefined
    for (const wake of this.#wakes) wake()
  }

  /** From where the last session ended, as a worker does. */
  async connect(): Promise<void> {
    this.#isCaughtUp = false
    this.#session = await retryWithTime(this.#memory.clock, async () => accepted(await this.#open()))
    await this.#until('The account did not catch up.', () => this.#isCaughtUp || undefined)
  }

  #open(): Promise<Outcome<TelegramSession>> {
    const account: AccountRef = {
      ...{ account_id: 'acc_rehearsal', name: 'Rehearsal', proxy: null },
      position: this.#position,
      held: () => true,
      store: this.#store,
    }
    return openSession(this.#endpoint, account, {
      listener: this,
      tally: new Tally(),
      memory: this.#memory,
    })
  }

  async disconnect(): Promise<void> {
    const session = this.#session
    this.#session = undefined
    await session?.close()
  }

  /** Every update since the mark that is of this kind and fits. */
  since<K extends Update['kind']>(
    mark: number,
    kind: K,
    fits: (update: Extract<Update, { kind: K }>) => boolean = () => true,
  ): Extract<Update, { kind: K }>[] {
    const own = this.#seen.slice(mark) as Extract<Update, { kind: K }>[]
    return own.filter((update) => update.kind === kind && fits(update))
  }

  /** The first of them, as soon as there is one. */
  next<K extends Update['kind']>(
    mark: number,
    kind: K,
    fits: (update: Extract<Update, { kind: K }>) => boolean,
  ): Promise<Extract<Update, { kind: K }>> {
    return this.#until(`No update "${kind}" came within ${updateMsMax / 1000} s.`, () => {
      return this.since(mark, kind, fits)[0]
    })
  }

  async #until<T>(late: string, find: () => T | undefined): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const look = () => {
      const found = find()
      if (found !== undefined) resolve(found)
      else if (!this.#session) reject(new CheckFailed('The connection ended.'))
    }
    const timer = setTimeout(() => reject(new CheckFailed(late)), updateMsMax)
    this.#wakes.add(look)
    look()
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.#wakes.delete(look)
    }
  }

  /** Revokes the key at Telegram, once. */
  async logOut(): Promise<void> {
    if (this.#isLoggedOut) return
    await this.disconnect()
    accepted(await logout(this.#endpoint, { session: await this.#store.readSession(), proxy: null }))
    this.#isLoggedOut = true
  }

  /** Whether Telegram refuses the key. */
  async isRefused(): Promise<boolean> {
    const outcome = await this.#open()
    if (outcome.kind === 'accepted') await outcome.value.close()
    return outcome.kind === 'refused' && outcome.reason === 'needs_login'
  }
}
