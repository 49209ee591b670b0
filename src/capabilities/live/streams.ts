/** The open streams of this process: who gets which marks, how many there may be, and when one ends. */
import { type Audience, listAudiences } from '../../access/sessions.ts'
import type { App } from '../../app.ts'
import { MarkBatch } from '../../events/mark-batch.ts'
import { countBy, findGivingWay, type Share } from '../../lib/shares.ts'
import { isPrivate, type Mark, type MarkKind } from '../../mark.ts'
import type { EventSink } from '../../route.ts'

const streamsMax = 1_000 // limit: streams of a process
const sessionStreamsMax = 5
const userStreamsMax = 50
/** How often each stream carries a comment, and sessions and memberships are read again. */
const lookMs = 20_000
/** A client that leaves more than this unread is cut off. */
const unreadBytesMax = 64 * 1024
/** With more marks than this, reading everything again costs a page less. */
const eventLengthMax = 32 * 1024
/**
 * Between two deliveries: about 60 times the CPU that one costs. Sends come first, and on a busy machine they get only a part of
 * a core. A page reads at most once a second anyway.
 */
const gatherMs = { perStream: 1, most: 1_000 }
/** How long a browser waits before it opens the stream again. */
const retryMs = 2_000

interface OpenStream {
  audience: Audience
  readonly sink: EventSink
}

export class Streams {
  readonly #app: App
  /** The oldest first. */
  readonly #open = new Set<OpenStream>()
  readonly #timer: NodeJS.Timeout
  /** Marks that wait for the next delivery. */
  readonly #gathered = new MarkBatch()
  #gathering: NodeJS.Timeout | undefined
  #deliveredAt = Number.NEGATIVE_INFINITY
  #checking = false
  #checkAgain = false
  #ended = false

