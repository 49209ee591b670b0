/** A request in words: who asks for what, and its outcome. */

import type { Approval } from '../../data/queries.ts'
import { Badge } from '../../ui/badge.tsx'
import { ExactText } from '../../ui/exact-text.tsx'
import { askersOf } from './approval-asker.ts'

/** The key's name, followed by the client's. */
export function Asker({ approval }: { approval: Approval }) {
  const [key = '', client] = askersOf(approval)
  return (
    <>
      <ExactText text={key} />
      {client !== undefined && (
        <span className="font-normal text-muted">
          {' ('}
          <ExactText text={client} />)
        </span>
      )}
    </>
  )
}

export function wishOf({ operation }: Approval): string {
  if (operation === 'send_message') return 'wants to send a message'
  if (operation === 'move_chat') return 'wants to move a chat'
  if (operation === 'set_column') return 'wants to change a field'
  return `wants to run ${operation}`
}

export function targetOf({ chat }: Approval): string {
  return chat.name ?? chat.id
}

/** The body of the call as it would run. */
export function fieldsOf({ payload }: Approval): Readonly<Record<string, unknown>> {
  return typeof payload === 'object' && payload !== null ? { ...payload } : {}
}

/** The exact text, if the request sends one. */
export function textOf(approval: Approval): string | undefined {
  const { text } = fieldsOf(approval)
  return typeof text === 'string' ? text : undefined
}

/** One line about what would happen. */
export function summaryOf(approval: Approval): string {
  const { field, from, to } = approval
  const text = textOf(approval)
  if (text !== undefined) return text
  return `${field ?? 'Value'}: ${valueWords(from)} → ${valueWords(to)}`
}

/** The label of a stage, or the values of a field. */
export function valueWords(values: readonly string[] | null): string {
  return values && values.length > 0 ? values.join(', ') : 'empty'
}

type Tone = 'plain' | 'good' | 'warn' | 'danger'

/** Claims no more than we know: the platform accepts a message and never says whether a person has read it. */
const outcomes: Readonly<Record<string, readonly [Tone, string]>> = {
  queued: ['plain', 'On its way'],
  submitting: ['plain', 'On its way'],
  completed: ['good', 'Done'],
  refused: ['danger', 'Refused by the platform'],
  released: ['warn', 'Not done'],
  ambiguous: ['warn', 'Ambiguous, not sent again'],
}

const states: Readonly<Record<Approval['state'], readonly [Tone, string]>> = {
  waiting: ['plain', 'Waiting'],
  approved: ['good', 'Approved, not used yet'],
  denied: ['plain', 'Denied'],
  expired: ['plain', 'Expired'],
  used: ['plain', 'Used'],
}

export function Outcome({ approval }: { approval: Approval }) {
  const { state, outcome, operation } = approval
  const [tone, words] = (state === 'used' && outcome && outcomes[outcome.state]) || states[state]
  const sent = operation === 'send_message' && outcome?.state === 'completed'
  return <Badge tone={tone}>{sent ? 'Accepted by the platform' : words}</Badge>
}
