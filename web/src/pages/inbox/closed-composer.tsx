/** Why nothing can be sent in this chat right now, who can change that, and where. */
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ClockTime } from '../../ui/time.tsx'
import type { Account } from '../accounts/account-queries.ts'
import type { WorkspaceState } from './inbox-queries.ts'

export function closedBecause(state: WorkspaceState | undefined, account: Account | undefined): ReactNode {
  const send = state?.capabilities.send
  if (send && !send.open) return gateWords(send.closed_by)
  if (state && !state.dispatch.on) {
    return `${state.dispatch.reason ?? 'Sending is switched off on this instance.'} Your draft is kept.`
  }
  if (!state || !account || account.status === 'READY') return undefined
  return (
    <>
      <bdi>{account.name}</bdi> {statusWords(account)} Your draft is kept.{' '}
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

function gateWords(closed_by: WorkspaceState['capabilities']['send']['closed_by']): string {
  if (closed_by?.kind === 'gate') {
    return `The gate “${closed_by.name}” is closed. The operator of this instance can open it. Your draft is kept.`
  }
  if (closed_by?.kind === 'role')
    return 'Your role can read here, but not send. Ask an owner of this workspace.'
  return 'Sending is switched off for this workspace. Ask the operator of this instance. Your draft is kept.'
}

export function statusWords({ status, not_live_since }: Account): ReactNode {
  if (status === 'NEEDS_LOGIN') return 'needs a login.'
  if (status === 'DISABLED') return 'is disabled.'
  if (status === 'RESTRICTED') return 'is restricted by the platform.'
  if (not_live_since !== null) {
    return (
      <>
        is not connected since <ClockTime at={not_live_since} />.
      </>
    )
  }
  return 'is connecting.'
}
