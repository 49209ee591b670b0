/** What the address of the page says. */
import type { DeliveryState } from '../../data/webhooks.ts'

export interface WebhooksSearch {
  /** The chosen endpoint. */
  hook?: string
  /** Only deliveries in this state. */
  state?: DeliveryState
  /** The delivery that is open. */
  delivery?: string
  open?: 'add'
}

export type Go = (search: WebhooksSearch) => void
