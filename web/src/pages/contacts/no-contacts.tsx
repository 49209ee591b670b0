/** What the page says while no account knows anyone. */
import { Link } from '@tanstack/react-router'
import { ContactRound } from 'lucide-react'
import { useSession } from '../../place.ts'
import { curlOf } from '../../ui/as-api-text.ts'
import { Button, buttonClass } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Empty } from '../../ui/states.tsx'
import type { Account } from '../accounts/account-queries.ts'

interface NoContactsProps {
  workspace_id: string
  accounts: readonly Account[] | undefined
  onStart: () => void
}

export function NoContacts({ workspace_id, accounts, onStart }: NoContactsProps) {
  const { base_url } = useSession()
  const [account] = accounts ?? []
  const isNone = accounts?.length === 0
  const path = `/contacts?account_id=${account?.id ?? '…'}&q=ines`
  return (
    <div className="mx-auto w-full max-w-2xl overflow-y-auto px-4 py-10">
      <Empty
        icon={ContactRound}
        title={isNone ? 'No account is connected' : 'No contacts yet'}
        action={
          isNone ? (
            <Link
              to="/w/$workspace_id/accounts"
              params={{ workspace_id }}
              className={buttonClass({ kind: 'primary' })}
            >
              Go to Accounts
            </Link>
          ) : (
            <Button kind="primary" onClick={onStart}>
              Start a chat
            </Button>
          )
        }
      >
        <p>
          {isNone
            ? 'Connect the account your team writes from. The people it knows appear here.'
            : 'The people your accounts know appear here. Start a chat by username, or wait until someone writes.'}
        </p>
        <div className="mt-4 text-left">
          <Code label="A program finds people by name" text={curlOf(base_url, { method: 'GET', path })} />
        </div>
      </Empty>
    </div>
  )
}
