/** The deliveries of an endpoint, newest first: their state, attempts and last outcome. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { useChange } from '../../data/queries.ts'
import {
  type Delivery,
  deliveriesQuery,
  deliveryStates,
  outcomeOf,
  type WebhookRef,
} from '../../data/webhooks.ts'
import { Button } from '../../ui/button.tsx'
import { Failure } from '../../ui/notice.tsx'
import { More, Reading } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { DeliveryBadge, stateWords } from './state-badges.tsx'
import type { Go, WebhooksSearch } from './webhooks-search.ts'

const DeliveryDialog = lazy(async () => ({ default: (await import('./delivery-dialog.tsx')).DeliveryDialog }))

interface DeliveriesProps {
  params: WebhookRef
  search: WebhooksSearch
  go: Go
}

export function Deliveries({ params, search, go }: DeliveriesProps) {
  const { state, delivery, ...rest } = search
  const here: WebhooksSearch = { ...rest, hook: params.webhook_id }
  const query = useInfiniteQuery({
    ...deliveriesQuery(params, state),
    placeholderData: (before) => before,
  })
  const rows = query.data?.pages.flatMap(({ deliveries }) => deliveries)
  const resend = useChange('POST /w/{workspace_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/resend', [
    'webhooks',
  ])
  const withState = { ...here, ...(state !== undefined && { state }) }
  return (
    <div className="grid gap-3">
      <div className="flex flex-wrap items-center gap-1">
        <h3 className="mr-2 font-semibold">Deliveries</h3>
        {[undefined, ...deliveryStates].map((each) => (
          <button
            key={each ?? 'all'}
            type="button"
            aria-pressed={each === state}
            onClick={() => go({ ...here, ...(each !== undefined && { state: each }) })}
            className="h-9 rounded-lg px-2.5 text-xs font-medium text-soft hover:bg-hover aria-pressed:bg-hover aria-pressed:text-ink sm:h-7"
          >
            {each === undefined ? 'All' : stateWords[each][0]}
          </button>
        ))}
      </div>
      <Reading query={query} rows={3} />
      <Failure error={resend.error} />
      {rows?.length === 0 && (
        <p role="status" className="text-muted">
          {state === undefined
            ? 'No deliveries yet. Send a test to see one.'
            : `No ${stateWords[state][0].toLowerCase()} deliveries.`}
        </p>
      )}
      {rows && rows.length > 0 && (
        <DeliveryTable
          rows={rows}
          resending={resend.isPending ? resend.variables?.params.delivery_id : undefined}
          onOpen={({ id }) => go({ ...withState, delivery: id })}
          onResend={({ id }) => resend.mutate({ params: { ...params, delivery_id: id } })}
        />
      )}
      <More of={query}>Show more</More>
      {delivery !== undefined && (
        <Suspense>
          <DeliveryDialog params={{ ...params, delivery_id: delivery }} onClose={() => go(withState)} />
        </Suspense>
      )}
    </div>
  )
}

interface DeliveryTableProps {
  rows: readonly Delivery[]
  resending: string | undefined
  onOpen: (delivery: Delivery) => void
  onResend: (delivery: Delivery) => void
}

function DeliveryTable({ rows, resending, onOpen, onResend }: DeliveryTableProps) {
  return (
    <Table
      label="Deliveries"
      rows={rows}
      rowKey={({ id }) => id}
      empty={{ icon: () => null, title: '', children: '' }}
      columns={[
        {
          heading: 'Event',
          lead: true,
          cell: (delivery) => (
            <button
              type="button"
              onClick={() => onOpen(delivery)}
              className="text-left font-medium text-ink underline-offset-3 hover:underline"
            >
              {delivery.type}
              {delivery.sequence !== null && (
                <span className="ml-2 text-xs text-muted">{delivery.sequence}</span>
              )}
            </button>
          ),
        },
        { heading: 'State', cell: ({ state }) => <DeliveryBadge state={state} /> },
        { heading: 'Attempts', cell: ({ attempts }) => attempts },
        { heading: 'Last attempt', cell: ({ last }) => (last ? outcomeOf(last) : 'None yet') },
        { heading: 'Time', cell: ({ created_at }) => <Time at={created_at} /> },
        {
          heading: 'Actions',
          actions: true,
          cell: (delivery) =>
            delivery.state !== 'pending' && (
              <Button
                kind="quiet"
                size="small"
                busy={resending === delivery.id}
                aria-label={`Resend ${delivery.type} ${delivery.sequence ?? ''}`.trim()}
                onClick={() => onResend(delivery)}
              >
                Resend
              </Button>
            ),
        },
      ]}
    />
  )
}
