/** Watches a story: one statement after every step, all promises on request, and which states were reached. */
import { type Flying, look, wrongCrossings, wrongIn, wrongSubmission } from './checks.ts'
import { wrongEnds, wrongHands } from './hands.ts'
import { judgeAll, listEndings, readReached } from './judge.ts'
import { wrongDuplicates, wrongPersons } from './persons.ts'
import type { Place } from './place.ts'
import type { SimWorker, WorkerPlace } from './sim-worker.ts'

/** A promise was broken. */
export class Broken extends Error {}

export class Watch {
  readonly trace: string[] = []
  steps = 0
  /** The number of recipients by status after the last step. */
  seen = ''
  /** The current step runs its statements together: a call made in it has ended when the step has. */
  together = false
  readonly #place: Place
  readonly #alive: () => readonly SimWorker[]
  readonly #reached: Record<string, number> = {}
  #flying = new Map<string, Flying>()
  /** The random ids of all that campaigns have sent. */
  readonly #crossed = new Set<string>()
  #duplicates: readonly string[] = []
  /** Sends that workers started in this step. */
  #called: string[] = []
  /** Which worker received the answer to a send. */
  readonly #answered = new Map<string, string>()
  /** Which worker's journal has the end of an attempt. */
  readonly #concluded = new Map<string, SimWorker>()

  constructor(place: Place, alive: () => readonly SimWorker[]) {
    this.#place = place
    this.#alive = alive
  }

  readonly witness: WorkerPlace['witness'] = {
    called: (random_id) => {
      this.#called.push(random_id)
      // The answer to an earlier, refused attempt says nothing about this one.
      this.#answered.delete(random_id)
    },
    answered: (owner, random_id) => this.#hear(owner, random_id),
    lookedUp: (account_id, identifier) => this.#place.persons.lookedUp(account_id, identifier),
    concluded: (worker, token) => void this.#concluded.set(token, worker),
  }

