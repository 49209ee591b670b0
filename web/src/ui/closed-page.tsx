/** What a page says while a gate, a role or an allowlist closes it: which one, and who opens it. */
import { Link } from '@tanstack/react-router'
import { Lock } from 'lucide-react'
import type { WorkspaceState } from '../data/chats.ts'
import { useSession } from '../data/place.ts'
import { buttonClass } from './button.tsx'
import { Empty } from './states.tsx'

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

/** The same for the pages of campaigns. */
export function ClosedCampaigns({ closed_by }: { closed_by: ClosedBy }) {
  const title =
    closed_by?.kind === 'role' ? 'Only admins and owners see campaigns' : 'Campaigns are turned off here'
  return <ClosedPage title={title} closed_by={closed_by} />
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
    ? 'You can turn this on as the operator'
    : 'This is turned off here. The operator can turn it on'
  return `${opens} (“${closed_by?.name ?? 'rest'}”).`
}
