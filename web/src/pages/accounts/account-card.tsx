/** One account: who it is and its state, today's usage, its last 30 days, and what needs a person. */
import { QrCode } from 'lucide-react'
import type { ReactNode } from 'react'
import { type Account, platformName } from '../../data/accounts.ts'
import { useChange } from '../../data/queries.ts'
import { Meter, Notes, Use } from '../../ui/account-limits.tsx'
import { AsApi } from '../../ui/as-api.tsx'
import type { ApiRequest } from '../../ui/as-api-text.ts'
import { Button } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Failure } from '../../ui/notice.tsx'
import { ClockTime, Time } from '../../ui/time.tsx'
import { offersEnable } from './account-acts.ts'
import type { OpenDialog } from './account-dialogs.tsx'

interface CardProps {
  account: Account
  workspace_id: string
  admin: boolean
  selected: boolean
  /** The first one of the page that needs a login. */
  first: boolean
  onLogin: () => void
  onOpen: (what: Exclude<OpenDialog['what'], 'connect'>) => void
}

export function AccountCard({ account, admin, selected, ...actions }: CardProps) {
  return (
    <article
      aria-label={account.name}
      className={`grid gap-x-5 gap-y-3 rounded-xl bg-surface px-4 py-3.5 ring-1 xl:grid-cols-[minmax(0,1fr)_minmax(0,1.16fr)_160px]
        ${selected ? 'ring-2 ring-accent' : 'ring-line'}`}
    >
      <div className="min-w-0">
        <h2 className="truncate text-base font-semibold">
          <ExactLine text={account.name} cut />
        </h2>
        <p className="truncate text-muted">{identityOf(account)}</p>
        <StateLine account={account} />
        <div className="mt-2 -ml-2.5 flex flex-wrap gap-1">
          {admin && <Actions account={account} {...actions} />}
          <AsApi of="This account" label={account.name} requests={requestsOf(account.id)} />
        </div>
      </div>
      <Today account={account} />
      <ThirtyDays account={account} />
      <Notes account={account} />
    </article>
  )
}

function identityOf({ platform, platform_user: user, proxy }: Account): string {
  const name = user && (user.username === null ? (user.phone ?? `User ${user.id}`) : `@${user.username}`)
  return [name, platformName(platform), proxy && `through ${proxy}`].filter(Boolean).join(', ')
}

type Tone = 'ok' | 'warn' | 'plain'

const dots: Readonly<Record<Tone, string>> = {
  ok: 'bg-accent shadow-[0_0_0_3px_var(--accent-wash)]',
  warn: 'bg-warn',
  plain: 'bg-line-strong',
}

function StateLine({ account }: { account: Account }) {
  const { sync } = account
  const isSyncing = account.live && sync.phase !== 'done' && sync.total !== null
  const [tone, words] = stateOf(account)
  return (
    <>
      <p className="mt-2 flex items-center gap-2.5">
        <span aria-hidden className={`size-1.75 shrink-0 rounded-full ${dots[tone]}`} />
        <span>{words}</span>
      </p>
      {isSyncing && (
        <div className="mt-1.5 flex items-center gap-2.5">
          <Meter used={sync.done ?? 0} limit={sync.total ?? 0} className="w-9" />
          <span className="text-muted">
            {sync.phase === 'history' ? 'History' : 'Chats'}, {sync.done ?? 0} of {sync.total}
          </span>
        </div>
      )}
    </>
  )
}

function stateOf(account: Account): readonly [Tone, ReactNode] {
  const { status, live, not_live_since: since, sends_wait_until: until } = account
  if (status === 'DISABLED') return ['plain', 'Disabled']
  if (status === 'NEEDS_LOGIN') return ['warn', 'Needs a login']
  if (status === 'RESTRICTED') return ['warn', 'Restricted']
  if (until !== null) {
    return [
      'warn',
      <>
        Waits until <ClockTime at={until} />
      </>,
    ]
  }
  if (live) return ['ok', status === 'READY' ? 'Ready' : 'Connecting']
  if (since === null) return ['plain', 'Connecting']
  return [
    'warn',
    <>
      Not connected since <ClockTime at={since} />
    </>,
  ]
}

export const needsLogin = ({ status, platform }: Account) =>
  status === 'NEEDS_LOGIN' && platform !== 'sandbox'

