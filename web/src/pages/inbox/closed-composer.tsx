/** Why nothing can be sent in this chat right now, who can change that, and where. */

import type { ReactNode } from 'react'
import type { Account } from '../../data/accounts.ts'
import type { WorkspaceState } from '../../data/chats.ts'
import { statusWords } from '../../ui/account-limits.tsx'
import { AccountsLink } from '../../ui/accounts-link.tsx'

export function closedBecause(state: WorkspaceState | undefined, account: Account | undefined): ReactNode {
  const send = state?.capabilities.send
  if (send && !send.open) return gateWords(send.closed_by)
  if (state && !state.dispatch.on) {
    return `${state.dispatch.reason ?? 'Sending is switched off on this instance.'} Your draft is kept.`
  }
  if (!state || !account || (account.status === 'READY' && !isAbandoned(account))) return undefined
  return (
    <>
      <bdi>{account.name}</bdi> {statusWords(account)} Your draft is kept.{' '}
      <AccountsLink workspace_id={state.workspace.id} />
    </>
  )
}

function gateWords(closed_by: WorkspaceState['capabilities']['send']['closed_by']): string {
  if (closed_by?.kind === 'gate') {
    return `Sending is turned off here. The operator can turn it on (“${closed_by.name}”). Your draft is kept.`
  }
  if (closed_by?.kind === 'role')
    return 'Your role can read here, but not send. Ask an owner of this workspace.'
  return 'Sending is switched off for this workspace. Ask the operator of this instance. Your draft is kept.'
}

/** READY, but no worker drives it. One that changes hands is not: its messages wait for the next worker. */
function isAbandoned({ live, status_reason }: Account): boolean {
  return !live && status_reason !== null
}
