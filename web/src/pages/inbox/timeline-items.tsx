/** A message, or an attempt of ours without one. Below our own ones is their state in the ledger, and no guess. */
import { useQueryClient } from '@tanstack/react-query'
import { Check, CircleHelp, Clock3, OctagonAlert, Send } from 'lucide-react'
import type { ReactNode } from 'react'
import {
  type ChatRef,
  refreshChat,
  type TimelineItem,
  type TimelineMessage,
  type TimelineOperation,
} from '../../data/chats.ts'
import { useChange } from '../../data/queries.ts'
import { Button } from '../../ui/button.tsx'
import { ExactLine, ExactText } from '../../ui/exact-text.tsx'
import { Failure } from '../../ui/notice.tsx'
import { useClock } from '../../ui/time.tsx'
import { Attachments } from './attachments.tsx'

interface MessageProps {
  message: TimelineMessage
  chat: ChatRef
  previous: TimelineItem | undefined
  next: TimelineItem | undefined
  /** The message that the address names. */
  wanted: boolean
}

export function MessageItem({ message, chat, previous, next, wanted }: MessageProps) {
  const { is_sender: own, campaign, state } = message
  const isUnknown = own && state === 'ambiguous'
  const follows = previous?.type === 'message' && previous.is_sender === own
  return (
    <>
      {campaign && <CampaignLine campaign={campaign} />}
      <article
        id={`message-${message.id}`}
        aria-label={own ? 'Message from us' : 'Message from them'}
        className={`max-w-[min(86%,520px)] min-[761px]:max-w-[min(78%,520px)] ${own ? 'self-end' : 'self-start'}
          ${follows ? 'mt-1' : 'mt-2'} ${wanted ? 'rounded-2xl ring-2 ring-accent ring-offset-4 ring-offset-surface' : ''}`}
      >
        <Attachments message={message} chat={chat} />
        {(message.text !== '' || message.attachments.length === 0) && (
          <Bubble own={own} unknown={isUnknown}>
            {message.text === '' ? (
              <span className="italic text-muted">An empty message</span>
            ) : (
              <ExactText text={message.text} />
            )}
          </Bubble>
        )}
        {!isUnknown && (own || !isSaidWith(message, next)) && <Meta message={message} />}
      </article>
      {isUnknown && message.operation_id !== null && (
        <Ambiguous
          operation_id={message.operation_id}
          chat={chat}
          sentence="We keep looking for it in the chat, and won’t send it again."
          isOpen
        />
      )}
    </>
  )
}

/** The next message carries the time for both. */
function isSaidWith(message: TimelineMessage, next: TimelineItem | undefined): boolean {
  if (next?.type !== 'message' || next.is_sender !== message.is_sender) return false
  return new Date(next.at).getTime() - new Date(message.at).getTime() < 5 * 60_000
}

export function Bubble({
  own,
  unknown = false,
  faint = false,
  children,
}: {
  own: boolean
  unknown?: boolean
  faint?: boolean
  children: ReactNode
}) {
  const look = unknown
    ? 'shadow-[inset_0_0_0_1.5px_color-mix(in_oklab,var(--warn)_60%,transparent)]'
    : own
      ? 'bg-accent-wash'
      : 'bg-hover'
  const corners = own ? 'rounded-[14px_4px_14px_14px]' : 'rounded-[4px_14px_14px_14px]'
  return (
    <div
      dir="auto"
      className={`w-fit px-3 py-2 text-[14.5px]/[21px] forced-colors:border ${own ? 'ml-auto' : ''} ${look} ${corners} ${faint ? 'text-soft' : ''}`}
    >
      {children}
    </div>
  )
}

function Meta({ message }: { message: TimelineMessage }) {
  const { clock } = useClock()
  const { is_sender: own, read_at, edited_at, state } = message
  const words = [
    own && state === 'accepted' && 'Accepted',
    own && read_at !== null && `read ${clock(read_at)}`,
    own && writerOf(message),
    edited_at !== null && `edited ${clock(edited_at)}`,
  ].filter((word): word is string => Boolean(word))
  return (
    <p className={`mx-1 mt-0.75 flex items-center gap-1.25 text-xs text-muted ${own ? 'justify-end' : ''}`}>
      <time dateTime={message.at}>{clock(message.at)}</time>
      {own && state === 'accepted' && <Check aria-hidden className="size-3.5 shrink-0 text-accent" />}
      {words.length > 0 && (
        <span className="min-w-0 truncate">
          <ExactLine text={words.join(', ')} cut />
        </span>
      )}
    </p>
  )
}

