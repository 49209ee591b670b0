/**
 * Realistic callers: they send with idempotency keys, repeat a key after no answer or "later", stop when the outcome is unknown,
 * and sometimes ask several processes at once. Every request and answer goes into the history that the oracle reads.
 *
 *   const asked = await ask(plant, sendOf({ key: 'k1', account_id, chat_id, text: 'Hello' }))   // one request
 *   const clients = startClients(plant, { random, count: 16 })                                         // load
 *   await clients.stop()
 *   await clients.repeat()                                                       // every key once more, at the end
 *   judge(await plant.evidence(clients.history))
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CallRecord, Kind } from './oracle.ts'
import type { Plant } from './plant.ts'
import type { Random } from './random.ts'

/** Longer than the service's own time limit. */
const answerMsMax = 45_000
/** How often a caller tries one key before it gives up. */
const attemptsMax = 80
const crowdShare = 0.15
const crowdMax = 5
const repeatsAtOnce = 12
const hangUpMsMax = 400

/** What goes on the wire, and what the oracle gets to see of it. */
export interface PlannedCall extends Pick<CallRecord, 'key' | 'kind' | 'account_id' | 'chat_id' | 'payload'> {
  readonly path: string
}

type CallTarget = Pick<PlannedCall, 'key' | 'account_id' | 'chat_id'>

export function sendOf({ text, ...place }: CallTarget & { text: string }): PlannedCall {
  const { account_id, chat_id } = place
  return { ...place, kind: 'send', path: '/messages', payload: { account_id, chat_id, text } }
}

export function startOf({ identifier, ...place }: CallTarget & { identifier: string }): PlannedCall {
  const { account_id } = place
  return { ...place, kind: 'start', path: '/chats/start', payload: { account_id, identifier } }
}

export function readStateOf({ unread, ...place }: CallTarget & { unread: boolean }): PlannedCall {
  const { account_id, chat_id } = place
  return {
    ...place,
    kind: 'read_state',
    path: `/chats/${chat_id}/read-state`,
    payload: { account_id, unread },
  }
}

interface CallOptions {
  /** The process to ask; the first running one by default. */
  readonly url?: string | undefined
  /** An API key of the workspace; its first one by default. */
  readonly api_key?: string
  /** The caller hangs up after this long. */
  readonly msMax?: number
}

/** The answer and its times. */
export type Answer = Pick<CallRecord, 'asked_at' | 'answered_at' | 'status' | 'code' | 'replayed' | 'body'>

/** Sends one request. A missing answer is recorded, too. */
export async function ask(plant: Plant, wanted: PlannedCall, how: CallOptions = {}): Promise<CallRecord> {
  const { path, ...request } = wanted
  return { ...request, ...(await post(plant, wanted, how)) }
}

/** The same for any request with a key. */
export async function post(
  plant: Plant,
  { path, key, payload }: { readonly path: string; readonly key: string; readonly payload?: object },
  how: CallOptions = {},
): Promise<Answer> {
  const { url = plant.urls[0], api_key = plant.tenant.key, msMax = answerMsMax } = how
  const asked_at = Date.now()
  const silence = { asked_at, answered_at: null, status: null, code: null, replayed: false, body: null }
  if (!url) return silence
  try {
    const response = await fetch(`${url}/api/v1${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${api_key}`,
        'idempotency-key': key,
        ...(payload && { 'content-type': 'application/json' }),
      },
      ...(payload && { body: JSON.stringify(payload) }),
      signal: AbortSignal.timeout(msMax),
    })
    const body = (await response.json()) as Record<string, unknown>
    return {
      asked_at,
      answered_at: Date.now(),
      status: response.status,
      code: typeof body.code === 'string' ? body.code : null,
      replayed: response.headers.get('idempotent-replayed') === 'true',
      body,
    }
  } catch {
    return silence
  }
}

/** What a careful caller does with an answer. */
export function verdictOn({ status, code }: Pick<Answer, 'status' | 'code'>): 'done' | 'again' | 'stop' {
  if (status === 200 || status === 201) return 'done'
  if (status === null || status === 429 || status === 408) return 'again'
  if (code === 'outcome_ambiguous') return 'stop'
  if (status >= 500) return 'again'
  return code === 'operation_in_progress' || code === 'account_not_ready' ? 'again' : 'stop'
}

