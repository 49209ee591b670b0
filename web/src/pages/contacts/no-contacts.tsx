/** What the page says while no account knows anyone. */
import { ContactRound } from 'lucide-react'
import type { Account } from '../../data/accounts.ts'

import { AccountsLink } from '../../ui/accounts-link.tsx'
import { AsApi } from '../../ui/as-api.tsx'
import { Button } from '../../ui/button.tsx'

import { Empty } from '../../ui/states.tsx'

interface NoContactsProps {
  workspace_id: string
  accounts: readonly Account[] | undefined
  onStart: () => void
}

export function NoContacts({ workspace_id, accounts, onStart }: NoContactsProps) {
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
            <AccountsLink workspace_id={workspace_id} button />
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
        <div className="mt-4">
          <AsApi of="The contacts" requests={[{ does: 'Find people by name', method: 'GET', path }]} />
        </div>
      </Empty>
    </div>
  )
}
