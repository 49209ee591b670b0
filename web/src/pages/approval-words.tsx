/** A request in words: who asks for what, and what became of it. */
import type { Approval } from '../queries.ts'
import { Badge } from '../ui/badge.tsx'

export function askerOf({ client_name, key }: Approval): string {
  return client_name ?? key.name
}

export function wishOf({ operation }: Approval): string {
  if (operation === 'send_message') return 'wants to send a message'
  if (operation === 'move_chat') return 'wants to move a chat'
  if (operation === 'set_column') return 'wants to change a field'
  return `wants to run ${operation}`
}

export function targetOf({ chat, account }: Approval): string {
  return chat ? (chat.name ?? chat.id) : account.name
}

/** One line of what would happen. */
export function summaryOf(approval: Approval): string {
  const { payload, from, to } = approval
  if (typeof payload.text === 'string') return payload.text
  if (from !== null || to !== null) return `${valueWords(from)} → ${valueWords(to)}`
  return JSON.stringify(payload)
}

/** A stage, or the value of a field, whatever type it has. */
export function valueWords(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'empty'
  if (Array.isArray(value)) return value.length === 0 ? 'empty' : value.map(valueWords).join(', ')
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'object') {
    const { label, name, value: inner } = value as { label?: unknown; name?: unknown; value?: unknown }
    if (typeof label === 'string') return label
    if (typeof name === 'string' && inner === undefined) return name
    return inner === undefined ? JSON.stringify(value) : valueWords(inner)
  }
  return String(value)
}

type Tone = 'plain' | 'good' | 'warn' | 'danger'

/** Honest words: the platform accepts, it never says whether somebody has read it. */
const outcomes: Readonly<Record<string, readonly [Tone, string]>> = {
  queued: ['plain', 'On its way'],
  submitting: ['plain', 'On its way'],
  completed: ['good', 'Done'],
  refused: ['danger', 'Refused by the platform'],
  released: ['warn', 'Not done'],
  ambiguous: ['warn', 'Unknown – not retried'],
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
  const [tone, words] = (state === 'used' && outcome !== null && outcomes[outcome]) || states[state]
  const sent = operation === 'send_message' && state === 'used' && outcome === 'completed'
  return <Badge tone={tone}>{sent ? 'Accepted by the platform' : words}</Badge>
}
