/** The dialogs of an endpoint. A secret is shown once, in a dialog that only its button closes. */
import { useEffect, useState } from 'react'
import type { Answer } from '../../data/api.ts'
import { useChange } from '../../data/queries.ts'
import { noteSecret, type Webhook, type WebhookRef } from '../../data/webhooks.ts'
import { ShownOnce } from '../../ui/copy.tsx'
import { Confirm, Dialog } from '../../ui/dialog.tsx'
import { type Change, Choice, Choices, DateField, Form, TextField } from '../../ui/form.tsx'
import { Notice } from '../../ui/notice.tsx'

type EventType =
  | 'message.received'
  | 'message.edited'
  | 'message.deleted'
  | 'pipeline.moved'
  | 'campaign.replied'

const eventWords: Readonly<Record<EventType, string>> = {
  'message.received': 'Someone wrote a message.',
  'message.edited': 'A message was edited.',
  'message.deleted': 'Messages were deleted.',
  'pipeline.moved': 'A chat moved to another stage.',
  'campaign.replied': 'A recipient of a campaign replied.',
}
const eventTypes = Object.keys(eventWords) as EventType[]

interface EndpointFields {
  readonly url: string
  readonly events: readonly EventType[]
}

interface EndpointFormProps {
  start: EndpointFields
  action: string
  change: Change
  /** `["*"]` stands for all. */
  onSubmit: (fields: { url: string; events: (EventType | '*')[] }) => void
}

function EndpointForm({ start, action, change, onSubmit }: EndpointFormProps) {
  const [url, setUrl] = useState(start.url)
  const [events, setEvents] = useState(start.events)
  const wanted = events.length === eventTypes.length ? ['*' as const] : [...events]
  return (
    <Form
      onSubmit={() => onSubmit({ url: url.trim(), events: wanted })}
      change={change}
      action={action}
      disabled={events.length === 0 || url.trim() === ''}
    >
      <TextField
        label="Address"
        help="HTTPS, on the public internet. Parley calls it with the first event."
        required
        maxLength={2048}
        value={url}
        onChange={setUrl}
        placeholder="https://example.com/hook"
        inputMode="url"
        spellCheck={false}
      />
      <Choices legend="Which events?">
        {eventTypes.map((type) => (
          <Choice
            key={type}
            label={type}
            help={eventWords[type]}
            checked={events.includes(type)}
            onChange={(event) =>
              setEvents(event.target.checked ? [...events, type] : events.filter((each) => each !== type))
            }
          />
        ))}
      </Choices>
    </Form>
  )
}

interface AddProps {
  workspace_id: string
  onClose: () => void
  onMade: (made: MadeSecret) => void
}

export function AddDialog({ workspace_id, onClose, onMade }: AddProps) {
  const create = useChange('POST /w/{workspace_id}/webhooks', ['webhooks'])
  return (
    <Dialog open onClose={onClose} title="Add an endpoint">
      <EndpointForm
        start={{ url: '', events: eventTypes }}
        action="Add endpoint"
        change={create}
        onSubmit={(body) => create.mutate({ params: { workspace_id }, body }, { onSuccess: onMade })}
      />
    </Dialog>
  )
}

export function SecretDialog({ made, onClose }: ShownSecretProps) {
  return (
    <Dialog open onClose={onClose} sealed title="The endpoint’s secret" description={shownOnce}>
      <ShownSecret made={made} onClose={onClose} />
    </Dialog>
  )
}

const shownOnce =
  'Copy it now. You will not see it again. Your program checks the signature of each event with it.'

export type MadeSecret = Answer<'POST /w/{workspace_id}/webhooks'>

interface ShownSecretProps {
  made: MadeSecret
  onClose: () => void
}

/** Noted until the user confirms it, so that the page offers a rotation if this tab crashes. */
function ShownSecret({ made: { webhook, secret }, onClose }: ShownSecretProps) {
  useEffect(() => noteSecret(webhook.id, false), [webhook.id])
  return (
    <ShownOnce
      value={secret}
      label={`The secret of ${webhook.url}`}
      warning="Anyone with this secret can sign events as Parley. Keep it like a password."
      done="I saved it"
      onClose={() => {
        noteSecret(webhook.id, true)
        onClose()
      }}
    />
  )
}

interface DialogOfEndpoint {
  params: WebhookRef
  onClose: () => void
}

export function RotateDialog({ params, onClose }: DialogOfEndpoint) {
  const rotate = useChange('POST /w/{workspace_id}/webhooks/{webhook_id}/rotate-secret', ['webhooks'])
  const made = rotate.data
  return (
    <Dialog
      open
      onClose={onClose}
      sealed={made !== undefined}
      title={made ? 'The new secret' : 'Rotate the secret?'}
      description={
        made
          ? shownOnce
          : 'Makes a new secret. For 24 hours Parley also signs with the old one, so that your program can switch.'
      }
    >
      {made ? (
        <ShownSecret made={made} onClose={onClose} />
      ) : (
        <Form onSubmit={() => rotate.mutate({ params })} change={rotate} action="Rotate secret" />
      )}
    </Dialog>
  )
}

export function EditDialog({ of: webhook, params, onClose }: DialogOfEndpoint & { of: Webhook }) {
  const update = useChange('PATCH /w/{workspace_id}/webhooks/{webhook_id}', ['webhooks'])
  const events = eventTypes.filter((type) => webhook.events.includes('*') || webhook.events.includes(type))
  return (
    <Dialog
      open
      onClose={onClose}
      title="Change the endpoint"
      description="Undelivered events go to the new address."
    >
      <EndpointForm
        start={{ url: webhook.url, events }}
        action="Save"
        change={update}
        onSubmit={(body) => update.mutate({ params, body }, { onSuccess: onClose })}
      />
    </Dialog>
  )
}

const dayMs = 86_400_000

export function ResendDialog({ params, onClose }: DialogOfEndpoint) {
  const resend = useChange('POST /w/{workspace_id}/webhooks/{webhook_id}/resend-failed', ['webhooks'])
  const [day, setDay] = useState(() => new Date(Date.now() - dayMs).toISOString().slice(0, 10))
  return (
    <Dialog
      open
      onClose={onClose}
      title="Resend failed deliveries"
      description="At most 10,000 at once, oldest first. An inactive endpoint gets them once it is active."
    >
      <Form
        onSubmit={() => resend.mutate({ params, body: { since: day } })}
        change={resend}
        action="Resend"
        disabled={day === ''}
      >
        <DateField
          label="Since"
          help="The beginning of this day in UTC, at most 30 days ago."
          required
          value={day}
          onChange={setDay}
        />
        {resend.data && <Notice tone="good">{resend.data.message}</Notice>}
      </Form>
    </Dialog>
  )
}

interface DeleteProps extends DialogOfEndpoint {
  of: Webhook
  onDeleted: () => void
}

export function DeleteDialog({ of: webhook, params, onClose, onDeleted }: DeleteProps) {
  const remove = useChange('DELETE /w/{workspace_id}/webhooks/{webhook_id}', ['webhooks'])
  return (
    <Confirm
      open
      onClose={onClose}
      title="Delete this endpoint?"
      description="Its undelivered events are deleted with it. This cannot be undone."
      phrase={webhook.url}
      action="Delete endpoint"
      change={remove}
      onConfirm={() => remove.mutate({ params }, { onSuccess: onDeleted })}
    />
  )
}
