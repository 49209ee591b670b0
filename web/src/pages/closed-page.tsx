/** What a page says while a gate, a role or an allowlist closes it: which one, and who opens it. */
import { Link } from '@tanstack/react-router'
import { Lock } from 'lucide-react'
import { useSession } from '../place.ts'
import { buttonClass } from '../ui/button.tsx'
import { Empty } from '../ui/states.tsx'
import type { WorkspaceState } from './inbox/inbox-queries.ts'

type ClosedBy = WorkspaceState['capabilities']['pipeline']['closed_by']

export function ClosedPage({ title, closed_by }: { title: string; closed_by: ClosedBy }) {
  const { user } = useSession()
  return (
    <div className="mx-auto w-full max-w-xl px-4 py-10">
      <Empty
        icon={Lock}
        title={title}
        action={
          user.operator && (
            <Link to="/operator" className={buttonClass({ kind: 'primary' })}>
              Go to the gates
            </Link>
          )
        }
      >
        <ClosedWords closed_by={closed_by} />
      </Empty>
    </div>
  )
}

export function ClosedWords({ closed_by }: { closed_by: ClosedBy }) {
  const { user } = useSession()
  if (closed_by?.kind === 'role') return 'Your role does not include it. Ask an owner of this workspace.'
  if (closed_by?.kind === 'allowlist') {
    const who = closed_by.name === 'campaign_user' ? 'You are' : 'This workspace is'
    const changes = user.operator ? 'You can change it as the operator.' : 'The operator can change it.'
    return `${who} not on the operator’s list of those who may run campaigns. ${changes}`
  }
  const opens = user.operator
    ? 'You can open it as the operator.'
    : 'The operator of this instance can open it.'
  return `The ${closed_by?.kind ?? 'gate'} “${closed_by?.name ?? 'rest'}” is closed. ${opens}`
}
