/** What a simulated worker talks to: a database and a platform whose every answer waits for the story. */
import { LostCommit } from '../../src/db/errors.ts'
import type { Database, Db, Sql } from '../../src/db/sql.ts'
import type { Link, LinkEvents, Method, Params, Wire } from '../../src/platform/sandbox/calls.ts'
import { directLink } from '../../src/platform/sandbox/direct-link.ts'
import type { World } from '../../src/platform/sandbox/world.ts'
import type { Identifier } from '../../src/rules/identifier.ts'
import type { Hands } from './hands.ts'
import type { Schedule } from './schedule.ts'

/** How the answer to a worker's next COMMIT is lost: the commit happened, or it did not. */
export type LostAnswers = Map<string, 'after' | 'before'>

export function parkDatabase(db: Database, schedule: Schedule, owner: string, lost: LostAnswers): Database {
  const one = <T>(statement: Sql, work: () => Promise<T>) => schedule.call(owner, nameOf(statement), work)
  const parked: Db = {
    rows: (statement) => one(statement, () => db.rows(statement)),
    maybe: (statement) => one(statement, () => db.maybe(statement)),
    one: (statement) => one(statement, () => db.one(statement)),
    lists: (statement) => one(statement, () => db.lists(statement)),
    run: (statement) => one(statement, () => db.run(statement)),
  }
  return {
    ...db,
    ...parked,
    transaction: (work) =>
      schedule.call(owner, 'transaction', async () => {
        const how = lost.get(owner)
        lost.delete(owner)
        if (how === 'before') throw new LostCommit('The answer to COMMIT was lost.')
        const result = await db.transaction(work)
        if (how === 'after') throw new LostCommit('The answer to COMMIT was lost.')
        return result
      }),
    snapshot: (work) => schedule.call(owner, 'snapshot', () => db.snapshot(work)),
  }
}

/** The first words of a statement, which show its purpose. */
function nameOf({ text }: Sql): string {
  const found = /(?:update|insert into|delete from|from|with)\s+([a-z_]+)/i.exec(text)
  return found?.[0].replace(/\s+/g, ' ') ?? 'statement'
}

/** A worker's connection while it is open. */
interface OpenWire {
  readonly close: () => void
}

export interface Witness {
  /** A worker has made the call; it may reach the platform later, or never. */
  called(random_id: string): void
  /** The platform is asked who has a name. */
  lookedUp(account_id: string, identifier: Identifier): void
  /** The worker has received the answer. */
  answered(owner: string, random_id: string, outcome: string): void
}

export class ParkedLink implements Link {
  readonly #link: Link
  readonly #schedule: Schedule
  readonly #owner: string
  readonly #witness: Witness
  readonly #hands: Hands
  readonly #gaps: Set<string>
  readonly #wires = new Set<OpenWire>()
  #cut = false

  constructor(
    world: World,
    parts: { schedule: Schedule; owner: string; witness: Witness; hands: Hands; gaps: Set<string> },
  ) {
    this.#link = directLink(world)
    this.#schedule = parts.schedule
    this.#owner = parts.owner
    this.#witness = parts.witness
    this.#hands = parts.hands
    this.#gaps = parts.gaps
  }

  connect: Link['connect'] = async (greeting, events) => {
    const { account_id } = greeting
    await this.#park('request', `connect ${account_id}`)
    const opened = await this.#link.connect(
      greeting,
      this.#parkedEvents(account_id, events),
      new AbortController().signal,
    )
    if (opened.kind !== 'accepted') {
      await this.#park('answer', `connect ${account_id} ${opened.kind}`)
      return opened
    }
    const { wire, self } = opened.value
    const open = { close: () => void wire.close() }
    this.#wires.add(open)
    await this.#park('answer', `connect ${account_id}`)
    return { kind: 'accepted', value: { wire: this.#parkedWire(account_id, wire, open), self } }
  }

  #parkedEvents(account_id: string, events: LinkEvents): LinkEvents {
    return {
      updates: async (batch) => {
        if (this.#cut) return new Promise(() => {})
        await this.#park('updates', `${account_id} to ${batch.position}`)
        const { updates, ...rest } = this.#hands.show(account_id, batch)
        const gap = this.#gaps.delete(account_id) ? [{ kind: 'gap', chat_id: null } as const] : []
        await events.updates({ ...rest, updates: [...updates, ...gap] })
      },
      lost: (reason) => {
        if (!this.#cut) void this.#park('lost', account_id).then(() => events.lost(reason))
      },
    }
  }

  #parkedWire(account_id: string, wire: Wire, open: OpenWire): Wire {
    return {
      call: async <M extends Method>(method: M, params: Params<M>) => {
        const random_id = method === 'send' ? (params as Params<'send'>).random_id : undefined
        if (random_id !== undefined) this.#witness.called(random_id)
        await this.#park('request', `${method} ${account_id}`)
        if (method === 'resolve') this.#witness.lookedUp(account_id, params as Params<'resolve'>)
        if (method === 'ask_person') {
          this.#witness.lookedUp(account_id, (params as Params<'ask_person'>).identifier)
        }
        const outcome = await wire.call(method, params)
        await this.#park('answer', `${method} ${account_id} ${outcome.kind}`)
        if (random_id !== undefined) this.#witness.answered(this.#owner, random_id, outcome.kind)
        return outcome
      },
      close: () => {
        this.#wires.delete(open)
        return wire.close()
      },
    }
  }

  #park(kind: 'request' | 'answer' | 'updates' | 'lost', what: string): Promise<void> {
    return this.#schedule.park(this.#owner, kind, what)
  }

  /** The worker is gone, and its connections with it. */
  cut(): void {
    this.#cut = true
    for (const { close } of this.#wires) close()
  }
}
