/**
 * The one oracle of every run: checks what the platform accepted, what the ledger says and what callers were answered against
 * the promises of the ledger. Pure: it judges evidence that others have gathered.
 *
 *   P1 never twice · P2 never forgotten · P3 never invented · P4 unknown is said · P6 counts are true · P7 every operation ends
 *
 * Sends are exact: the random id ties a submission to its operation. Starts and read states have none, so they are counted for
 * each account and chat: at least the completed ones, at most the completed and ambiguous ones.
 */
import { canonicalize } from 'json-canonicalize'
import type { JournalEntry } from '../../src/platform/sandbox/entries.ts'

export type Kind = JournalEntry['kind']
export type State = 'queued' | 'submitting' | 'completed' | 'refused' | 'released' | 'ambiguous'

/** A row of `operations` whose effect is on the platform. */
export interface OperationRow {
  readonly id: string
  /** The operation's name in the contract. */
  readonly kind: string
  readonly idempotency_key: string | null
  readonly state: State
  readonly reason: string | null
  readonly account_id: string | null
  /** Decimal; null if only the platform's answer gives it. */
  readonly chat_id: string | null
  readonly random_id: string | null
  readonly attempt_no: number
  readonly attempt_token: string | null
  readonly reply_status: number | null
  readonly reply_body: unknown
  readonly reconciled: boolean
  /** The day in its workspace's time zone on which it ended, such as 2026-11-02. */
  readonly finished_on?: string | null
}

/** One request as its caller saw it. Times are milliseconds of the caller's clock. */
export interface CallRecord {
  readonly key: string
  readonly kind: Kind
  readonly account_id: string
  /** In the contract's form, even if the caller named a person and not the chat. */
  readonly chat_id: string
  readonly payload: { readonly text?: string; readonly [name: string]: unknown }
  readonly asked_at: number
  /** Null, like what follows, if no answer came. */
  readonly answered_at: number | null
  readonly status: number | null
  readonly code: string | null
  readonly replayed: boolean
  readonly body: Readonly<Record<string, unknown>> | null
}

/** A change of state as the database saw it. `by` names the process; each restart gets a new name. */
export interface Transition {
  readonly operation_id: string
  readonly from: State | null
  readonly to: State
  readonly reason: string | null
  readonly reconciled: boolean
  readonly by: string
  readonly at: number
}

export interface Evidence {
  readonly journal: readonly JournalEntry[]
  readonly operations: readonly OperationRow[]
  readonly history: readonly CallRecord[]
  readonly transitions?: readonly Transition[]
  /** The processes that are alive at the end, by their names in `transitions`. */
  readonly alive?: readonly string[]
  /** The tokens of all attempts that any journal on any disk intended. */
  readonly intended?: readonly string[]
  readonly counters?: readonly Counter[]
  /** The database went back to an older copy: what was known may have become unknown, but never undone. */
  readonly restored?: boolean
  /** The platform opens chats without a call, so it knows nothing of them. */
  readonly startsUnseen?: boolean
}

/** How many messages an account has sent on a day, as limits and reports count them. */
export interface Counter {
  readonly account_id: string
  readonly day: string
  readonly sent: number
}

export interface Violation {
  readonly promise: 'P1' | 'P2' | 'P3' | 'P4' | 'P6' | 'P7'
  readonly what: string
  readonly operation_id?: string
  readonly key?: string
  readonly account_id?: string
  readonly chat_id?: string
}

const kinds: Readonly<Record<string, Kind>> = { start_chat: 'start', set_read_state: 'read_state' }

/** What an operation does on the platform. Everything but the other two is a send. */
export function kindOf({ kind }: Pick<OperationRow, 'kind'>): Kind {
  return kinds[kind] ?? 'send'
}

export function judge(evidence: Evidence): Violation[] {
  const index = makeIndex(evidence)
  return [
    ...checkSends(index),
    ...checkTexts(index),
    ...checkCounts(index),
    ...checkNeverWritten(evidence),
    ...checkCounters(evidence),
    ...evidence.operations.flatMap((row) => [...checkRow(row, index)]),
    ...[...index.asked.values()].flatMap((asked) => [...checkAnswers(asked, index)]),
  ]
}

interface Index {
  readonly evidence: Evidence
  /** By account and random id. */
  readonly sends: ReadonlyMap<string, readonly JournalEntry[]>
  readonly rowsOfSends: ReadonlyMap<string, readonly OperationRow[]>
  /** By kind and idempotency key. */
  readonly rows: ReadonlyMap<string, readonly OperationRow[]>
  readonly asked: ReadonlyMap<string, readonly CallRecord[]>
}

