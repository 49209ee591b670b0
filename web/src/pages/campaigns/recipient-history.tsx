/** What has happened to one recipient, oldest first, and what it waits for now. */
import { Link } from '@tanstack/react-router'
import { MessageCircle } from 'lucide-react'
import type { Campaign, Recipient } from '../../data/campaigns.ts'
import { buttonClass } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { PersonLink } from '../../ui/person-link.tsx'
import { ClockTime } from '../../ui/time.tsx'
import { stepName, variantName } from './campaign-words.ts'

interface HistoryProps {
  workspace_id: string
  recipient: Recipient
  steps: Campaign['steps']
  /** The name of its account. */
  account: string | undefined
}

type Entry = Recipient['timeline'][number]

const dots: Readonly<Record<Entry['type'], string>> = {
  message: 'bg-accent',
  read: 'bg-chart-3',
  reply: 'bg-accent',
  block: 'bg-danger',
}

export function RecipientHistory({ workspace_id, recipient, steps, account }: HistoryProps) {
  const { timeline, next_action_at, sentence, account_id, chat_id, identifier } = recipient
  return (
    <div className="border-t border-line bg-sunken px-4 py-3 min-[761px]:pl-10">
      <ol className="grid gap-2">
        {timeline.map((entry) => (
          <li
            key={`${entry.type} ${entry.step} ${entry.at}`}
            className="grid grid-cols-[7.5rem_0.5rem_minmax(0,1fr)] gap-x-2.5"
          >
            <When at={entry.at} />
            <Dot look={dots[entry.type]} />
            <p className="min-w-0 [overflow-wrap:anywhere]">
              {wordsOf(entry, steps, recipient.opted_out)}
              {account !== undefined && entry.type === 'message' && (
                <>
                  {' '}
                  from <ExactLine text={account} />
                </>
              )}
              {entry.operation_id !== null && (entry.type === 'message' || entry.type === 'block') && (
                <span className="text-xs text-muted max-[760px]:block min-[761px]:ml-2">
                  operation {entry.operation_id}
                </span>
              )}
            </p>
          </li>
        ))}
        <li className="grid grid-cols-[7.5rem_0.5rem_minmax(0,1fr)] gap-x-2.5">
          {next_action_at === null ? <span /> : <When at={next_action_at} />}
          <Dot look="ring-1 ring-line-strong ring-inset" />
          <p className="min-w-0 text-soft">
            <ExactLine text={sentence} />
          </p>
        </li>
      </ol>
      <div className="mt-3 flex flex-wrap gap-1.5">
        {account_id !== null && chat_id !== null && (
          <Link
            to="/w/$workspace_id/inbox"
            params={{ workspace_id }}
            search={{ chat: chat_id, of: account_id }}
            className={buttonClass({ size: 'small' })}
          >
            <MessageCircle aria-hidden className="size-3.5" />
            Open chat
          </Link>
        )}
        <PersonLink workspace_id={workspace_id} q={chat_id ?? identifier ?? ''} />
      </div>
    </div>
  )
}

function When({ at }: { at: string }) {
  return (
    <span className="text-right text-xs/5 text-muted">
      <ClockTime at={at} />
    </span>
  )
}

function Dot({ look }: { look: string }) {
  return <span aria-hidden className={`mt-1.5 size-2 rounded-full ${look}`} />
}

function wordsOf({ type, step, variant }: Entry, steps: Campaign['steps'], opted_out: boolean): string {
  const name = stepName(step, null, steps)
  const several = (steps[step - 1]?.variants.length ?? 0) > 1
  if (type === 'message')
    return `${name} accepted${several && variant !== null ? `, variant ${variantName(variant)},` : ''}`
  if (type === 'read') return `${name} read`
  if (type === 'reply') return opted_out ? 'Asked to stop' : 'Replied'
  return 'Blocked the account'
}
