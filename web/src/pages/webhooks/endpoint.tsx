/** One endpoint: why it is disabled, what one can do with it, and its deliveries. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { useChange } from '../../data/queries.ts'
import {
  deliveriesQuery,
  deliveryQuery,
  outcomeOf,
  unsavedSecrets,
  type Webhook,
  type WebhookRef,
} from '../../data/webhooks.ts'
import { AsApi } from '../../ui/as-api.tsx'
import { Button } from '../../ui/button.tsx'
import { ExactText } from '../../ui/exact-text.tsx'
import { Failure, Notice } from '../../ui/notice.tsx'
import { Time } from '../../ui/time.tsx'
import { Deliveries } from './deliveries.tsx'
import { StateBadge } from './state-badges.tsx'
import type { Go, WebhooksSearch } from './webhooks-search.ts'

const dialogs = () => import('./endpoint-dialogs.tsx')
const EditDialog = lazy(async () => ({ default: (await dialogs()).EditDialog }))
const RotateDialog = lazy(async () => ({ default: (await dialogs()).RotateDialog }))
const ResendDialog = lazy(async () => ({ default: (await dialogs()).ResendDialog }))
const DeleteDialog = lazy(async () => ({ default: (await dialogs()).DeleteDialog }))

interface EndpointProps {
  of: Webhook
  workspace_id: string
  search: WebhooksSearch
  go: Go
}

type OpenDialog = 'edit' | 'rotate' | 'resend' | 'delete'

export function Endpoint({ of: webhook, workspace_id, search, go }: EndpointProps) {
  const params = { workspace_id, webhook_id: webhook.id }
  const [open, setOpen] = useState<OpenDialog>()
  const test = useChange('POST /w/{workspace_id}/webhooks/{webhook_id}/test', ['webhooks'])
  const update = useChange('PATCH /w/{workspace_id}/webhooks/{webhook_id}', ['webhooks'])
  const close = () => setOpen(undefined)
  const setActive = (active: boolean) => update.mutate({ params, body: { active } })
  return (
    <section className="mt-4 grid gap-4">
      <header className="flex flex-wrap items-center gap-2">
        <h2 className="min-w-0 text-base font-semibold">
          <ExactText text={webhook.url} />
        </h2>
        <StateBadge of={webhook} />
      </header>
      <p className="text-xs text-muted">
        {webhook.created_by ? (
          <>
            Made by <bdi>{webhook.created_by.name}</bdi>.
            {webhook.stop_reason === null &&
              ' It stops if they leave this workspace or become a plain member.'}
          </>
        ) : (
          'It is not known who made it: it is older than this record. No removal of a member stops it.'
        )}
      </p>
      {webhook.stop_reason !== null && (
        <Notice tone="warn">
          <p>
            <strong>Stopped</strong>, because <bdi>{webhook.created_by?.name}</bdi>{' '}
            {webhook.stop_reason === 'maker_removed'
              ? 'was removed from this workspace or is no admin any more.'
              : 'was disabled by an operator.'}{' '}
            No events are delivered.
          </p>
          <p className="mt-1">
            Check whose address it is. If the workspace still needs it, activate it: it becomes yours, and
            gets the events of the last 30 days that it missed. Otherwise delete it.
          </p>
        </Notice>
      )}
      {webhook.disabled_at !== null && (
        <WhyDisabled
          of={webhook}
          params={params}
          busy={update.isPending}
          onActivate={() => setActive(true)}
        />
      )}
      {unsavedSecrets().includes(webhook.id) && (
        <Notice tone="warn">
          <p>This endpoint’s secret was shown, and nobody confirmed that it was saved.</p>
          <Button size="small" className="mt-2" onClick={() => setOpen('rotate')}>
            Rotate the secret
          </Button>
        </Notice>
      )}
      <div className="flex flex-wrap gap-1.5">
        <Button size="small" busy={test.isPending} onClick={() => test.mutate({ params })}>
          Send a test
        </Button>
        <Button size="small" onClick={() => setOpen('resend')}>
          Resend failed…
        </Button>
        <Button size="small" onClick={() => setOpen('edit')}>
          Change…
        </Button>
        {webhook.disabled_at === null && (
          <Button size="small" busy={update.isPending} onClick={() => setActive(!webhook.active)}>
            {webhook.active ? 'Deactivate' : 'Activate'}
          </Button>
        )}
        <Button size="small" onClick={() => setOpen('rotate')}>
          Rotate secret…
        </Button>
        <Button size="small" kind="quiet" onClick={() => setOpen('delete')}>
          Delete…
        </Button>
        <AsApi of={webhook.url} requests={requestsOf(webhook)} />
      </div>
      <Failure error={test.error ?? update.error} />
      {test.data && <TestResult params={params} delivery_id={test.data.delivery.id} />}
      <Deliveries params={params} search={search} go={go} />
      <Suspense>
        {open === 'edit' && <EditDialog of={webhook} params={params} onClose={close} />}
        {open === 'rotate' && <RotateDialog params={params} onClose={close} />}
        {open === 'resend' && <ResendDialog params={params} onClose={close} />}
        {open === 'delete' && (
          <DeleteDialog of={webhook} params={params} onClose={close} onDeleted={() => go({})} />
        )}
      </Suspense>
    </section>
  )
}

interface WhyDisabledProps {
  of: Webhook
  params: WebhookRef
  busy: boolean
  onActivate: () => void
}

function WhyDisabled({ of: webhook, params, busy, onActivate }: WhyDisabledProps) {
  const { data } = useInfiniteQuery(deliveriesQuery(params, undefined))
  const last = data?.pages[0]?.deliveries.find((each) => each.state !== 'delivered' && each.last)?.last
  return (
    <Notice tone="danger">
      <p>
        <strong>Disabled</strong> <Time at={webhook.disabled_at ?? ''} />: {webhook.consecutive_failures}{' '}
        attempts in a row failed. {last && `The last one: ${outcomeOf(last)}. `}No events are delivered.
      </p>
      <p className="mt-1">
        Repair the endpoint and send a test. Then activate it: Parley delivers the events of the last 30 days
        that it missed. Failed deliveries can be resent.
      </p>
      <Button size="small" className="mt-2" busy={busy} onClick={onActivate}>
        Activate
      </Button>
    </Notice>
  )
}

function TestResult({ params, delivery_id }: { params: WebhookRef; delivery_id: string }) {
  const { data } = useQuery(deliveryQuery({ ...params, delivery_id }))
  const delivery = data?.delivery
  if (!delivery || delivery.state === 'pending') return <Notice tone="info">The test is on its way…</Notice>
  const outcome = delivery.last ? outcomeOf(delivery.last) : ''
  return delivery.state === 'delivered' ? (
    <Notice tone="good">The test arrived: {outcome}.</Notice>
  ) : (
    <Notice tone="danger">The test failed: {outcome}.</Notice>
  )
}

function requestsOf({ id }: Webhook) {
  const path = `/webhooks/${id}`
  return [
    { does: 'List its failed deliveries', method: 'GET', path: `${path}/deliveries?state=failed` },
    { does: 'Send a test', method: 'POST', path: `${path}/test` },
    { does: 'Activate it', method: 'PATCH', path, body: { active: true } },
    { does: 'Rotate its secret', method: 'POST', path: `${path}/rotate-secret` },
  ] as const
}