function makeIndex(evidence: Evidence): Index {
  const { journal, operations, history } = evidence
  return {
    evidence,
    sends: groupBy(
      journal.filter(({ kind }) => kind === 'send'),
      sendOf,
    ),
    rowsOfSends: groupBy(
      operations.filter((row) => kindOf(row) === 'send'),
      sendOf,
    ),
    rows: groupBy(operations, (row) => `${kindOf(row)} ${row.idempotency_key}`),
    asked: groupBy(history, ({ kind, key }) => `${kind} ${key}`),
  }
}

function sendOf(one: { readonly account_id: string | null; readonly random_id: string | null }): string {
  return `${one.account_id} ${one.random_id}`
}

function groupBy<T>(all: readonly T[], key: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) {
    const group = groups.get(key(one))
    if (group) group.push(one)
    else groups.set(key(one), [one])
  }
  return groups
}

/** P1 and P2 from the platform's side: each accepted submission belongs to one operation, which knows of it. */
function* checkSends({ sends, rowsOfSends }: Index): Generator<Violation> {
  for (const [id, entries] of sends) {
    const [first] = entries
    const rows = rowsOfSends.get(id) ?? []
    const [row] = rows
    if (!first) continue
    const at = { account_id: first.account_id, chat_id: first.chat_id }
    if (entries.length > 1) {
      yield { promise: 'P1', what: `accepted ${entries.length} times`, ...at, ...named(row) }
    }
    if (!row) {
      yield { promise: 'P2', what: 'accepted, and no operation knows of it', ...at }
      continue
    }
    if (rows.length > 1) {
      yield { promise: 'P1', what: 'two operations share a random id', ...at, ...named(row) }
    }
    if (row.state !== 'completed' && row.state !== 'ambiguous') {
      yield { promise: 'P2', what: `accepted, and its operation is ${row.state}`, ...at, ...named(row) }
    }
    if (row.chat_id !== null && numberOf(row.chat_id) !== numberOf(first.chat_id)) {
      yield { promise: 'P3', what: 'accepted for another chat than asked', ...at, ...named(row) }
    }
  }
}

/** P1 without trusting random ids: a text that only one key asked for was accepted once. */
function* checkTexts({ evidence }: Index): Generator<Violation> {
  const sends = evidence.history.filter(({ kind, payload }) => kind === 'send' && payload.text !== undefined)
  const askers = groupBy(sends, ({ account_id, payload }) => `${account_id} ${payload.text}`)
  const accepted = groupBy(
    evidence.journal.filter(({ kind }) => kind === 'send'),
    ({ account_id, text }) => `${account_id} ${text}`,
  )
  for (const [text, entries] of accepted) {
    const keys = new Set(askers.get(text)?.map(({ key }) => key))
    const [key] = keys
    const [first] = entries
    const ids = new Set(entries.map(({ random_id }) => random_id))
    if (keys.size !== 1 || key === undefined || !first || ids.size < 2) continue
    const { account_id, chat_id } = first
    yield { promise: 'P1', what: `accepted under ${ids.size} random ids`, key, account_id, chat_id }
  }
}

/** P1 to P3 for operations without a random id. */
function* checkCounts({ evidence, asked }: Index): Generator<Violation> {
  const chatOf = (row: OperationRow) =>
    row.chat_id ?? asked.get(`${kindOf(row)} ${row.idempotency_key}`)?.[0]?.chat_id ?? ''
  const placeOf = (kind: Kind, account_id: string | null, chat_id: string) =>
    `${kind} ${account_id} ${numberOf(chat_id)}`
  const entries = groupBy(
    evidence.journal.filter(({ kind }) => kind !== 'send'),
    ({ kind, account_id, chat_id }) => placeOf(kind, account_id, chat_id),
  )
  const rows = groupBy(
    evidence.operations.filter((row) => {
      const kind = kindOf(row)
      return kind !== 'send' && !(kind === 'start' && evidence.startsUnseen)
    }),
    (row) => placeOf(kindOf(row), row.account_id, chatOf(row)),
  )
  for (const place of new Set([...entries.keys(), ...rows.keys()])) {
    const accepted = entries.get(place)?.length ?? 0
    const here = rows.get(place) ?? []
    const completed = here.filter(({ state }) => state === 'completed').length
    const ambiguous = here.filter(({ state }) => state === 'ambiguous').length
    const what = `${place}: accepted ${accepted}, completed ${completed}, ambiguous ${ambiguous}`
    if (accepted < completed) yield { promise: 'P3', what }
    if (accepted <= completed + ambiguous) continue
    const deniers = here.filter(({ state, attempt_no }) => !isTold(state) && attempt_no > 0)
    yield { promise: here.length === 0 || deniers.length > 0 ? 'P2' : 'P1', what, ...named(deniers[0]) }
  }
}

