/** Delivers updates to an account, now or later, and keeps everything else that is due. */
import type { Delivery } from './entries.ts'
import { type Account, type Due, type Happening, requireAccount, type State } from './state.ts'

/** Adds happenings to the account's stream: now, twice, or later, behind ones that happened after them. */
export function stream(
  state: State,
  account: Account,
  delivery: Delivery | undefined,
  happenings: readonly Happening[],
): void {
  if (delivery?.late_until) {
    const { account_id } = account
    addDue(state, { at: delivery.late_until, account_id, act: { kind: 'stream', happenings } })
    return
  }
  account.stream.push(...happenings)
  if (delivery?.twice) account.stream.push(...happenings)
}

export function addDue(state: State, due: Omit<Due, 'due_id'>): void {
  state.last_due_id++
  let index = state.dues.length
  while (index > 0 && (state.dues[index - 1]?.at ?? '') > due.at) index--
  state.dues.splice(index, 0, { due_id: state.last_due_id, ...due })
}

export function takeDue(state: State, due_id: number | undefined): Due | undefined {
  const index = state.dues.findIndex((due) => due.due_id === due_id)
  return index === -1 ? undefined : state.dues.splice(index, 1)[0]
}

/** Adds held-back happenings to their account's stream. */
export function streamDue(state: State, due_id: number): void {
  const due = takeDue(state, due_id)
  if (due?.act.kind === 'stream') requireAccount(state, due.account_id).stream.push(...due.act.happenings)
}