  constructor(app: App) {
    this.#app = app
    const off = app.wake.onMarks((marks) => this.#receive(marks))
    this.#timer = setInterval(() => void this.look(), lookMs).unref()
    const stop = () => {
      off()
      this.endAll()
    }
    app.stopping.addEventListener('abort', stop)
    if (app.stopping.aborted) stop()
  }

  /** Whether a stream for these would find a place, if need be that of another. */
  hasPlaceFor(audience: Audience): boolean {
    if (this.#ended) return false
    const isFull = this.#open.size >= streamsMax // guard: streams of a process
    return !isFull || findDisplaced(this.#open, audience) !== undefined
  }

  countOf(user_id: string): number {
    return [...this.#open].filter(({ audience }) => audience.user_id === user_id).length
  }

  add(audience: Audience, sink: EventSink): void {
    // Others may have been added since the caller asked.
    if (!this.hasPlaceFor(audience)) {
      sink.cut()
      return
    }
    const displaced = this.#open.size >= streamsMax ? findDisplaced(this.#open, audience) : undefined
    if (displaced) this.#replace(displaced)
    const stream: OpenStream = { audience, sink }
    this.#open.add(stream)
    sink.onEnd(() => this.#open.delete(stream))
    sink.write(`retry: ${retryMs}\n\n`)
    const ofUser = [...this.#open].filter((each) => each.audience.user_id === audience.user_id)
    const own = ofUser.filter((each) => each.audience.session_id === audience.session_id)
    for (const oldest of own.slice(0, -sessionStreamsMax)) this.#replace(oldest) // guard: streams of a session
    for (const oldest of ofUser.slice(0, -userStreamsMax)) this.#replace(oldest) // guard: streams of a user
  }

  /** The page waits for half a minute before it opens another. */
  #replace(stream: OpenStream): void {
    if (this.#open.has(stream)) this.#end(stream, 'event: replaced\ndata: {}\n\n')
  }

  /** Keeps connections open, and ends the streams of sessions that have ended. */
  look(): Promise<void> {
    for (const stream of this.#open) this.#write(stream, ':\n\n')
    return this.#check()
  }

  endAll(): void {
    this.#ended = true
    clearInterval(this.#timer)
    clearTimeout(this.#gathering)
    for (const stream of this.#open) this.#end(stream)
  }

  /** With few streams it delivers immediately. */
  #receive(marks: readonly Mark[]): void {
    if (this.#open.size === 0) return
    if (marks.some(changesAudience)) void this.#check()
    for (const mark of marks) this.#gathered.add(mark)
    const gapMs = Math.min(this.#open.size * gatherMs.perStream, gatherMs.most)
    const waitMs = this.#deliveredAt + gapMs - performance.now()
    if (waitMs <= 0) this.#deliver()
    else this.#gathering ??= setTimeout(() => this.#deliver(), waitMs)
  }

  #deliver(): void {
    clearTimeout(this.#gathering)
    this.#gathering = undefined
    this.#deliveredAt = performance.now()
    const sorted = sortOut(this.#gathered.take())
    const events = new Map<string, Buffer>()
    for (const stream of this.#open) {
      const parts = partsFor(stream.audience, sorted)
      if (parts.length === 0) continue
      // Most streams get the same marks, which are encoded once for all of them.
      const key = parts.map(([name]) => name).join(' ')
      const event = events.get(key) ?? Buffer.from(eventOf(parts.map(([, text]) => text).join(',')))
      events.set(key, event)
      this.#write(stream, event)
    }
  }

  #write(stream: OpenStream, text: string | Buffer): void {
    const { sink } = stream
    const reads = sink.waiting + text.length <= unreadBytesMax // guard: a reader that does not read
    if (reads) sink.write(text)
    else this.#cut(stream)
  }

  #end(stream: OpenStream, last?: string): void {
    const { sink } = stream
    this.#open.delete(stream)
    if (last) sink.write(last)
    // A stop does not wait for a client that does not read.
    if (sink.waiting > unreadBytesMax / 2) sink.cut()
    else sink.end()
  }

  #cut(stream: OpenStream): void {
    this.#open.delete(stream)
    stream.sink.cut()
  }

  /** One statement for all streams. */
  async #check(): Promise<void> {
    this.#checkAgain = true
    if (this.#checking) return
    this.#checking = true
    while (this.#checkAgain && this.#open.size > 0) {
      this.#checkAgain = false
      // If the database does not respond, the next round retries; until then no foreign marks arrive.
      await this.#readAudiences().catch(() => {})
    }
    this.#checking = false
  }

  async #readAudiences(): Promise<void> {
    const asked = [...this.#open]
    const ids = [...new Set(asked.map(({ audience }) => audience.session_id))]
    const rows = await listAudiences(this.#app.db, ids)
    const audiences = new Map(rows.map((row) => [row.session_id, row]))
    for (const stream of asked) {
      const audience = audiences.get(stream.audience.session_id)
      if (audience)
        stream.audience = audience // guard: memberships of a stream
      else if (this.#open.has(stream)) this.#end(stream) // guard: a stream ends with its session
    }
  }
}

/**
 * Which stream ends so that one for these users finds a place, the oldest first. A user of several workspaces counts for the
 * one with the fewest streams: no user loses a place to a large team they also belong to.
 */
export function findDisplaced<Stream extends { readonly audience: Audience }>(
  open: Iterable<Stream>,
  audience: Audience,
): Stream | undefined {
  const all = [...open]
  const members = countBy(all.flatMap((stream) => stream.audience.workspaces))
  const shareOf = ({ workspaces, user_id }: Audience): Share => {
    const few = workspaces.toSorted((one, other) => (members.get(one) ?? 0) - (members.get(other) ?? 0))
    return { workspace: few[0] ?? user_id, user: user_id }
  }
  return findGivingWay(all, (stream) => shareOf(stream.audience), shareOf(audience))
}

function eventOf(marks: string): string {
  const everything: Mark = { workspace_id: null, kind: 'everything' }
  return `event: marks\ndata: [${marks.length <= eventLengthMax ? marks : JSON.stringify(everything)}]\n\n`
}

/** Sessions end and memberships change: reads again immediately what a stream may carry. */
function changesAudience({ kind, workspace_id }: Mark): boolean {
  return kind === 'members' || kind === 'sessions' || (kind === 'everything' && workspace_id === null)
}

/** The marks of a batch as JSON, by who gets them. */
interface SortedMarks {
  readonly workspaces: Map<string, string>
  readonly users: Map<string, string>
  readonly operators: string
  readonly everyone: string
}

/** What the operators' pages show of all workspaces. They learn that something changed, not in which workspace. */
const shownToOperators: ReadonlySet<MarkKind> = new Set(['accounts', 'operations', 'members', 'workspace'])

function sortOut(marks: readonly Mark[]): SortedMarks {
  const workspaces = new Map<string, string>()
  const users = new Map<string, string>()
  let operators = ''
  let everyone = ''
  const join = (texts: string | undefined, mark: Mark) => `${texts ? `${texts},` : ''}${JSON.stringify(mark)}`
  for (const mark of marks) {
    const { workspace_id, user_id, kind } = mark
    if (isPrivate(mark)) {
      if (user_id !== undefined) users.set(user_id, join(users.get(user_id), mark))
    } else if (workspace_id !== null) workspaces.set(workspace_id, join(workspaces.get(workspace_id), mark))
    // A gate changes what every user may do.
    else if (kind === 'gates' || kind === 'everything') everyone = join(everyone, mark)
    else operators = join(operators, mark)
  }
  if (marks.some(({ kind, workspace_id }) => workspace_id !== null && shownToOperators.has(kind)))
    operators = join(operators, { workspace_id: null, kind: 'instance' })
  return { workspaces, users, operators, everyone }
}

type Part = readonly [name: string, text: string]

function partsFor({ user_id, operator, workspaces }: Audience, sorted: SortedMarks): Part[] {
  const own = workspaces.map((id) => [id, sorted.workspaces.get(id)]) // guard: marks of own workspaces
  const rest = [
    [user_id, sorted.users.get(user_id)],
    ['operators', operator ? sorted.operators : ''],
    ['everyone', sorted.everyone],
  ]
  return [...own, ...rest].filter((part): part is [string, string] => Boolean(part[1]))
}
