/** The words for the state of a recipient, the same on every page. */
import type { RecipientStatus } from '../data/campaigns.ts'

type State = readonly ['plain' | 'good' | 'warn' | 'danger', string]

export const recipientStates: Readonly<Record<RecipientStatus, State>> = {
  queued: ['plain', 'Not yet'],
  submitting: ['plain', 'Sending'],
  waiting: ['plain', 'Waiting'],
  completed: ['plain', 'Done'],
  replied: ['good', 'Replied'],
  failed: ['danger', 'Failed'],
  ambiguous: ['warn', 'Ambiguous'],
  cancelled: ['plain', 'Cancelled'],
  suppressed: ['plain', 'Suppressed'],
}

const askedToStop: State = ['warn', 'Asked to stop']

/** A reply that asks to stop is no success. */
export function stateOf({ status, opted_out }: { status: RecipientStatus; opted_out: boolean }): State {
  return status === 'replied' && opted_out ? askedToStop : recipientStates[status] // guard: asked to stop is not replied
}