/** Enabling and disabling can be undone, so neither asks first. */
function Actions({ account, workspace_id, first, onLogin, onOpen }: Omit<CardProps, 'admin' | 'selected'>) {
  const { id, status, platform } = account
  const enable = useChange('POST /w/{workspace_id}/accounts/{account_id}/enable', ['accounts'])
  const disable = useChange('POST /w/{workspace_id}/accounts/{account_id}/disable', ['accounts'])
  const params = { workspace_id, account_id: id }
  return (
    <>
      {needsLogin(account) && (
        <Button kind={first ? 'primary' : 'secondary'} size="small" className="ml-2.5" onClick={onLogin}>
          <QrCode aria-hidden className="size-3.5" />
          Log in
        </Button>
      )}
      {offersEnable(account) && (
        <Button
          size="small"
          className="ml-2.5"
          busy={enable.isPending}
          onClick={() => enable.mutate({ params })}
        >
          Enable
        </Button>
      )}
      <Button kind="quiet" size="small" onClick={() => onOpen('edit')}>
        Edit
      </Button>
      {status !== 'DISABLED' && (
        <Button kind="quiet" size="small" busy={disable.isPending} onClick={() => disable.mutate({ params })}>
          Disable
        </Button>
      )}
      {platform !== 'sandbox' && status !== 'NEEDS_LOGIN' && (
        <Button kind="quiet" size="small" onClick={() => onOpen('logout')}>
          Log out
        </Button>
      )}
      <Failure error={enable.error ?? disable.error} />
    </>
  )
}

const requestsOf = (account_id: string): readonly ApiRequest[] => [
  { does: 'List its chats', method: 'GET', path: `/chats?account_id=${account_id}` },
  { does: 'Find its contacts by name', method: 'GET', path: `/contacts?account_id=${account_id}&q=ines` },
  { does: 'See its status among all accounts', method: 'GET', path: '/me' },
]

function Today({ account: { today, waiting } }: { account: Account }) {
  return (
    <div>
      <h3 className="mb-1.5 text-xs font-medium text-muted">Today</h3>
      <div className="grid gap-1.5">
        <Use label="Campaign messages" of={today.campaign_messages} />
        <Use label="To people who never wrote" of={today.first_messages} />
        <Use label="Names looked up" of={today.lookups} />
      </div>
      {waiting.map(({ campaign_id, name, recipients }) => (
        <p key={campaign_id} className="mt-1.5 text-xs text-muted">
          {recipients === 1 ? '1 person' : `${recipients.toLocaleString('en')} people`} of{' '}
          <bdi>{name ?? 'a campaign'}</bdi> {recipients === 1 ? 'waits' : 'wait'} for it
        </p>
      ))}
    </div>
  )
}

function ThirtyDays({ account: { sent_per_day: days, strikes } }: { account: Account }) {
  const total = days.reduce((sum, each) => sum + each, 0)
  const most = Math.max(1, ...days)
  const bars = days.map((sent, index) => ({ sent, daysAgo: days.length - 1 - index }))
  const words = `${days.length} days, ${total.toLocaleString('en')} ${total === 1 ? 'message' : 'messages'}`
  return (
    <div className="max-w-60">
      <h3 className="mb-1.5 text-xs font-medium text-muted">{words}</h3>
      <div
        role="img"
        aria-label={`Messages of each day, the last is today: ${days.join(', ')}`}
        className="flex h-8.5 items-end gap-0.5"
      >
        {bars.map(({ sent, daysAgo }) => (
          <span
            key={daysAgo}
            className="min-w-0 flex-1 rounded-[1px] bg-chart-1/55"
            style={{ height: `${Math.max(6, (100 * sent) / most)}%` }}
          />
        ))}
      </div>
      <Strikes strikes={strikes} />
    </div>
  )
}

const strikeWords: Readonly<Record<string, string>> = {
  flood_wait: 'Slowed down',
  peer_flood: 'First messages stopped',
  needs_login: 'Signed out',
  restricted: 'Restricted',
  blocked_by_person: 'Blocked by a person',
}

/** The newest of each kind. */
function Strikes({ strikes }: Pick<Account, 'strikes'>) {
  const newest = [...new Map(strikes.toReversed().map((strike) => [strike.kind, strike])).values()]
  if (newest.length === 0) return <p className="mt-1.5 text-xs text-muted">No restrictions</p>
  return newest.map(({ kind, at }) => (
    <p key={kind} className="mt-1.5 text-xs text-muted">
      {strikeWords[kind] ?? kind.replaceAll('_', ' ')} <Time at={at} />
      {strikes.filter((strike) => strike.kind === kind).length > 1 &&
        `, ${strikes.filter((strike) => strike.kind === kind).length} times in 30 days`}
    </p>
  ))
}