function isTold(state: State): boolean {
  return state === 'completed' || state === 'ambiguous'
}

/** P3, P4 and P7 from the ledger's side. */
function* checkRow(row: OperationRow, { sends, evidence }: Index): Generator<Violation> {
  if (row.state === 'queued' || row.state === 'submitting') {
    yield { promise: 'P7', what: `still ${row.state}`, ...named(row) }
  }
  if (row.state === 'completed' && kindOf(row) === 'send' && !sends.has(sendOf(row))) {
    yield { promise: 'P3', what: 'completed, and nothing was accepted', ...named(row) }
  }
  if (row.state === 'ambiguous' && (row.attempt_no < 1 || !row.attempt_token) && !evidence.restored) {
    yield { promise: 'P4', what: 'ambiguous, and never submitted', ...named(row) }
  }
  if ((row.state === 'released' || row.state === 'refused') && !row.reason) {
    yield { promise: 'P4', what: `${row.state} without a reason`, ...named(row) }
  }
}

/** P4: a living process that never journaled the attempt knows that nothing was sent, and has to say so. */
function* checkNeverWritten(evidence: Evidence): Generator<Violation> {
  const { operations, transitions = [], alive = [], intended, restored } = evidence
  if (!intended || restored) return
  const written = new Set(intended)
  const crossedBy = new Map<string, string>()
  for (const { operation_id, to, by } of transitions) if (to === 'submitting') crossedBy.set(operation_id, by)
  for (const row of operations) {
    const by = crossedBy.get(row.id)
    if (row.state !== 'ambiguous' || by === undefined || !alive.includes(by)) continue
    if (row.attempt_token === null || written.has(row.attempt_token)) continue
    yield { promise: 'P4', what: `ambiguous, and ${by} lives and never wrote it`, ...named(row) }
  }
}

/** P6: the counter equals the completed sends, for each account and day. */
function* checkCounters({ operations, counters }: Evidence): Generator<Violation> {
  if (!counters) return
  const sends = operations.filter((row) => kindOf(row) === 'send' && row.state === 'completed')
  const completed = groupBy(sends, ({ account_id, finished_on }) => `${account_id} ${finished_on}`)
  const counted = new Map(counters.map(({ account_id, day, sent }) => [`${account_id} ${day}`, sent]))
  for (const place of new Set([...completed.keys(), ...counted.keys()])) {
    const own = completed.get(place) ?? []
    const sent = counted.get(place) ?? 0
    if (sent === own.length) continue
    yield { promise: 'P6', what: `${place}: counted ${sent}, completed ${own.length}`, ...named(own[0]) }
  }
}

/** Journals keep ids of people and no names, so a chat that an older copy does not have is answered without its name. */
function withoutNames(body: CallRecord['body']): unknown {
  if (typeof body?.chat !== 'object' || body.chat === null) return body
  return { ...body, chat: { ...body.chat, name: '', username: null } }
}

