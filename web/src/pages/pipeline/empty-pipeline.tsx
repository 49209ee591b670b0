/** What the page says without a board: no account is connected, or there are no chats yet. */
import { Columns3 } from 'lucide-react'
import type { Account } from '../../data/accounts.ts'
import type { BoardStage } from '../../data/pipeline.ts'

import { AccountsLink } from '../../ui/accounts-link.tsx'
import { AsApi } from '../../ui/as-api.tsx'

import { Empty } from '../../ui/states.tsx'

interface EmptyProps {
  workspace_id: string
  /** Undefined while they are read. */
  accounts: readonly Account[] | undefined
  stages: readonly BoardStage[]
}

export function EmptyPipeline({ workspace_id, accounts, stages }: EmptyProps) {
  const none = accounts?.length === 0
  const [account] = accounts ?? []
  const names = stages.filter(({ hidden }) => !hidden).map(({ key }) => key)
  const body = { account_id: account?.id ?? '…', chat_id: '…', stage_key: names.at(1) ?? 'new' }
  return (
    <div className="mx-auto w-full max-w-2xl overflow-y-auto px-4 py-10">
      <Empty
        icon={Columns3}
        title={none ? 'No account is connected' : 'No chats yet'}
        action={<AccountsLink workspace_id={workspace_id} button />}
      >
        <p>
          {none
            ? 'Connect the account your team writes from. Each of its chats begins in the first stage, and you move it on from there.'
            : 'Each chat begins in the first stage, and you move it on from there. Write to your account from your phone, and it appears here.'}
        </p>
        <div className="mt-4">
          <AsApi
            of="The pipeline"
            requests={[{ does: 'Move a chat', method: 'POST', path: '/pipeline/move', body }]}
          />
        </div>
      </Empty>
    </div>
  )
}
