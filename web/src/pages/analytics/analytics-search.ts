/** What the address of the page says. */
import type { Period } from '../../data/analytics.ts'

export interface AnalyticsSearch {
  /** The figures of campaigns; without it, 30 days. */
  period?: Period
  /** The days of the chart; without them, the last 30. */
  from?: string
  to?: string
  /** Only messages of this account, in the chart. */
  account?: string
}

export type Go = (search: AnalyticsSearch) => void
