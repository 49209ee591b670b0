/** Who, from which account, and what: with the number of recipients and its cap before the button. */

import { useQuery } from '@tanstack/react-query'
import { Megaphone } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { findPlaceholders } from '../../../../src/rules/placeholders.ts'
import { accountsQuery } from '../../data/accounts.ts'
import { ask } from '../../data/api.ts'
import type { BroadcastRequest } from '../../data/api-types.ts'
import { type AudienceFilter, isFiltered, noFilter, reachQuery } from '../../data/audience.ts'
import { keys } from '../../data/keys.ts'
import { useSession } from '../../data/place.ts'
import { queryClient, type Workspace } from '../../data/queries.ts'
import { useKept } from '../../data/use-kept.ts'
import { useStartForm } from '../../data/use-start-form.ts'
import { AudienceFilters } from '../../ui/audience-filters.tsx'
import { Button, ShowThem } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Failure } from '../../ui/notice.tsx'
import { cardClass, PlaceholderText } from '../../ui/placeholder-text.tsx'
import { faultOfText } from '../../ui/placeholders.ts'
import { StartNotices } from '../../ui/start-notices.tsx'

const ConfirmBroadcast = lazy(async () => ({
  default: (await import('./confirm-broadcast.tsx')).ConfirmBroadcast,
}))

interface BroadcastDraft {
  readonly filter: AudienceFilter
  readonly text: string
}

const empty: BroadcastDraft = { filter: noFilter, text: '' }

export function BroadcastForm({ workspace, onDone }: { workspace: Workspace; onDone: (id: string) => void }) {
  const { user } = useSession()
  const place = { user_id: user.id, workspace_id: workspace.id, kind: 'form', of: 'broadcast' } as const
  const form = useKept<BroadcastDraft>(place, empty)
  const { text } = form.kept.value
  const filter = useOnlyAccount(workspace.id, form.kept.value.filter)
  const [isAsked, setAsked] = useState(false)
  const start = useStartForm(form, {
    ask: (body, key) =>
      ask(
        'POST /w/{workspace_id}/broadcast',
        { params: { workspace_id: workspace.id }, body: body as BroadcastRequest },
        { key },
      ),
    onDone: ({ broadcast_id }) => {
      void queryClient.invalidateQueries({ queryKey: keys.campaigns(workspace.id) })
      onDone(broadcast_id)
    },
    onRefused: () => setAsked(false),
  })
  const reach = useReach(workspace.id, filter, text)
  const fault = faultOfText(text, 'braces', reach.data?.people ?? [])
  const count = reach.data?.broadcast?.recipients ?? 0
  const isReady = reach.isCurrent && count > 0 && text.trim() !== '' && fault === undefined
  const name = useAccountName(workspace.id, filter.account_id)
  return (
    <fieldset disabled={start.busy || !form.isLoaded} className="grid max-w-[72ch] min-w-0 gap-3">
      <legend className="sr-only">A new broadcast</legend>
      <StartNotices start={start} thing="broadcast" />
      <AudienceFilters
        workspace={workspace}
        filter={filter}
        anyAccount="Choose an account"
        set={(more) => form.change((each) => ({ ...each, filter: oneAudience(each.filter, more) }))}
      />
      <Reach filter={filter} reach={reach} />
      <div className={cardClass}>
        <h2 className="px-3.5 pb-0.5 pt-2.5 font-semibold">Message</h2>
        <PlaceholderText
          label="Message"
          value={text}
          form="braces"
          fault={fault}
          hint="Write the message"
          onChange={(next) => form.change((each) => ({ ...each, text: next }))}
        />
      </div>
      <div className="flex flex-wrap items-center gap-3">
        <Button kind="primary" busy={start.busy} disabled={!isReady} onClick={() => setAsked(true)}>
          <Megaphone aria-hidden className="size-4" />
          Send to {count.toLocaleString('en')} {count === 1 ? 'person' : 'people'}
        </Button>
        <p className="text-xs text-muted">Everyone gets one message. You can’t unsend it.</p>
      </div>
      {isAsked && (
        <Suspense>
          <ConfirmBroadcast
            count={count}
            account={name}
            busy={start.busy}
            onClose={() => setAsked(false)}
            onConfirm={() => void start.start(bodyOf(filter, text)).then(() => setAsked(false))}
          />
        </Suspense>
      )}
    </fieldset>
  )
}

