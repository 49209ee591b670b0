/** What the page "Analytics" reads: the contract's periods, and a range of days. */

import { queryOptions } from '@tanstack/react-query'
import { type Answer, ask } from './api.ts'
import { keys } from './keys.ts'

export type Figures = Answer<'GET /w/{workspace_id}/analytics'>
export type Days = Answer<'GET /w/{workspace_id}/analytics/days'>
export type Day = Days['days'][number]

/** The share of people reached who replied and did not ask to stop. `reply_rate` counts every reply, as the contract says. */
export function repliedRate({
  replies,
  opt_outs,
  reply_rate,
}: Pick<Figures['totals'], 'replies' | 'opt_outs' | 'reply_rate'>): number {
  return replies === 0 ? 0 : (reply_rate * (replies - opt_outs)) / replies // guard: a rate without those who asked to stop
}

export const periods = { '7d': '7 days', '30d': '30 days', all: 'All time' } as const
export type Period = keyof typeof periods

export const figuresQuery = (workspace_id: string, period: Period) =>
  queryOptions({
    queryKey: keys.analytics(workspace_id, period),
    queryFn: ({ signal }) =>
      ask('GET /w/{workspace_id}/analytics', { params: { workspace_id }, query: { period } }, { signal }),
  })

interface DayRange {
  readonly from: string | undefined
  readonly to: string | undefined
  readonly account_id: string | undefined
}

export const daysQuery = (workspace_id: string, { from, to, account_id }: DayRange) =>
  queryOptions({
    queryKey: keys.analytics(workspace_id, 'days', from ?? '', to ?? '', account_id ?? ''),
    queryFn: ({ signal }) => {
      const range = from === undefined || to === undefined ? {} : { from, to }
      const query = { ...range, account_id }
      return ask('GET /w/{workspace_id}/analytics/days', { params: { workspace_id }, query }, { signal })
    },
  })
