/** The switch that stops all sending, why it is off, and what sending waits for. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type Dispatch, dispatchQuery } from '../../data/operator.ts'
import { useChange } from '../../data/queries.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { ExactText } from '../../ui/exact-text.tsx'
import { Form, TextField } from '../../ui/form.tsx'
import { Failure } from '../../ui/notice.tsx'
import { Section } from '../../ui/page.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'

export function SendingView() {
  return (
    <Loaded query={useQuery(dispatchQuery)}>
      {(dispatch) => (
        <div className="max-w-[64ch]">
          {dispatch.dispatch ? <Stop /> : <Resume {...dispatch} />}
          <Waits {...dispatch} />
        </div>
      )}
    </Loaded>
  )
}

const reasonMax = 500
const touched = ['instance', 'sending', 'workspace'] as const

function Stop() {
  const set = useChange('POST /dispatch', touched)
  const [reason, setReason] = useState('')
  const why = reason.trim()
  return (
    <Section
      title="Parley sends"
      about="Stopping holds everything that is not on its way yet: messages, campaigns and broadcasts. Reading goes on."
    >
      <Form
        onSubmit={() => set.mutate({ body: { on: false, ...(why !== '' && { reason: why }) } })}
        change={set}
        action="Stop all sending"
        kind="danger"
      >
        <TextField
          label="Reason"
          help="Every user of every workspace sees it on every page."
          value={reason}
          maxLength={reasonMax}
          onChange={setReason}
        />
      </Form>
    </Section>
  )
}

function Resume({ since, reason }: Dispatch) {
  const set = useChange('POST /dispatch', touched)
  return (
    <Section
      title="Sending is off"
      about={
        <>
          {since && (
            <>
              Since <Time at={String(since)} exact />.{' '}
            </>
          )}
          {reason === null ? 'No reason was given.' : <ExactText text={reason} />}
        </>
      }
    >
      <Failure error={set.error} />
      <div>
        <Button kind="primary" busy={set.isPending} onClick={() => set.mutate({ body: { on: true } })}>
          Resume sending
        </Button>
      </div>
    </Section>
  )
}

function Waits({ owing, unconfirmed }: Dispatch) {
  const [worker, setWorker] = useState<string>()
  const without = useChange('POST /dispatch/without', touched)
  if (owing.length === 0 && unconfirmed.length === 0) return null
  return (
    <Section title="Sending waits for">
      <ul className="divide-y divide-line border-y border-line">
        {owing.map(({ id, beat_at }) => (
          <li key={id} className="flex min-h-11 flex-wrap items-center gap-x-4 gap-y-1 py-1.5">
            <span className="min-w-0 flex-1">
              The journals of worker <span className="font-mono text-xs">{id}</span>, last seen{' '}
              <Time at={String(beat_at)} />. Nothing is sent until it has replayed them.
            </span>
            <Button size="small" onClick={() => setWorker(id)}>
              Do not wait…
            </Button>
          </li>
        ))}
        {unconfirmed.map(({ account_id, status }) => (
          <li key={account_id} className="flex min-h-11 flex-wrap items-center gap-x-4 py-1.5">
            <span className="min-w-0 flex-1">
              Account <span className="font-mono text-xs">{account_id}</span> to connect. New contacts of its
              pools wait for it.
            </span>
            <Badge>{status}</Badge>
          </li>
        ))}
      </ul>
      <Confirm
        open={worker !== undefined}
        onClose={() => setWorker(undefined)}
        title="Send without this worker’s journals?"
        description="Only if its disk is lost for good. The outcomes in its journals stay unknown. This cannot be undone."
        phrase={worker ?? ''}
        action="Do not wait"
        change={without}
        onConfirm={() =>
          worker !== undefined &&
          without.mutate({ body: { worker_id: worker } }, { onSuccess: () => setWorker(undefined) })
        }
      />
    </Section>
  )
}
