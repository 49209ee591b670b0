/** The accounts of a workspace: what each may still do today, its strikes, what it needs. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Plus, Smartphone } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { type Accounts, accountsQuery } from '../../data/accounts.ts'
import { useHere } from '../../data/place.ts'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Page } from '../../ui/page.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { AccountCard, needsLogin } from './account-card.tsx'
import type { OpenDialog } from './account-dialogs.tsx'

/** Loaded when the first one is opened, then kept for their animation. */
const AccountDialogs = lazy(async () => ({ default: (await import('./account-dialogs.tsx')).AccountDialogs }))
const LoginDrawer = lazy(async () => ({ default: (await import('./login-drawer.tsx')).LoginDrawer }))

export function AccountsPage() {
  const workspace = useHere()
  const { login } = useSearch({ from: '/inside/w/$workspace_id/accounts' })
  const navigate = useNavigate()
  const query = useQuery(accountsQuery(workspace.id))
  const [dialog, setDialog] = useState<OpenDialog | null>()
  const admin = workspace.role !== 'member'
  const showLogin = (id: string | undefined) =>
    navigate({
      to: '/w/$workspace_id/accounts',
      params: { workspace_id: workspace.id },
      search: id === undefined ? {} : { login: id },
    })
  const loggingIn = query.data?.accounts.find(({ id }) => id === login)
  /** The one that the page leads to first. */
  const first = query.data?.accounts.find(needsLogin)
  const connect = admin && (query.data?.accounts.length ?? 0) > 0 && (
    <Button size="small" onClick={() => setDialog({ what: 'connect' })}>
      <Plus aria-hidden className="size-3.5" />
      Connect an account
    </Button>
  )
  return (
    <div className="min-h-dvh bg-canvas lg:flex">
      <div className="min-w-0 flex-1">
        <Page
          title="Accounts"
          about={query.data && `A day ends at midnight in ${query.data.timezone}`}
          action={connect}
        >
          <Loaded query={query}>
            {(data) =>
              data.accounts.length === 0 ? (
                <NoAccounts data={data} admin={admin} onConnect={() => setDialog({ what: 'connect' })} />
              ) : (
                <ul className="grid gap-3">
                  {data.accounts.map((account) => (
                    <li key={account.id}>
                      <AccountCard
                        account={account}
                        workspace_id={workspace.id}
                        admin={admin}
                        selected={account.id === login}
                        first={account === first}
                        onLogin={() => void showLogin(account.id)}
                        onOpen={(what) => setDialog({ what, account })}
                      />
                    </li>
                  ))}
                </ul>
              )
            }
          </Loaded>
        </Page>
      </div>
      <Suspense>
        {loggingIn && admin && (
          <LoginDrawer
            key={loggingIn.id}
            account={loggingIn}
            workspace_id={workspace.id}
            onClose={() => void showLogin(undefined)}
          />
        )}
        {dialog !== undefined && (
          <AccountDialogs
            open={dialog ?? undefined}
            platforms={query.data?.platforms ?? []}
            workspace_id={workspace.id}
            onClose={() => setDialog(null)}
            onCreated={(id) => void showLogin(id)}
          />
        )}
      </Suspense>
    </div>
  )
}

interface NoAccountsProps {
  data: Accounts
  admin: boolean
  onConnect: () => void
}

/** Says what is missing: a platform, an admin, or only the first account. */
function NoAccounts({ data, admin, onConnect }: NoAccountsProps) {
  if (!data.platforms.includes('telegram')) {
    return (
      <Empty icon={Smartphone} title="Telegram is not configured">
        <p>
          The operator of this instance registers it at my.telegram.org, under “API development tools”, sets
          these two variables for every worker and starts it again.
        </p>
        <div className="mt-4 text-left">
          <Code
            label="Environment of the workers"
            text={'PARLEY_TELEGRAM_API_ID=12345\nPARLEY_TELEGRAM_API_HASH=…'}
          />
        </div>
      </Empty>
    )
  }
  return (
    <Empty
      icon={Smartphone}
      title="No account is connected"
      action={
        admin && (
          <Button kind="primary" onClick={onConnect}>
            <Plus aria-hidden className="size-4" />
            Connect an account
          </Button>
        )
      }
    >
      {admin
        ? 'Connect the Telegram account your team writes from. You need its phone at hand.'
        : 'An admin or owner of this workspace can connect one.'}
    </Empty>
  )
}
