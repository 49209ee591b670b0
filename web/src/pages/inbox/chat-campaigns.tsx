/** In which campaigns the chat's person is: how far each is, and what it does next. */
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { type ChatCampaign, type ChatRef, chatCampaignsQuery } from '../../data/chats.ts'
import { Badge } from '../../ui/badge.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { stateOf } from '../../ui/recipient-states.ts'
import { ClockTime } from '../../ui/time.tsx'

export function ChatCampaigns({ chat }: { chat: ChatRef }) {
  const { data: campaigns = [] } = useQuery(chatCampaignsQuery(chat))
  if (campaigns.length === 0) return null
  return (
    <section>
      <h2 className="mb-1.5 font-semibold">Campaigns</h2>
      <ul className="grid gap-1.5">
        {campaigns.map((campaign) => {
          const [tone, state] = stateOf(campaign.recipient)
          return (
            <li key={campaign.id} className="rounded-[10px] px-2.75 py-2 ring-1 ring-inset ring-line">
              <p className="flex items-center gap-2">
                <span className="min-w-0 flex-1 truncate font-medium">
                  <ExactLine text={campaign.name ?? ''} empty="A campaign without a name" cut />
                </span>
                <Badge tone={tone}>{state}</Badge>
              </p>
              <p className="mt-0.5 text-xs text-muted">{sentenceOf(campaign)}</p>
            </li>
          )
        })}
      </ul>
    </section>
  )
}

function sentenceOf({ status, recipient }: ChatCampaign): ReactNode {
  const sent = sentWords(recipient.step)
  if (recipient.opted_out) return `No follow-up goes out: they asked to stop. ${sent}`
  if (recipient.status === 'replied') return `No follow-up goes out: they replied. ${sent}`
  if (recipient.status === 'suppressed') return `On the suppression list: nothing more goes out. ${sent}`
  if (recipient.status === 'ambiguous')
    return `We can’t tell whether this message was sent. It won’t be sent again. ${sent}`
  if (recipient.status !== 'queued' && recipient.status !== 'waiting') return sent
  if (status === 'paused') return `${sent} The campaign is paused.`
  if (recipient.next_action_at === null) return sent
  return (
    <>
      {sent} The next goes out no earlier than <ClockTime at={recipient.next_action_at} />
      {recipient.step > 0 && ', unless they reply'}.
    </>
  )
}

function sentWords(step: number): string {
  if (step === 0) return 'No message accepted yet.'
  return step === 1 ? 'First message accepted.' : `First message and ${step - 1} of its follow-ups accepted.`
}
