/** What the page says without a board: no account is connected, or there are no chats yet. */
import { Link } from '@tanstack/react-router'
import { Columns3 } from 'lucide-react'
import { useSession } from '../../place.ts'
import { curlOf } from '../../ui/as-api-text.ts'
import { buttonClass } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Empty } from '../../ui/states.tsx'
import type { Account } from '../accounts/account-queries.ts'
import type { BoardStage } from './pipeline-queries.ts'

interface EmptyProps {
  workspace_id: string
  /** Undefined while they are read. */
  accounts: readonly Account[] | undefined
  stages: readonly BoardStage[]
}

export function EmptyPipeline({ workspace_id, accounts, stages }: EmptyProps) {
  const { base_url } = useSession()
  const none = accounts?.length === 0
  const [account] = accounts ?? []
  const names = stages.filter(({ hidden }) => !hidden).map(({ key }) => key)
  const body = { account_id: account?.id ?? '…', chat_id: '…', stage_key: names.at(1) ?? 'new' }
  return (
    <div className="mx-auto w-full max-w-2xl overflow-y-auto px-4 py-10">
      <Empty
        icon={Columns3}
        title={none ? 'No account is connected' : 'No chats yet'}
        action={
          <Link
            to="/w/$workspace_id/accounts"
            params={{ workspace_id }}
            className={buttonClass({ kind: 'primary' })}
          >
            Go to Accounts
          </Link>
        }
      >
        <p>
          {none
            ? 'Connect the account your team writes from. Each of its chats begins in the first stage, and you move it on from there.'
            : 'Each chat begins in the first stage, and you move it on from there. Write to your account from your phone, and it appears here.'}
        </p>
        <div className="mt-4 text-left">
          <Code
            label="A program moves a chat"
            text={curlOf(base_url, { method: 'POST', path: '/pipeline/move', body })}
          />
        </div>
      </Empty>
    </div>
  )
}
