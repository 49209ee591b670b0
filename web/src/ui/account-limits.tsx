/** What an account may still do today, and what the platform makes it wait for. */
import { Hourglass, KeyRound, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { type Account, platformName } from '../data/accounts.ts'
import { ClockTime, Countdown } from './time.tsx'

export function Use({ label, of: { used, limit } }: { label: string; of: Account['today']['lookups'] }) {
  return (
    <div>
      <div className="flex justify-between gap-2">
        <span className="text-soft">{label}</span>
        <span>
          <span className="font-medium">{used.toLocaleString('en')}</span>
          {limit !== null && <span className="text-muted"> of {limit.toLocaleString('en')}</span>}
        </span>
      </div>
      {limit !== null && <Meter used={used} limit={limit} />}
    </div>
  )
}

/** The words beside it say the same. */
export function Meter({ used, limit, className = '' }: { used: number; limit: number; className?: string }) {
  const share = limit === 0 ? 0 : Math.min(100, (100 * used) / limit)
  return (
    <div
      aria-hidden
      className={`mt-0.5 h-1.25 overflow-hidden rounded-full bg-chart-rest ${className || 'w-full'}`}
    >
      <div
        className={`h-full rounded-full ${limit > 0 && used >= limit ? 'bg-warn' : 'bg-accent'}`}
        style={{ width: `${share}%` }}
      />
    </div>
  )
}

export function Notes({ account }: { account: Account }) {
  const { status_reason: reason, sends_wait_until: sends, first_messages_stopped_at: stopped } = account
  const platform = platformName(account.platform)
  return (
    <>
      {sends !== null && (
        <Note icon={Hourglass} until={sends}>
          <b className="font-semibold">{platform} asked this account to slow down.</b> Nothing leaves until
          then; what is queued stays queued.
        </Note>
      )}
      {account.lookups_wait_until !== null && (
        <Note icon={Hourglass} until={account.lookups_wait_until}>
          {platform} lets this account look up nobody new until then. Known chats go on.
        </Note>
      )}
      {account.reading_waits_until !== null && (
        <Note icon={Hourglass} until={account.reading_waits_until}>
          {platform} asked this account to read more slowly. Older messages wait until then; sending goes on.
        </Note>
      )}
      {stopped !== null && (
        <Note icon={TriangleAlert}>
          <b className="font-semibold">{platform} stopped its first messages.</b> Answers go on. Enable it
          when its owner has sorted this out.
        </Note>
      )}
      {account.gap_since !== null && (
        <Note icon={TriangleAlert}>
          Messages since <ClockTime at={account.gap_since} /> are being fetched. Campaigns wait for them.
        </Note>
      )}
      {account.login_code_at !== null && (
        <Note icon={KeyRound}>
          {platform} sent this account a login code, or a notice about a login, (
          <ClockTime at={account.login_code_at} />
          ). Nobody of you was logging in? End unknown devices in the app.
        </Note>
      )}
      {reason !== null && <Note icon={TriangleAlert}>{reason}</Note>}
    </>
  )
}

interface NoteProps {
  icon: typeof Hourglass
  until?: string
  children: ReactNode
}

function Note({ icon: Icon, until, children }: NoteProps) {
  return (
    <p className="col-span-full flex items-center gap-2.5 rounded-lg bg-warn-wash px-3.5 py-2">
      <Icon aria-hidden className="size-4 shrink-0 text-warn" />
      <span className="min-w-0 flex-1">{children}</span>
      {until !== undefined && (
        <span className="font-medium text-warn">
          <Countdown until={until} label="Time left" />
        </span>
      )}
    </p>
  )
}

/** Why the account sends nothing now, after its name. */
export function statusWords({ status, not_live_since, status_reason }: Account): ReactNode {
  if (status === 'NEEDS_LOGIN') return 'needs a login.'
  if (status === 'DISABLED') return 'is disabled.'
  if (status === 'RESTRICTED') return 'is restricted by the platform.'
  if (not_live_since !== null) {
    return (
      <>
        is not connected since <ClockTime at={not_live_since} />.{status_reason && ` ${status_reason}`}
      </>
    )
  }
  return 'is connecting.'
}
