/** What the account may still do today, shown before it starts a chat, and what keeps it from doing so. */
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ClockTime } from '../../ui/time.tsx'
import { Notes, Use } from '../accounts/account-limits.tsx'
import type { Account } from '../accounts/account-queries.ts'
import { ClosedWords } from '../closed-page.tsx'
import { statusWords } from '../inbox/closed-composer.tsx'
import type { WorkspaceState } from '../inbox/inbox-queries.ts'

export function StartLimits({ account }: { account: Account }) {
  const { first_messages, lookups } = account.today
  return (
    <section aria-label="Limits of today" className="grid gap-1.5">
      <h3 className="truncate text-xs font-medium text-muted">
        <bdi>{account.name}</bdi> today
      </h3>
      <Use label="Names looked up" of={lookups} />
      <Use label="To people who never wrote" of={first_messages} />
      <Notes account={account} />
    </section>
  )
}

/** Undefined: it may start. */
export function whyNotStart(state: WorkspaceState | undefined, account: Account | undefined): ReactNode {
  if (!state || !account) return 'Reading the limits of the account…'
  const { start_chat } = state.capabilities
  if (!start_chat.open) return <ClosedWords closed_by={start_chat.closed_by} />
  if (!state.dispatch.on) {
    const { reason } = state.dispatch
    return `Sending is switched off on this instance${reason === null ? '' : ` (${reason})`}.`
  }
  const { lookups } = account.today
  if (account.status !== 'READY' || !account.live) {
    return (
      <>
        <bdi>{account.name}</bdi> {statusWords(account)}{' '}
        <Link
          to="/w/$workspace_id/accounts"
          params={{ workspace_id: state.workspace.id }}
          className="whitespace-nowrap underline decoration-line-strong underline-offset-3"
        >
          Go to Accounts
        </Link>
      </>
    )
  }
  const until = account.lookups_wait_until ?? account.sends_wait_until
  if (until !== null) {
    return (
      <>
        The platform asked <bdi>{account.name}</bdi> to wait until <ClockTime at={until} />.
      </>
    )
  }
  if (lookups.limit !== null && lookups.used >= lookups.limit) {
    return (
      <>
        <bdi>{account.name}</bdi> has looked up its {lookups.limit} for today. It goes on after midnight in{' '}
        {state.workspace.timezone}.
      </>
    )
  }
  return undefined
}