interface ClientsOptions {
  readonly random: Random
  readonly count: number
  /** The prefix of its keys; `c` by default. */
  readonly prefix?: string
  /** The share of requests in which the caller hangs up early. */
  readonly hangUpShare?: number
  /** Uses several API keys of the workspace for the same idempotency key. */
  readonly apiKeys?: boolean
  readonly kinds?: readonly (readonly [Kind, number])[]
  /** Called before the first try of a key: the time to set up a fault for its account. */
  readonly before?: (wanted: PlannedCall, random: Random) => Promise<void>
}

export interface Clients {
  readonly history: readonly CallRecord[]
  /** How many keys have been started. */
  readonly keys: number
  /** Every caller finishes its current request and sends no more. */
  stop(): Promise<void>
  /** Asks every key once more: a final answer must stay the same. */
  repeat(): Promise<void>
}

const kindsDefault: readonly (readonly [Kind, number])[] = [
  ['send', 8],
  ['start', 1],
  ['read_state', 1],
]

export function startClients(plant: Plant, options: ClientsOptions): Clients {
  const history: CallRecord[] = []
  const keys = new Map<string, PlannedCall>()
  let over = false

  async function live(number: number): Promise<void> {
    const random = options.random.fork(`client ${number}`)
    for (let n = 0; !over; n++) {
      const wanted = await want(plant, random, {
        key: `${options.prefix ?? 'c'}${number}-${n}`,
        kinds: options.kinds ?? kindsDefault,
      }).catch(() => undefined)
      if (!wanted) {
        await sleep(200)
        continue
      }
      keys.set(wanted.key, wanted)
      await options.before?.(wanted, random).catch(() => {})
      await persist(wanted, random)
    }
  }

  async function persist(wanted: PlannedCall, random: Random): Promise<void> {
    for (let attempt = 1; attempt <= attemptsMax && !over; attempt++) {
      const crowd = random.chance(crowdShare) ? 2 + random.whole(crowdMax - 1) : 1
      const answers = await Promise.all(
        Array.from({ length: crowd }, () => ask(plant, wanted, howOf(plant, random, options))),
      )
      history.push(...answers)
      const verdicts = answers.map(verdictOn)
      // Sometimes repeats a successful key at once.
      if (verdicts.includes('done') && !random.chance(0.1)) return
      if (verdicts.includes('stop')) return
      await sleep(random.between(50, 1_000))
    }
  }

  const living = Promise.all(Array.from({ length: options.count }, (_, number) => live(number)))
  return {
    history,
    get keys() {
      return keys.size
    },
    async stop() {
      over = true
      await living
    },
    async repeat() {
      const left = [...keys.values()]
      const repeatAll = async () => {
        for (let wanted = left.pop(); wanted; wanted = left.pop()) history.push(await ask(plant, wanted))
      }
      await Promise.all(Array.from({ length: repeatsAtOnce }, repeatAll))
    },
  }
}

function howOf(
  { urls, tenant }: Plant,
  random: Random,
  { hangUpShare = 0, apiKeys = false }: ClientsOptions,
): CallOptions {
  return {
    url: urls.length > 0 ? random.pick(urls) : undefined,
    ...(apiKeys && { api_key: random.pick(tenant.keys) }),
    ...(random.chance(hangUpShare) && { msMax: random.between(1, hangUpMsMax) }),
  }
}

/** Every send has its own text and every start its own person, so that nothing else explains what happened. */
async function want(
  plant: Plant,
  random: Random,
  { key, kinds }: { key: string; kinds: readonly (readonly [Kind, number])[] },
): Promise<PlannedCall> {
  const account_id = random.pick(plant.accounts)
  const kind = random.weigh(kinds)
  const chat_id = `platform:chat:${random.pick(plant.people)}`
  switch (kind) {
    case 'send':
      return sendOf({ key, account_id, chat_id, text: `message ${key}` })
    case 'read_state':
      return readStateOf({ key, account_id, chat_id, unread: random.chance(0.5) })
    case 'start': {
      const { person_id, username } = await plant.addPerson()
      return startOf({ key, account_id, chat_id: `platform:chat:${person_id}`, identifier: username })
    }
  }
}
