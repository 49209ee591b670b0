/**
 * Operators who put people of a campaign on the suppression list, by any of their names, and the entries that opt-outs made. It
 * keeps from when to when each entry was there, in the order of the platform's journal. The database may go back to before an
 * entry; then operators add theirs again, and accounts receive opt-outs again.
 */
import type { App } from '../../src/app.ts'
import { readDispatch, setDispatch } from '../../src/capabilities/gates/gates.ts'
import { addSuppression } from '../../src/capabilities/suppressions/suppressions.ts'
import { sql } from '../../src/db/sql.ts'
import { listedDigits } from '../../src/rules/identifier.ts'
import type { ListedFact } from './campaign-oracle.ts'
import type { Plant, PlantPerson } from './plant.ts'
import type { Random } from './random.ts'

interface EntryRow {
  readonly kind: 'platform_id' | 'username' | 'phone'
  readonly value: string
  readonly source: 'operator' | 'opt_out'
}

type Period = { -readonly [K in keyof ListedFact]: ListedFact[K] } & { readonly entry: EntryRow }

export class Suppressors {
  /** For the oracle. */
  readonly periods: Period[] = []
  /** How often it switched sending on after a worker had switched it off. */
  switchedOn = 0
  readonly #plant: Plant
  readonly #app: App
  readonly #random: Random
  readonly #people: readonly PlantPerson[]
  readonly #personOf: ReadonlyMap<string, number>
  #seq = 0
  #turn: Promise<unknown> = Promise.resolve()

  constructor(plant: Plant, options: { app: App; random: Random; people: readonly PlantPerson[] }) {
    this.#plant = plant
    this.#app = options.app
    this.#random = options.random
    this.#people = options.people
    this.#personOf = new Map(options.people.flatMap(namesOf))
  }

  /** How many calls the platform has accepted. */
  async readSeq(): Promise<number> {
    const { entries } = await this.#plant.control('GET', `/journal?after=${this.#seq}`)
    this.#seq += (entries as unknown[]).length
    return this.#seq
  }

  /** Suppresses a person of the campaign by one of their names. */
  add(): Promise<void> {
    return this.#inTurn(async () => {
      const { person_id, username, phone } = this.#random.pick(this.#people)
      const name = this.#random.pick([{ platform_id: String(person_id) }, { username }, { phone }])
      await addSuppression(this.#app, 'system', { workspace_id: this.#plant.tenant.workspace_id, ...name })
      await this.#observe(new Date())
    })
  }

  /** Finds what opt-outs added, and runs `dispatch on` if a worker has switched sending off. */
  look(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#observe(new Date())
      if ((await readDispatch(this.#app.db)).dispatch) return
      await setDispatch(this.#app, 'system', true)
      this.switchedOn++
    })
  }

  /** Runs work during which it must not look: the database goes back. */
  whileAway(work: () => Promise<void>): Promise<void> {
    return this.#inTurn(work)
  }

  /** After the database went back: entries that it lost ended when it stopped. Operators add theirs again. */
  async recall(stopped_seq: number): Promise<void> {
    const there = new Set((await this.#read()).map(keyOf))
    const lost = this.periods.filter(({ entry, to_seq }) => to_seq === null && !there.has(keyOf(entry)))
    for (const period of lost) period.to_seq = stopped_seq
    for (const { kind, value, source } of lost.map(({ entry }) => entry)) {
      if (source !== 'operator') continue
      const { workspace_id } = this.#plant.tenant
      await addSuppression(this.#app, 'system', { workspace_id, [kind]: value })
    }
    await this.#observe(new Date())
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => {})
    return done
  }

  #read(): Promise<EntryRow[]> {
    return this.#plant.db.rows<EntryRow>(sql`
      select kind, value, source from suppressions where workspace_id = ${this.#plant.tenant.workspace_id}`)
  }

  /** Starts the periods of new entries. What had crossed by `at` may still arrive. */
  async #observe(at: Date): Promise<void> {
    const open = new Set(
      this.periods.filter(({ to_seq }) => to_seq === null).map(({ entry }) => keyOf(entry)),
    )
    const fresh = (await this.#read()).flatMap((entry) => {
      const person_id = this.#personOf.get(keyOf(entry))
      return person_id === undefined || open.has(keyOf(entry)) ? [] : [{ entry, person_id }]
    })
    if (fresh.length === 0) return
    const crossed = await this.#plant.db.rows<{ chat_id: string; random_id: string }>(sql`
      select o.chat_id::text, o.random_id::text from operations o
      where o.campaign_id is not null and o.state in ('submitting', 'ambiguous')
        and o.chat_id = any(${fresh.map(({ person_id }) => person_id)}::bigint[])
        and coalesce((select max(t.at) from faults.transitions t
          where t.operation_id = o.id and t.to_state = 'submitting'), '-infinity') <= ${at}`)
    const from_seq = await this.readSeq()
    for (const { entry, person_id } of fresh) {
      const in_flight = crossed.filter((one) => Number(one.chat_id) === person_id).map((one) => one.random_id)
      this.periods.push({ entry, chat_id: `platform:chat:${person_id}`, from_seq, to_seq: null, in_flight })
    }
  }
}

function keyOf({ kind, value }: Pick<EntryRow, 'kind' | 'value'>): string {
  return `${kind}:${value}`
}

function namesOf({ person_id, username, phone }: PlantPerson): [string, number][] {
  return [
    [`platform_id:${person_id}`, person_id],
    [`username:${username.toLowerCase()}`, person_id],
    [`phone:${listedDigits(phone)}`, person_id],
  ]
}
