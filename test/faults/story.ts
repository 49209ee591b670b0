/** Made-up evidence of runs in which nothing went wrong: the input for the oracle's tests. */
import type { JournalEntry } from '../../src/platform/sandbox/entries.ts'
import type { CallRecord, Counter, Evidence, Kind, OperationRow, State, Transition } from './oracle.ts'

/** Each is one correct way for an operation to end. */
export const plots = [
  'completed',
  'completed_and_repeated',
  'completed_in_a_crowd',
  'completed_answer_lost',
  'completed_after_release',
  'reconciled',
  'ambiguous_sent',
  'ambiguous_not_sent',
  'refused',
  'flooded',
  'withdrawn',
  'never_reached',
] as const
type Plot = (typeof plots)[number]

export interface Scene {
  readonly kind: Kind
  readonly plot: Plot
  /** Which of a few accounts and chats. */
  readonly account: number
  readonly chat: number
}

const alive = 'work-0.2'
const dead = 'work-0.1'
const day = '2026-11-02'

const names: Record<Kind, string> = {
  send: 'send_message',
  start: 'start_chat',
  read_state: 'set_read_state',
}

export function makeEvidence(scenes: readonly Scene[]): Evidence {
  const story = new Story()
  for (const [n, scene] of scenes.entries()) story.add(n, scene)
  const { journal, operations, history, transitions, intended } = story
  return { journal, operations, history, transitions, intended, alive: [alive], counters: story.counters() }
}

class Story {
  readonly journal: JournalEntry[] = []
  readonly operations: OperationRow[] = []
  readonly history: CallRecord[] = []
  readonly transitions: Transition[] = []
  readonly intended: string[] = []
  #now = Date.UTC(2026, 10, 2, 9)

  add(n: number, { kind, plot, account, chat }: Scene): void {
    const request = {
      key: `key-${n}`,
      kind,
      account_id: `acc_${account}`,
      chat_id: `platform:chat:${1000 + chat}`,
      payload: { text: `text ${n}` },
    }
    const id = `operation-${n}`
    const body = { ok: true, operation_id: id, message_id: String(n), chat_id: request.chat_id }
    const random_id = String(1_000_000 - n)
    const ask = (status: number | null, code: string | null = null, replayed = false) => {
      const asked_at = this.#tick()
      const answered_at = status === null ? null : this.#tick()
      this.history.push({
        ...request,
        asked_at,
        answered_at,
        status,
        code,
        replayed,
        body: status === 200 ? body : null,
      })
    }
    const accept = () => {
      const { account_id, chat_id, payload } = request
      const at = new Date(this.#tick()).toISOString()
      const text = kind === 'send' ? payload.text : null
      const seq = this.journal.length + 1
      this.journal.push({
        seq,
        kind,
        account_id,
        chat_id,
        text,
        random_id: kind === 'send' ? random_id : null,
        file_sha256: null,
        at,
      })
    }
    const keep = (
      state: State,
      reason: string | null,
      attempt_no = 1,
      { reconciled = false, by = alive, written = true } = {},
    ) => {
      if (attempt_no > 0) this.#cross(id, by)
      if (attempt_no > 0 && written) this.intended.push(`token-${n}-${attempt_no}`)
      this.operations.push({
        id,
        kind: names[kind],
        idempotency_key: request.key,
        state,
        reason,
        account_id: request.account_id,
        chat_id: kind === 'start' ? null : request.chat_id.slice('platform:chat:'.length),
        random_id,
        attempt_no,
        attempt_token: attempt_no > 0 ? `token-${n}-${attempt_no}` : null,
        reply_status: state === 'completed' ? 200 : null,
        reply_body: state === 'completed' ? body : null,
        reconciled,
        finished_on: day,
      })
    }
    const acts: Record<Plot, () => void> = {
      completed: () => {
        accept()
        ask(200)
        keep('completed', null)
      },
      completed_and_repeated: () => {
        accept()
        ask(200)
        ask(503, 'store_unavailable')
        ask(200, null, true)
        keep('completed', null)
      },
      completed_in_a_crowd: () => {
        ask(409, 'operation_in_progress')
        accept()
        ask(200)
        // Asked before the success was known, answered after it.
        const early = this.history.at(-1)?.asked_at ?? 0
        const answered_at = this.#tick()
        const code = 'operation_in_progress'
        this.history.push({
          ...request,
          asked_at: early,
          answered_at,
          status: 409,
          code,
          replayed: false,
          body: null,
        })
        keep('completed', null)
      },
      completed_answer_lost: () => {
        accept()
        ask(null)
        keep('completed', null)
      },
      completed_after_release: () => {
        ask(503, 'flood_wait')
        ask(null)
        accept()
        ask(200, null, true)
        keep('completed', null, 2)
      },
      reconciled: () => {
        accept()
        ask(503, 'outcome_ambiguous')
        ask(200, null, true)
        keep('completed', null, 1, { reconciled: true })
      },
      ambiguous_sent: () => {
        accept()
        ask(503, 'outcome_ambiguous')
        ask(409, 'outcome_ambiguous')
        keep('ambiguous', 'no_answer')
      },
      ambiguous_not_sent: () => {
        ask(503, 'outcome_ambiguous')
        keep('ambiguous', 'lease_expired', 1, { by: dead, written: false })
      },
      refused: () => {
        ask(403, 'chat_unavailable')
        ask(403, 'chat_unavailable', true)
        keep('refused', 'platform_refused')
      },
      flooded: () => {
        ask(503, 'flood_wait')
        keep('released', 'platform_refused')
      },
      withdrawn: () => {
        ask(503, 'session_unavailable')
        keep('released', 'withdrawn', 0)
      },
      never_reached: () => ask(null),
    }
    acts[plot]()
  }

  #cross(operation_id: string, by: string): void {
    const at = this.#tick()
    const change = { from: 'queued', to: 'submitting', reason: null, reconciled: false } as const
    this.transitions.push({ operation_id, ...change, by, at })
  }

  /** The counters for all this. */
  counters(): Counter[] {
    const sends = this.operations.filter(({ kind, state }) => kind === names.send && state === 'completed')
    return [...Map.groupBy(sends, ({ account_id }) => account_id ?? '')].map(([account_id, own]) => {
      return { account_id, day, sent: own.length }
    })
  }

  #tick(): number {
    this.#now += 10
    return this.#now
  }
}
