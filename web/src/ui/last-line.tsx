/** The last thing in a chat: a message, or what was to be sent after it. A state stands before its own text only. */
import { Check, CircleHelp, CircleX, Clock3 } from 'lucide-react'
import type { InboxChat } from '../data/chats.ts'
import { ExactLine } from './exact-text.tsx'

const states = {
  sending: { icon: Clock3, label: 'Sending', look: 'text-muted' },
  accepted: { icon: Check, label: 'Accepted', look: 'text-accent' },
  refused: { icon: CircleX, label: 'Refused', look: 'text-danger' },
  ambiguous: { icon: CircleHelp, label: 'Unclear whether it was sent', look: 'text-warn' },
} as const

type LastOfChat = Pick<InboxChat, 'last_attempt' | 'last_is_sender' | 'last_message_text' | 'last_message_at'>

/** The time of what `LastLine` shows; null for a chat without messages. */
export const lastAt = ({ last_attempt, last_message_at }: LastOfChat) => last_attempt?.at ?? last_message_at

interface LineProps {
  chat: LastOfChat
  /** Leaves out that a message was accepted, where most were. */
  calm?: boolean
  /** On one line, which ends where there is no more room. */
  cut?: boolean
}

export function LastLine({ chat, calm = false, cut = false }: LineProps) {
  const { last_attempt, last_is_sender, last_message_text, last_message_at } = chat
  const state = last_attempt?.state ?? (last_is_sender ? 'accepted' : null)
  const text = last_attempt === null ? (last_message_text ?? '') : last_attempt.text // guard: a state beside its own text
  const isEmpty = last_attempt === null && last_message_at === null
  const isCleared = last_attempt === null && last_message_text === null
  const instead = isEmpty ? 'No messages yet' : isCleared ? 'Not kept any longer' : 'A file'
  const words = (
    <>
      {state !== null && !(calm && state === 'accepted') && <State state={state} />}
      {state !== null && <span className="shrink-0 whitespace-pre">You: </span>}
      <ExactLine text={text} empty={instead} cut={cut} />
    </>
  )
  return cut ? <span className="flex min-w-0">{words}</span> : words
}

function State({ state }: { state: keyof typeof states }) {
  const { icon: Icon, label, look } = states[state]
  return (
    <span title={label} className={`shrink-0 ${look}`}>
      <Icon aria-hidden className="-mt-0.5 mr-1 inline size-3.5" />
      <span className="sr-only">{label}. </span>
    </span>
  )
}
