/** What the page "Webhooks" reads. */

import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { type Answer, ask } from './api.ts'
import { byCursor } from './by-cursor.ts'
import { keys } from './keys.ts'

export type Webhook = Answer<'GET /w/{workspace_id}/webhooks'>['webhooks'][number]
export type Delivery = Answer<'GET /w/{workspace_id}/webhooks/{webhook_id}/deliveries'>['deliveries'][number]
export type DeliveryState = Delivery['state']

export const deliveryStates = ['pending', 'delivered', 'failed'] as const satisfies readonly DeliveryState[]

/** Names one endpoint. */
export interface WebhookRef {
  readonly workspace_id: string
  readonly webhook_id: string
}

export const webhooksQuery = (workspace_id: string) =>
  queryOptions({
    queryKey: keys.webhooks(workspace_id, 'list'),
    queryFn: () => ask('GET /w/{workspace_id}/webhooks', { params: { workspace_id } }),
  })

const pageSize = 50

export const deliveriesQuery = (params: WebhookRef, state: DeliveryState | undefined) =>
  infiniteQueryOptions({
    queryKey: keys.webhooks(params.workspace_id, 'deliveries', params.webhook_id, state ?? null),
    ...byCursor,
    queryFn: ({ pageParam: cursor, signal }) => {
      const query = { limit: pageSize, state, cursor }
      return ask('GET /w/{workspace_id}/webhooks/{webhook_id}/deliveries', { params, query }, { signal })
    },
  })

/** A worker makes the attempt; a mark may be lost, so that the page also asks. */
const pendingMs = 1_000

export const deliveryQuery = (params: WebhookRef & { readonly delivery_id: string }) =>
  queryOptions({
    queryKey: keys.webhooks(params.workspace_id, 'delivery', params.webhook_id, params.delivery_id),
    queryFn: () => ask('GET /w/{workspace_id}/webhooks/{webhook_id}/deliveries/{delivery_id}', { params }),
    refetchInterval: ({ state }) => (state.data?.delivery.state === 'pending' ? pendingMs : false),
  })

/** What was wrong with an attempt, for people. */
const errorWords: Readonly<Record<string, string>> = {
  timeout: 'no answer in time',
  refused: 'the connection was refused',
  unreachable: 'the host cannot be reached',
  reset: 'the connection broke off',
  dns: 'the name of the host is unknown',
  tls: 'its certificate is not valid',
  blocked_address: 'the address is not on the public internet',
  too_large: 'the answer was too large',
  invalid_response: 'the answer was not HTTP',
  unsigned: 'it could not be signed',
}

export function outcomeOf({ status, error, ms }: NonNullable<Delivery['last']>): string {
  const what = status === null ? (errorWords[error ?? ''] ?? error ?? 'no answer') : `status ${status}`
  return `${what}, ${ms.toLocaleString('en')} ms`
}

/** Endpoints whose secret was on the screen and not confirmed as saved: the tab may have crashed. */
const unsavedName = 'parley.unsaved-secrets'

export function unsavedSecrets(): readonly string[] {
  return (localStorage.getItem(unsavedName) ?? '').split(' ').filter(Boolean)
}

export function noteSecret(webhook_id: string, isSaved: boolean): void {
  const others = unsavedSecrets().filter((id) => id !== webhook_id)
  localStorage.setItem(unsavedName, [...others, ...(isSaved ? [] : [webhook_id])].join(' '))
}
