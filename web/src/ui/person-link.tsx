/** Leads to everything that is known about a person, from wherever one of their names or chats is shown. */
import { Link } from '@tanstack/react-router'
import { UserRound } from 'lucide-react'
import type { ReactNode } from 'react'
import { buttonClass } from './button.tsx'

interface PersonLinkProps {
  workspace_id: string
  /** A name, phone number, id of a chat: what `GET /people` takes. */
  q: string
  children?: ReactNode
}

/** Their page opens at once where the name means one person only. */
export function PersonLink({ workspace_id, q, children = 'About this person' }: PersonLinkProps) {
  return (
    <Link
      to="/w/$workspace_id/people"
      params={{ workspace_id }}
      search={{ q, open: true }}
      className={buttonClass({ size: 'small' })}
    >
      <UserRound aria-hidden className="size-3.5" />
      {children}
    </Link>
  )
}
