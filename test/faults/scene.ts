/**
 * One crash after the other in the same plant: what was requested, what the row says, what the platform has, and
 * what a repeat returns.
 *
 *   await scene.arm(dieAt('crash point 5a'))              // the worker will die exactly there
 *   const first = scene.ask(wanted)
 *   await plant.work(0).ended()
 *   await scene.recover()
 *   expect(await scene.look(wanted)).toEqual({ state: 'ambiguous', reason: 'lease', accepted: 0 })
 *   expect(summaryOf(await scene.ask(wanted))).toEqual([409, 'outcome_ambiguous'])
 */
import { readFile } from 'node:fs/promises'
import { sql } from '../../src/db/sql.ts'
import { until } from '../harness/process.ts'
import { ask, type PlannedCall, readStateOf, sendOf, startOf } from './clients.ts'
import type { Member } from './member.ts'
import { type CallRecord, judge, type Kind, kindOf, type State, type Violation } from './oracle.ts'
import type { Patch } from './patch.ts'
import type { Plant } from './plant.ts'

interface Look {
  readonly state: State | 'none'
  readonly reason: string | null
  /** How often the platform accepted it. */
  readonly accepted: number
}

export class Scene {
  readonly plant: Plant
  readonly history: CallRecord[] = []
  #keys = 0

  constructor(plant: Plant) {
    this.plant = plant
  }

  /** A message with its own text, so that nothing else explains what the platform has. */
  send({ account = 0, key = this.#nextKey() }: { account?: number; key?: string } = {}): PlannedCall {
    return sendOf({ key, ...this.#place(account), text: `message ${key}` })
  }

  readState({ account = 0, key = this.#nextKey() }: { account?: number; key?: string } = {}): PlannedCall {
    return readStateOf({ key, ...this.#place(account), unread: true })
  }

  /** Starts a chat with a person whom no account knows yet. */
  async start({
    account = 0,
    key = this.#nextKey(),
  }: {
    account?: number
    key?: string
  } = {}): Promise<PlannedCall> {
    const { person_id, username } = await this.plant.addPerson()
    const { account_id } = this.#place(account)
    return startOf({ key, account_id, chat_id: `platform:chat:${person_id}`, identifier: username })
  }

  #nextKey(): string {
    return `scene-${++this.#keys}`
  }

  #place(account: number): { account_id: string; chat_id: string } {
    const account_id = this.plant.accounts[account]
    if (!account_id) throw new Error('The plant has no such account.')
    return { account_id, chat_id: `platform:chat:${this.plant.people[0]}` }
  }

  async ask(wanted: PlannedCall): Promise<CallRecord> {
    const asked = await ask(this.plant, wanted)
    this.history.push(asked)
    return asked
  }

  /** Starts the worker with these patches; it takes over every account at once. */
  async arm(...patches: Patch[]): Promise<void> {
    await this.plant.work(0).restart(patches)
    await this.plant.expireLeases({ attempts: false })
    await this.plant.untilReady()
  }

  /** Starts the worker unpatched and waits until everything has ended. */
  async recover({ attempts = true }: { attempts?: boolean } = {}): Promise<void> {
    await this.plant.work(0).start()
    await this.plant.expireLeases({ attempts })
    await this.plant.untilReady()
    await this.plant.settled()
  }

  /** Expires the lease of this attempt, whichever worker holds it. */
  async expireAttempt({ key }: PlannedCall): Promise<void> {
    await this.plant.db.run(sql`
      update operations set lease_until = clock_timestamp() where idempotency_key = ${key} and state = 'submitting'`)
  }

  async look(wanted: PlannedCall): Promise<Look> {
    const row = (await this.plant.operations()).find(
      (one) => one.idempotency_key === wanted.key && kindOf(one) === wanted.kind,
    )
    return { state: row?.state ?? 'none', reason: row?.reason ?? null, accepted: await this.accepted(wanted) }
  }

  /** Its state, reason and detail: as expected, or as they are at the time limit. */
  async settled({ key }: PlannedCall, expected: string): Promise<string> {
    const summaryText = async () => {
      const row = await this.plant.db.maybe<Record<'state' | 'reason' | 'detail', string | null>>(sql`
        select state, reason, detail from operations where idempotency_key = ${key}`)
      return [row?.state, row?.reason, row?.detail].filter(Boolean).join(' ')
    }
    await until('the row has settled', 30_000, async () => (await summaryText()) === expected).catch(() => {})
    return summaryText()
  }

  want(kind: Kind, account: number): PlannedCall | Promise<PlannedCall> {
    if (kind === 'send') return this.send({ account })
    return kind === 'start' ? this.start({ account }) : this.readState({ account })
  }

  async accepted({ kind, account_id, chat_id, payload }: PlannedCall): Promise<number> {
    const entries = await this.plant.journal()
    return entries.filter(
      (one) =>
        one.kind === kind &&
        one.account_id === account_id &&
        one.chat_id === chat_id &&
        one.text === (payload.text ?? null),
    ).length
  }

  async until(wanted: PlannedCall, ...states: Look['state'][]): Promise<Look> {
    let last: Look | undefined
    return until(`${wanted.key} is ${states}`, 30_000, async () => {
      last = await this.look(wanted)
      return states.includes(last.state) && last
    }).catch((cause) => {
      throw new Error(`${wanted.key} is ${JSON.stringify(last)}.`, { cause })
    })
  }

  async judge({ restored = false }: { restored?: boolean } = {}): Promise<Violation[]> {
    return judge({ ...(await this.plant.evidence(this.history)), restored })
  }
}

/** Status, code, and whether the answer is a repeat of an earlier one. */
export function summaryOf({ status, code, replayed }: CallRecord): (number | string | null)[] {
  return [status, ...(code === null ? [] : [code]), ...(replayed ? ['replayed'] : [])]
}

export function summaryText(asked: CallRecord): string {
  return summaryOf(asked).join(' ')
}

export function dieAt(marker: string): Patch {
  return { marker, insert: "process.kill(process.pid, 'SIGKILL')" }
}

/** Freezes the whole process there once, until `resume`. */
export function stopAt(marker: string): Patch {
  return { marker, insert: "globalThis.hasStopped ??= process.kill(process.pid, 'SIGSTOP')" }
}

export async function untilStopped(member: Member): Promise<void> {
  await until(`${member.name} has stopped`, 30_000, async () => {
    const stat = await readFile(`/proc/${member.pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T')
  })
}
