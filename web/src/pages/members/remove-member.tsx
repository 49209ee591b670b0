/** Removes a member, or lets one leave: shows what they made first, and asks what becomes of it. */

import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useSession } from '../../data/place.ts'
import { type Member, useChange, type Workspace } from '../../data/queries.ts'
import { Confirm } from '../../ui/dialog.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { SelectField } from '../../ui/form.tsx'
import { Failure, Notice } from '../../ui/notice.tsx'
import { type Made, madeQuery } from './made.ts'

interface RemoveProps {
  member: Pick<Member, 'user_id' | 'email'> | undefined
  workspace: Workspace
  onClose: () => void
}

export function Remove({ member, workspace, onClose }: RemoveProps) {
  const { user } = useSession()
  const remove = useChange('DELETE /w/{workspace_id}/members/{user_id}', ['members', 'session', 'workspace'])
  const params = { workspace_id: workspace.id, user_id: member?.user_id ?? '' }
  const made = useQuery({ ...madeQuery(params), enabled: member !== undefined })
  const [taken, setTaken] = useState<ReadonlySet<string>>(new Set())
  const own = member?.user_id === user.id
  const close = () => {
    setTaken(new Set())
    remove.reset()
    onClose()
  }
  const done = () => (own ? location.assign('/dashboard/') : close())
  const chosen = (things: readonly { id: string }[] = []) =>
    things.map(({ id }) => id).filter((id) => taken.has(id))
  const take_over = { webhooks: chosen(made.data?.webhooks), campaigns: chosen(made.data?.campaigns) }
  return (
    <Confirm
      open={member !== undefined}
      onClose={close}
      title={own ? 'Leave this workspace?' : `Remove ${member?.email ?? ''}?`}
      description="Access, keys and sessions end within a second. What was done with them stays in the records."
      phrase={own ? workspace.name : (member?.email ?? '')}
      action={own ? 'Leave' : 'Remove'}
      disabled={made.data === undefined}
      change={remove}
      onConfirm={() => remove.mutate({ params, body: own ? {} : { take_over } }, { onSuccess: done })}
    >
      {made.data ? (
        <MadeThings
          made={made.data}
          own={own}
          taken={taken}
          onChange={(id, takes) => setTaken(changed(taken, id, takes))}
        />
      ) : (
        <Failure error={made.error} />
      )}
    </Confirm>
  )
}

function changed(taken: ReadonlySet<string>, id: string, takes: boolean): ReadonlySet<string> {
  const next = new Set(taken)
  if (takes) next.add(id)
  else next.delete(id)
  return next
}

interface MadeThingsProps {
  made: Made
  own: boolean
  taken: ReadonlySet<string>
  onChange: (id: string, takes: boolean) => void
}

function MadeThings({ made, own, taken, onChange }: MadeThingsProps) {
  const { webhooks, campaigns, can_take_over } = made
  const ending = endingWords(made)
  const none = webhooks.length + campaigns.length === 0
  if (none && ending === '') return null
  return (
    <>
      {!none && (
        <fieldset className="grid gap-3">
          <legend className="mb-1.5 font-medium">
            {own ? 'What you made stops' : 'What becomes of what they made?'}
          </legend>
          {webhooks.map(({ id, url, active }) => (
            <Thing
              key={id}
              {...{ id, own, taken, onChange }}
              kind={active ? 'Webhook' : 'Webhook, inactive'}
              name={url}
              may={can_take_over.webhooks}
              stops="Stop: it gets no more events"
            />
          ))}
          {campaigns.map(({ id, name, kind, stop, status }) => (
            <Thing
              key={id}
              {...{ id, own, taken, onChange }}
              kind={`${kind === 'broadcast' ? 'Broadcast' : 'Campaign'}, ${status}`}
              name={name ?? (kind === 'broadcast' ? 'Without a name' : 'Untitled')}
              may={can_take_over.campaigns}
              stops={
                stop === 'pause'
                  ? 'Stop: it is paused, and can be resumed'
                  : 'Stop: it is cancelled for good, because it has no steps to pause'
              }
            />
          ))}
          {own && (
            <p className="text-xs text-muted">
              To keep one of these, ask an admin to remove you: they can take it over.
            </p>
          )}
          {!own && campaigns.length > 0 && !can_take_over.campaigns && (
            <p className="text-xs text-muted">
              You cannot take campaigns over: you are not on the campaign allowlist, or campaigns are turned
              off here.
            </p>
          )}
        </fieldset>
      )}
      {ending !== '' && <Notice tone="info">{ending}</Notice>}
    </>
  )
}

interface ThingProps {
  id: string
  kind: string
  name: string
  own: boolean
  may: boolean
  stops: string
  taken: ReadonlySet<string>
  onChange: (id: string, takes: boolean) => void
}

function Thing({ id, kind, name, own, may, stops, taken, onChange }: ThingProps) {
  if (own) {
    return (
      <p className="min-w-0">
        <span className="text-muted">{kind}: </span>
        <ExactLine text={name} />
      </p>
    )
  }
  return (
    <SelectField
      label={`${kind}: ${name}`}
      value={taken.has(id) ? 'take_over' : 'stop'}
      options={[
        ['stop', stops],
        ['take_over', 'Take over: it goes on as yours', !may],
      ]}
      onChange={(what) => onChange(id, what === 'take_over')}
    />
  )
}

/** What ends in any case, as a sentence; empty if there is nothing. */
function endingWords({ keys, links, logins }: Made): string {
  const parts = [
    keys > 0 && counted(keys, 'key is revoked', 'keys are revoked'),
    links > 0 && counted(links, 'open set-up link expires', 'open set-up links expire'),
    logins > 0 && counted(logins, 'login of an account is cancelled', 'logins of accounts are cancelled'),
  ].filter((part) => part !== false)
  return parts.length === 0 ? '' : `${new Intl.ListFormat('en').format(parts)}.`
}

const counted = (count: number, one: string, many: string) => `${count} ${count === 1 ? one : many}`
