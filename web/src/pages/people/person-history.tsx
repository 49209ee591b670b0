/** Names over time, chats, what was sent, and campaigns. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { stagesQuery } from '../../data/chats.ts'
import type { PersonRecord } from '../../data/people.ts'
import { Badge } from '../../ui/badge.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Tag } from '../../ui/face.tsx'
import { stateOf } from '../../ui/recipient-states.ts'
import { stageColour, stageName } from '../../ui/stages.ts'
import { ClockTime, Time } from '../../ui/time.tsx'
import { Card, type PartProps, Rows } from './person-card.tsx'

type Name = PersonRecord['names'][number]

const kinds: Readonly<Record<Name['kind'], string>> = {
  name: 'Name',
  username: 'Username',
  phone: 'Phone number',
}
const sources: Readonly<Record<Name['source'], string>> = {
  platform: 'Seen by',
  chat: 'Chat of',
  contact: 'Contact of',
}
const marks: Readonly<Record<Name['kind'], string>> = { name: '', username: '@', phone: '+' }

export function Names({ person: { names }, accountOf }: PartProps) {
  return (
    <Card title="Known as" empty={names.length === 0 ? 'Only by the id on the platform.' : undefined}>
      <Rows
        label="Names"
        headings={['Name', 'Kind', 'Since', 'Until', 'Where from']}
        rows={names}
        rowKey={({ kind, value, account_id, source }) => `${kind} ${value} ${account_id} ${source}`}
        faded={({ until }) => until !== null}
        cells={({ kind, value, account_id, source, since, until }) => [
          <span key="value" className={until === null ? 'font-medium' : ''}>
            <ExactLine text={`${marks[kind]}${value}`} cut />
          </span>,
          kinds[kind],
          since === null ? 'not known' : <Time key="since" at={since} />,
          until === null ? 'now' : <Time key="until" at={until} />,
          <span key="from">
            {sources[source]} <ExactLine text={accountOf(account_id)} />
          </span>,
        ]}
      />
    </Card>
  )
}

const link = 'font-medium text-accent underline underline-offset-3'

export function Chats({ person: { chats }, workspace_id, accountOf }: PartProps) {
  const { data: stages = [] } = useQuery(stagesQuery(workspace_id))
  return (
    <Card
      title="Chats"
      count={chats.length}
      empty={chats.length === 0 ? 'No chat with any account.' : undefined}
    >
      <Rows
        label="Private chats"
        headings={['Account', 'Stage', 'Assignee', 'Last message']}
        rows={chats}
        rowKey={({ account_id }) => account_id}
        cells={({ account_id, chat_id, stage_key, assignee, last_message_at }) => [
          <Link
            key="chat"
            to="/w/$workspace_id/inbox"
            params={{ workspace_id }}
            search={{ chat: chat_id, of: account_id }}
            className={link}
          >
            <ExactLine text={accountOf(account_id)} empty="Open chat" />
          </Link>,
          <Tag key="stage" colour={stageColour(stages, stage_key)}>
            {stageName(stages, stage_key) ?? stage_key}
          </Tag>,
          assignee ? <ExactLine key="assignee" text={assignee.name} /> : 'Nobody',
          last_message_at === null ? '' : <ClockTime key="last" at={last_message_at} />,
        ]}
      />
    </Card>
  )
}

type SentItem = PersonRecord['sent'][number]

const states: Readonly<Record<string, readonly ['plain' | 'warn' | 'danger', string]>> = {
  accepted: ['plain', 'Accepted'],
  queued: ['plain', 'Waiting'],
  submitting: ['plain', 'Sending'],
  refused: ['danger', 'Refused'],
  ambiguous: ['warn', 'Ambiguous'],
}

export function Sent({ person: { sent }, workspace_id, accountOf }: PartProps) {
  return (
    <Card
      title="What was sent, and why"
      empty={sent.length === 0 ? 'Nothing has been sent to them.' : undefined}
    >
      <ol className="grid gap-2 px-4 pb-3">
        {sent.map((item) => {
          const [tone, word] = states[item.state] ?? ['plain', item.state]
          return (
            <li
              key={`${item.account_id} ${item.message_id} ${item.operation_id}`}
              className="grid grid-cols-[7.5rem_minmax(0,1fr)_max-content] items-baseline gap-x-3"
            >
              <span className="text-right text-xs text-muted">
                <ClockTime at={item.at} />
              </span>
              <span className="min-w-0 text-soft [overflow-wrap:anywhere]">
                <Why of={item} workspace_id={workspace_id} /> from{' '}
                <ExactLine text={accountOf(item.account_id)} />
              </span>
              <Badge tone={tone}>{word}</Badge>
            </li>
          )
        })}
      </ol>
    </Card>
  )
}

function Why({
  of: { by, campaign, chat_id, account_id, message_id },
  workspace_id,
}: {
  of: SentItem
  workspace_id: string
}) {
  const name = campaign?.name ?? by?.name ?? ''
  const reasons: Readonly<Record<string, ReactNode>> = {
    user: (
      <>
        Message by <ExactLine text={name} empty="a former member" />
      </>
    ),
    key: (
      <>
        Message by the key <ExactLine text={name} empty="without a name" />
      </>
    ),
    agent: (
      <>
        Message by the agent <ExactLine text={name} empty="without a name" />, approved by a person
      </>
    ),
    elsewhere: 'Message written outside Parley, such as on the phone,',
  }
  const words = campaign ? (
    <>
      <ExactLine text={name} empty="A campaign without a name" />,{' '}
      {campaign.step === 0 ? 'first message' : `follow-up ${campaign.step}`}
    </>
  ) : (
    (reasons[by?.kind ?? ''] ?? 'Message')
  )
  if (message_id === null) return <b className="font-medium text-ink">{words}</b>
  return (
    <Link
      to="/w/$workspace_id/inbox"
      params={{ workspace_id }}
      search={{ chat: chat_id, of: account_id, message: message_id }}
      className={link}
    >
      {words}
    </Link>
  )
}

export function Campaigns({ person: { campaigns }, accountOf }: PartProps) {
  return (
    <Card
      title="Campaigns"
      count={campaigns.length}
      empty={campaigns.length === 0 ? 'In no campaign.' : undefined}
    >
      <Rows
        label="Campaigns of the person"
        headings={['Campaign', 'Given as', 'Messages', 'Outcome', 'From', 'Since']}
        rows={campaigns}
        rowKey={({ recipient_id }) => recipient_id}
        cells={({
          name,
          contact,
          given_name,
          step,
          recipient_status: status,
          opted_out,
          account_id,
          created_at,
        }) => {
          const [tone, word] = stateOf({ status, opted_out })
          return [
            <span key="name" className="font-medium">
              <ExactLine text={name ?? ''} empty="A campaign without a name" cut />
            </span>,
            <ExactLine key="given" text={given_name ?? contact} cut />,
            String(step),
            <Badge key="state" tone={tone}>
              {word}
            </Badge>,
            <ExactLine key="from" text={accountOf(account_id)} cut />,
            <Time key="since" at={created_at} />,
          ]
        }}
      />
    </Card>
  )
}
