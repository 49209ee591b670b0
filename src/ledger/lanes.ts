/**
 * What may run now. One account runs several operations at once, but only one per chat, so that they arrive in order.
 * Files pass through this process in pieces: few at a time, and one per account, so that a file that hangs delays no
 * other account's.
 */
import type { Operation } from '../operation.ts'

const lanesMax = 4
const filesMax = 8

type LaneRequest = Pick<Operation, 'id' | 'account_id' | 'chat_id' | 'file_id'>

export class Lanes {
  readonly #busy = new Map<string, Set<string>>()
  readonly #files = new Set<string>()
  readonly #running = new Set<string>()

  /** The accounts that may start an operation. */
  free(account_ids: Iterable<string>): string[] {
    return [...account_ids].filter((id) => (this.#busy.get(id)?.size ?? 0) < lanesMax)
  }

  /** Takes a lane for the operation. Returns the function that releases it, or undefined if no lane is free. */
  take({ id, account_id, chat_id, file_id }: LaneRequest): (() => void) | undefined {
    const lane = chat_id ?? id
    const busy = this.#busy.get(account_id) ?? new Set()
    if (this.#running.has(id) || busy.has(lane) || busy.size >= lanesMax) return undefined
    const file = file_id !== null
    // guard: files are fair
    if (file && (this.#files.size >= filesMax || this.#files.has(account_id))) return undefined
    this.#busy.set(account_id, busy.add(lane))
    this.#running.add(id)
    if (file) this.#files.add(account_id)
    return () => {
      busy.delete(lane)
      this.#running.delete(id)
      if (file) this.#files.delete(account_id)
    }
  }
}