/** A broadcast has a stage or a column, never both. */
function oneAudience(filter: AudienceFilter, more: Partial<AudienceFilter>): AudienceFilter {
  const noColumn = more.stage_key && { column_id: null, column_value: null }
  const noStage = more.column_id && { stage_key: null }
  return { ...filter, ...more, ...noColumn, ...noStage }
}

function bodyOf(
  { account_id, stage_key, column_id, column_value }: AudienceFilter,
  text: string,
): BroadcastRequest {
  const audience =
    stage_key === null
      ? { audience_type: 'column' as const, audience_ref: column_id ?? '', column_value: column_value ?? '' }
      : { audience_type: 'stage' as const, audience_ref: stage_key }
  return { account_id: account_id ?? '', ...audience, message_text: text }
}

/** Where there is only one account, it is the one. */
function useOnlyAccount(workspace_id: string, filter: AudienceFilter): AudienceFilter {
  const { data } = useQuery(accountsQuery(workspace_id))
  const only = data?.accounts.length === 1 ? (data.accounts[0]?.id ?? null) : null
  return filter.account_id === null && only !== null ? { ...filter, account_id: only } : filter
}

function useAccountName(workspace_id: string, account_id: string | null): string {
  const { data } = useQuery(accountsQuery(workspace_id))
  return data?.accounts.find(({ id }) => id === account_id)?.name ?? ''
}

function useReach(workspace_id: string, filter: AudienceFilter, text: string) {
  const needsName = findPlaceholders(text, 'braces').known.some(({ fallback }) => fallback === undefined)
  const isChosen = filter.account_id !== null && isFiltered(filter)
  const query = useQuery({
    ...reachQuery(workspace_id, filter, needsName),
    enabled: isChosen,
    placeholderData: (before) => before,
  })
  return {
    data: isChosen ? query.data : undefined,
    error: isChosen ? query.error : undefined,
    isCurrent: isChosen && query.data !== undefined && !query.isPlaceholderData && !query.error,
  }
}

const leftOutWords = {
  not_ready: 'the account is not ready',
  no_person: 'not a person who can receive messages',
  suppressed: 'on the suppression list',
  nameless: 'no name, which the text needs',
} as const

function Reach({ filter, reach }: { filter: AudienceFilter; reach: ReturnType<typeof useReach> }) {
  const [shows, setShows] = useState(false)
  if (reach.error) return <Failure error={reach.error} />
  if (filter.account_id === null || !isFiltered(filter)) {
    return <p className="text-muted">Choose an account, and a stage or a column.</p>
  }
  if (!reach.data) return <p aria-busy className="h-5" />
  const { broadcast, counts, people } = reach.data
  if (!broadcast) return <p className="text-muted">No broadcast can be sent to this stage.</p>
  const out = Object.entries(counts.left_out).filter(([, count]) => count > 0)
  const those = people.filter(({ reason }) => reason === null).slice(0, broadcast.recipients)
  return (
    <div className="grid gap-1">
      <p>
        <b className="font-semibold">
          {broadcast.recipients} {broadcast.recipients === 1 ? 'person' : 'people'}
        </b>{' '}
        <span className="text-muted">
          of at most {broadcast.max}
          {broadcast.capped && `: the most recent of ${counts.can_receive.toLocaleString('en')}`}
        </span>
        {those.length > 0 && (
          <>
            {' · '}
            <ShowThem who="who gets it" shown={shows} onShow={setShows} />
          </>
        )}
      </p>
      {out.map(([reason, count]) => (
        <p key={reason} className="text-xs text-muted">
          {count} left out: {leftOutWords[reason as keyof typeof leftOutWords]}
        </p>
      ))}
      {shows && (
        <ul aria-label="Who gets it" className="columns-2 gap-6 sm:columns-3">
          {those.map(({ account_id, chat_id, name }) => (
            <li key={`${account_id} ${chat_id}`} className="truncate">
              <ExactLine text={name} empty="No name" cut />
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
