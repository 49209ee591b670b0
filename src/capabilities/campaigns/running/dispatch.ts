/** Sends the campaigns' due messages for the accounts of this process, one message per account at a time. */
import type { App } from '../../../app.ts'
import { planOnce } from '../../../db/sql.ts'
import type { DrivenAccount } from '../../../ledger/attempt.ts'
import type { Driving } from '../../../ledger/ledger.ts'
import { within } from '../../../ledger/within.ts'
import type { Loop } from '../../../loop.ts'
import { messagesDue } from './loops.ts'
import { attemptMessage, type MessageWays } from './message-attempt.ts'
import { chooseDue, type Due, type Head, listHeads } from './pick.ts'

const restMs = 1_000
/** How long a stopping process waits for the messages it has submitted. */
const drainMsMax = 10_000
/** How long to skip a recipient that failed for an internal reason. It blocks no other recipient meanwhile. */
const avoidMs = 30_000

export class Dispatch {
  readonly loop: Loop = {
    name: 'dispatch',
    restMs,
    wakeOn: messagesDue,
    step: async () => {
      await this.#begin()
      return false
    },
  }
  readonly #app: App
  readonly #ways: MessageWays
  readonly #driving: Driving
  /** The accounts with a message in flight. */
  readonly #busy = new Map<string, Promise<void>>()
  /** Until when to skip a recipient, on the monotonic clock. */
  readonly #avoid = new Map<string, number>()
  /** Until when an account looks nobody up, on the same clock: one recipient after the other would find out. */
  readonly #usedUp = new Map<string, number>()
  #stopping = false
  #beginning = false
  #again = false

  constructor(app: App, ways: MessageWays, driving: Driving) {
    this.#app = app
    this.#ways = ways
    this.#driving = driving
  }

  async stop(): Promise<void> {
    this.#stopping = true
    await within(this.#app.sources, drainMsMax, Promise.all(this.#busy.values()))
  }

  /** Starts what is due now. The loop calls it, and so does every account that becomes free. */
  async #begin(): Promise<void> {
    if (this.#beginning) {
      this.#again = true
      return
    }
    this.#beginning = true
    try {
      do {
        // Messages that were recorded together end in the same turn: waiting one turn picks for their accounts together.
        await new Promise<void>((turn) => setImmediate(turn))
        this.#again = false
        const accounts = this.#stopping ? new Map<string, DrivenAccount>() : this.#driving.driven()
        const free = [...accounts.keys()].filter((id) => !this.#busy.has(id))
        if (free.length === 0) continue
        const used_up = this.#still(this.#usedUp)
        const heads = await this.#listHeads(free, used_up)
        for (const due of chooseDue(this.#app, heads, used_up)) {
          const account = accounts.get(due.row.account_id)
          if (account && !this.#stopping) this.#start(due, account)
        }
      } while (this.#again)
    } finally {
      this.#beginning = false
    }
  }

  #listHeads(account_ids: readonly string[], used_up: readonly string[]): Promise<Head[]> {
    const avoid = this.#still(this.#avoid)
    return this.#app.db.transaction(async (tx) => {
      const [, heads] = await Promise.all([
        tx.run(planOnce),
        listHeads(this.#app, tx, { account_ids, avoid, used_up, due: true }),
      ])
      return heads
    })
  }

  /** Those whose time has not come. */
  #still(waiting: Map<string, number>): string[] {
    const now = this.#app.sources.now()
    for (const [id, until] of waiting) if (until <= now) waiting.delete(id)
    return [...waiting.keys()]
  }

  #start(due: Due, account: DrivenAccount): void {
    const { account_id, recipient_id, chat_id } = due.row
    if (this.#busy.has(account_id)) return
    const release = this.#driving.lanes.take({ id: recipient_id, account_id, chat_id, file_id: null })
    if (!release) return
    const { log } = this.#app
    const work = attemptMessage(this.#app, this.#ways, due, account)
      .catch((err) => {
        log.error({ err, recipient_id, account_id }, 'a campaign message failed')
        return 'avoid' as const
      })
      .then((result) => {
        const now = this.#app.sources.now()
        if (result === 'avoid') this.#avoid.set(recipient_id, now + avoidMs)
        else if (result !== 'done') this.#usedUp.set(account_id, now + result.lookUpsMs)
        release()
        this.#busy.delete(account_id)
        void this.#begin().catch((err) =>
          log.error({ err }, 'the worker could not read due campaign messages'),
        )
      })
    this.#busy.set(account_id, work)
    account.awaits(work)
  }
}
