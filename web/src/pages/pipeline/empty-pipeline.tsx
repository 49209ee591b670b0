/** What the page says without a board: the gate is closed, or there are no chats yet. */
import { Link } from '@tanstack/react-router'
import { Columns3, Lock } from 'lucide-react'
import { useSession } from '../../place.ts'
import { buttonClass } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Empty } from '../../ui/states.tsx'
import type { WorkspaceState } from '../inbox/inbox-queries.ts'
import type { BoardStage } from './pipeline-queries.ts'

type ClosedBy = WorkspaceState['capabilities']['pipeline']['closed_by']

export function ClosedPipeline({ closed_by }: { closed_by: ClosedBy }) {
  const { user } = useSession()
  const name = closed_by?.name ?? 'pipeline'
  return (
    <div className="mx-auto w-full max-w-xl px-4 py-10">
      <Empty
        icon={Lock}
        title="The pipeline is closed"
        action={
          user.operator && (
            <Link to="/gates" className={buttonClass({ kind: 'primary' })}>
              Go to Gates
            </Link>
          )
        }
      >
        {closed_by?.kind === 'role' ? (
          'Your role does not include it. Ask an owner of this workspace.'
        ) : (
          <>
            The {closed_by?.kind ?? 'gate'} “{name}” is closed.{' '}
            {user.operator
              ? 'You can open it as the operator.'
              : 'The operator of this instance can open it.'}
          </>
        )}
      </Empty>
    </div>
  )
}

interface EmptyProps {
  workspace_id: string
  /** No account is connected. */
  none: boolean
  stages: readonly BoardStage[]
}

export function EmptyPipeline({ workspace_id, none, stages }: EmptyProps) {
  const names = stages.filter(({ hidden }) => !hidden).map(({ key }) => key)
  const example = [
    `curl ${location.origin}/api/v1/pipeline/move \\`,
    `  -H "Authorization: Bearer $PARLEY_API_KEY" -H "Content-Type: application/json" \\`,
    `  -d '{"account_id": "…", "chat_id": "…", "stage_key": "${names.at(1) ?? 'new'}"}'`,
  ].join('\n')
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
          <Code label="A program moves a chat" text={example} />
        </div>
      </Empty>
    </div>
  )
}