/** The answers to the callers of one key, in the order of their requests. */
function* checkAnswers(asked: readonly CallRecord[], index: Index): Generator<Violation> {
  const [first] = asked
  if (!first) return
  const { key, kind } = first
  const { evidence } = index
  const rows = index.rows.get(`${kind} ${key}`) ?? []
  const [row] = rows
  const at = { key, account_id: first.account_id, chat_id: first.chat_id, ...named(row) }
  if (rows.length > 1) yield { promise: 'P1', what: 'two operations have the same key', ...at }

  const good = asked.filter(({ status }) => status === 200)
  if (new Set(good.map(({ body }) => canonicalize(evidence.restored ? withoutNames(body) : body))).size > 1) {
    yield { promise: 'P1', what: 'two different successes of one key', ...at }
  }
  if (new Set(good.map(({ payload }) => canonicalize(payload))).size > 1) {
    yield { promise: 'P1', what: 'two payloads succeeded under one key', ...at }
  }
  if (good[0]) yield* checkSuccess(good[0], row, index, at)

  // The first caller gets 503, because this process does not know; 409 is the row's state.
  const said = asked.some(({ status, code }) => status === 409 && code === 'outcome_ambiguous')
  if (said && !evidence.restored && (!row || row.attempt_no < 1)) {
    yield { promise: 'P4', what: 'said to be ambiguous, and never submitted', ...at }
  }
  const knownAt = Math.min(...good.map(({ answered_at }) => answered_at ?? Number.POSITIVE_INFINITY))
  const samePayload = good[0] && canonicalize(good[0].payload)
  const undone = asked.find(
    (one) =>
      one.asked_at > knownAt &&
      canonicalize(one.payload) === samePayload &&
      (isNo(one) || (one.code === 'outcome_ambiguous' && !evidence.restored)),
  )
  if (undone)
    yield { promise: 'P3', what: `a success was followed by ${undone.status} ${undone.code}`, ...at }

  const acceptedAt = row && kind === 'send' ? index.sends.get(sendOf(row))?.[0]?.at : undefined
  if (acceptedAt && !evidence.restored) yield* checkNothingSent(asked, Date.parse(acceptedAt), at)
  const denied = acceptedAt && asked.find((one) => one.asked_at > Date.parse(acceptedAt) && isNo(one))
  if (denied) {
    yield { promise: 'P2', what: `accepted, and then denied with ${denied.status} ${denied.code}`, ...at }
  }
}

/** These answers promise that nothing was sent, and that nothing will be without another request. */
const nothingSent = new Set(['session_unavailable', 'provider_unavailable', 'flood_wait'])

/**
 * P4: an answer said that nothing was sent, and later the message went out although no caller had asked again. A request
 * without an answer, or with one that leaves the outcome open, may always be the one that was executed.
 */
function* checkNothingSent(
  asked: readonly CallRecord[],
  acceptedAt: number,
  at: Partial<Violation>,
): Generator<Violation> {
  const before = asked.filter(({ asked_at }) => asked_at <= acceptedAt)
  const isOver = ({ status, code, answered_at }: CallRecord) =>
    status !== null && answered_at !== null && answered_at < acceptedAt && nothingSent.has(code ?? '')
  const stands = (one: CallRecord) =>
    isOver(one) || (one.code === 'operation_in_progress' && (one.answered_at ?? acceptedAt) < acceptedAt)
  const denial = before.find(isOver)
  if (!denial || !before.every(stands)) return
  yield {
    promise: 'P4',
    what: `${denial.status} ${denial.code} said that nothing was sent, and then it was`,
    ...at,
  }
}

function* checkSuccess(
  { kind, body }: CallRecord,
  row: OperationRow | undefined,
  { evidence, sends }: Index,
  at: Partial<Violation>,
): Generator<Violation> {
  if (!row) {
    yield { promise: 'P3', what: '200, and there is no operation', ...at }
    return
  }
  if (row.state !== 'completed') {
    const unknownAgain = evidence.restored && row.state === 'ambiguous'
    if (!unknownAgain) yield { promise: 'P3', what: `200, and the operation is ${row.state}`, ...at }
    if (unknownAgain && kind === 'send' && !sends.has(sendOf(row))) {
      yield { promise: 'P3', what: '200, and nothing was accepted', ...at }
    }
    return
  }
  // A repeat may have created another row while the database had lost the first.
  if (kind === 'send' && body?.operation_id !== row.id && !evidence.restored) {
    yield { promise: 'P3', what: '200 names another operation', ...at }
  }
  if (!evidence.restored && canonicalize(body) !== canonicalize(row.reply_body)) {
    yield { promise: 'P3', what: '200 with another body than the stored one', ...at }
  }
}

const unsettled = new Set(['operation_in_progress', 'outcome_ambiguous', 'idempotency_collision'])

/** A definite refusal. Rate limits run before the ledger, so theirs says nothing about the operation. */
function isNo({ status, code }: CallRecord): boolean {
  if (status === null || status < 400 || status >= 500) return false
  return status !== 429 && status !== 408 && !unsettled.has(code ?? '')
}

function named(row: OperationRow | undefined): Partial<Violation> {
  if (!row) return {}
  return { operation_id: row.id, ...(row.idempotency_key !== null && { key: row.idempotency_key }) }
}

/** `platform:chat:42` and `42` are the same chat. */
function numberOf(chat_id: string): string {
  return chat_id.slice(chat_id.lastIndexOf(':') + 1)
}