function writerOf({ by, campaign }: Pick<TimelineMessage, 'by' | 'campaign'>): string | null {
  if (!by || campaign) return null
  if (by.kind === 'elsewhere') return 'sent from another device'
  if (by.kind === 'key') return by.name === null ? 'a key' : `key ${by.name}`
  if (by.kind === 'agent') return by.name === null ? 'an agent' : `agent ${by.name}`
  return by.name
}

const stepWords = (step: number) => (step === 0 ? 'first message' : `follow-up ${step}`)

function CampaignLine({ campaign }: { campaign: NonNullable<TimelineMessage['campaign']> }) {
  return (
    <p className="-mb-1 mr-1 mt-3 flex max-w-[min(86%,520px)] items-center gap-1.25 self-end text-xs text-muted">
      <Send aria-hidden className="size-3.5 shrink-0" />
      <span className="flex min-w-0 whitespace-pre">
        <ExactLine text={campaign.name ?? ''} empty="A campaign" cut />
        <span className="shrink-0">, {stepWords(campaign.step)}</span>
      </span>
    </p>
  )
}

/** Sending, refused or ambiguous: as far as we know, the platform has no such message. */
export function OperationItem({ operation, chat }: { operation: TimelineOperation; chat: ChatRef }) {
  const { clock } = useClock()
  const { state, text, file_name, sentence, campaign } = operation
  return (
    <>
      {campaign && <CampaignLine campaign={campaign} />}
      <article aria-label="Message from us" className="mt-2 max-w-[min(86%,520px)] self-end">
        <Bubble own unknown={state === 'ambiguous'} faint={state !== 'ambiguous'}>
          {file_name !== null && (
            <span className="block font-medium">
              <ExactLine text={file_name} empty="A file" />
            </span>
          )}
          {text !== '' && <ExactText text={text} />}
        </Bubble>
        {state === 'sending' && (
          <OwnState icon={<Clock3 aria-hidden className="size-3.5 shrink-0" />}>
            <time dateTime={operation.at}>{clock(operation.at)}</time> Sending
            {writerOf(operation) !== null && `, ${writerOf(operation)}`}
          </OwnState>
        )}
        {state === 'refused' && (
          <OwnState icon={<OctagonAlert aria-hidden className="size-3.5 shrink-0 text-danger" />}>
            <time dateTime={operation.at}>{clock(operation.at)}</time>{' '}
            <span className="text-danger">Refused: {sentence}</span>
          </OwnState>
        )}
      </article>
      {state === 'ambiguous' && (
        <Ambiguous
          operation_id={operation.id}
          chat={chat}
          sentence={sentence}
          isOpen={operation.closed_as === null}
        />
      )}
    </>
  )
}

export function OwnState({ icon, children }: { icon: ReactNode; children: ReactNode }) {
  return (
    <p className="mx-1 mt-0.75 flex justify-end gap-1.25 text-xs text-muted">
      <span className="mt-0.5">{icon}</span>
      <span className="min-w-0">{children}</span>
    </p>
  )
}

interface AmbiguousProps {
  operation_id: string
  chat: ChatRef
  sentence: string
  /** No person has said yet what they saw. */
  isOpen: boolean
}

/** A person who looks at the phone knows more than the ledger. Neither answer sends anything. */
function Ambiguous({ operation_id, chat, sentence, isOpen }: AmbiguousProps) {
  const client = useQueryClient()
  const close = useChange('POST /w/{workspace_id}/operations/{operation_id}/close', [])
  const say = (sent: boolean) =>
    close.mutate(
      { params: { workspace_id: chat.workspace_id, operation_id }, body: { sent } },
      { onSettled: () => refreshChat(client, chat) },
    )
  return (
    <div
      role="note"
      className="mt-1.5 flex max-w-[min(92%,520px)] gap-2.5 self-end rounded-[10px] bg-warn-wash px-3 py-2.5 text-soft"
    >
      <CircleHelp aria-hidden className="mt-0.5 size-4 shrink-0 text-warn" />
      <div className="min-w-0">
        <b className="font-semibold text-ink">We could not see whether this arrived.</b> {sentence}
        {isOpen && (
          <div className="mt-2 flex flex-wrap gap-1.5">
            <Button size="small" busy={close.isPending} onClick={() => say(true)}>
              I see it on the phone
            </Button>
            <Button size="small" busy={close.isPending} onClick={() => say(false)}>
              It is not there
            </Button>
          </div>
        )}
        <Failure error={close.error} />
      </div>
    </div>
  )
}
