/** What the account may still do today, shown before it starts a chat, and what keeps it from doing so. */
import type { ReactNode } from 'react'
import { zoneWords } from '../../../../src/rules/zones.ts'
import type { Account } from '../../data/accounts.ts'
import type { WorkspaceState } from '../../data/chats.ts'
import { Notes, statusWords, Use } from '../../ui/account-limits.tsx'
import { AccountsLink } from '../../ui/accounts-link.tsx'
import { ClosedWords } from '../../ui/closed-page.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { ClockTime } from '../../ui/time.tsx'

export function StartLimits({ account }: { account: Account }) {
  const { first_messages, lookups } = account.today
  return (
    <section aria-label="Limits of today" className="grid gap-1.5">
      <h3 className="flex gap-1 text-xs font-medium text-muted">
        <ExactLine text={account.name} cut /> today
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
        <bdi>{account.name}</bdi> {statusWords(account)} <AccountsLink workspace_id={state.workspace.id} />
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
        <bdi>{account.name}</bdi> has used its {lookups.limit} lookups for today. It continues after midnight,{' '}
        {zoneWords(state.workspace.timezone)}.
      </>
    )
  }
  return undefined
}