  /** The database goes back: what flies and what has ended in it is no news of this step. */
  async goBack(work: () => Promise<unknown>): Promise<void> {
    this.note(`${++this.steps} the database goes back`)
    await work()
    const seen = await look(this.#place.db)
    this.#flying = new Map(seen.flying.map((one) => [one.id, one]))
    this.#duplicates = seen.duplicates
    this.seen = seen.statuses ?? ''
    this.note(`  ${this.seen}`)
  }

  #hear(owner: string, random_id: string): void {
    this.#answered.set(random_id, owner)
    const flies = [...this.#flying.values()].some((one) => one.random_id === random_id)
    if (!flies && !this.together && this.#crossed.has(random_id)) this.reach('a late answer')
  }

  async step(what: string, work: () => Promise<unknown>): Promise<void> {
    this.note(`${++this.steps} ${what}`)
    this.#called = []
    await work()
    const { db, persons, hands } = this.#place
    const seen = await look(db)
    this.seen = seen.statuses ?? ''
    this.note(`  ${this.seen}; ${this.#place.sandbox.world.state.journal.length} accepted`)
    const flying = new Map(seen.flying.map((one) => [one.id, one]))
    const crossed = seen.flying.filter(({ id, no }) => this.#flying.get(id)?.no !== no)
    const left = [...this.#flying.keys()].filter((id) => !flying.has(id))
    if (left.length > 0) for (const { what } of await listEndings(db, left)) this.reach(what)
    this.#flying = flying
    // The answer to an earlier attempt, perhaps of another worker, says nothing about a message that crosses again.
    for (const { random_id } of crossed)
      if (!this.#called.includes(random_id)) this.#answered.delete(random_id)
    for (const { random_id } of crossed) this.#crossed.add(random_id)
    const ids = crossed.map(({ id }) => id)
    const duplicates = seen.duplicates.filter((id) => !this.#duplicates.includes(id))
    this.#duplicates = seen.duplicates
    const wrong = [
      ...wrongIn(seen),
      ...(await wrongCrossings(db, ids)),
      ...(await wrongPersons(db, persons, ids)),
      ...(await wrongHands(db, hands, ids)),
      ...((await this.#place.erased?.wrong()) ?? []),
      // In steps that run together, the first message may have been refused after that.
      ...(this.together ? [] : await wrongDuplicates(db, duplicates)),
      ...this.#unrecorded(),
    ]
    // Who became known in this step may have been written to in it.
    for (const what of this.#place.erased?.takeReached() ?? []) this.reach(what)
    persons.tie(seen.listed)
    hands.note(seen.positions)
    if (!this.together) for (const one of this.#called) wrong.push(...(await wrongSubmission(db, one)))
    if (wrong[0] !== undefined) this.break(wrong[0])
  }

  /** P2: once a worker has received the answer and has nothing left to do, the ledger must know it. */
  *#unrecorded(): Generator<string> {
    const { schedule } = this.#place
    for (const { random_id } of this.#flying.values()) {
      const owner = this.#answered.get(random_id)
      if (owner === undefined || !this.#alive().some(({ name }) => name === owner)) continue
      const busy = schedule.waiting.some((one) => one.owner === owner && one.kind !== 'updates')
      if (!busy && !schedule.isSleeping(owner)) yield 'P2: an answer that was heard is not recorded'
    }
  }

  /** P2: after a dead worker's journal is replayed, the ledger must have its outcomes. A living worker may still be recording. */
  requireReplayed({ disk }: SimWorker): void {
    for (const { token } of this.#flying.values()) {
      const writer = this.#concluded.get(token)
      if (writer === undefined || writer.disk !== disk || this.#alive().includes(writer)) continue
      this.break('P2: a replayed outcome is not recorded')
    }
  }

  /** `over`: every recipient is final, and `verify` must pass for every campaign. */
  async judge(over = false): Promise<void> {
    const { wrong, reasons } = await judgeAll(this.#place, { in_flight: [...this.#flying.keys()], over })
    for (const reason of reasons) this.reach(`held by ${reason}`)
    const { db, hands } = this.#place
    const back = over ? ((await this.#place.erased?.wrongAtEnd(this.#place.sandbox.world)) ?? []) : []
    const all = [...wrong, ...(await wrongEnds(db, hands)), ...back]
    if (all[0] !== undefined) this.break(all[0])
  }

  /** Counts what the worker is in the middle of when it crashes. */
  noteCrash({ name }: SimWorker): void {
    const own = this.#place.schedule.waiting.filter(({ owner }) => owner === name)
    const has = (kind: string, what: string) =>
      own.some((one) => one.kind === kind && one.what.startsWith(what))
    if (has('journal', 'intent')) this.reach('crash between crossing and journal')
    if (has('request', 'send')) this.reach('crash between journal and call')
    if (has('answer', 'send')) this.reach('crash with the answer unheard')
    if (has('journal', 'outcome')) this.reach('crash before the outcome is in the journal')
  }

  break(what: string): never {
    this.note(`  BROKEN ${what}`)
    throw new Broken(`in step ${this.steps}: ${what}`)
  }

  reach(what: string): void {
    this.#reached[what] = (this.#reached[what] ?? 0) + 1
  }

  note(line: string): void {
    this.trace.push(line)
  }

  async reached(): Promise<Record<string, number>> {
    return { ...this.#reached, ...(await readReached(this.#place.db)), ...reachedIn(this.#place.log) }
  }
}

/** States that leave no row, found in the workers' log. */
function reachedIn(log: readonly string[]): Record<string, number> {
  const count = (text: string) => log.filter((line) => line.includes(text)).length
  return {
    'told by a journal': count('the worker recovered the outcome of an operation from a journal'),
    'a lost COMMIT': count('the database did not respond at the boundary; nothing was sent'),
  }
}
