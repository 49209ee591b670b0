/** Leads to the editor: for a new campaign, or for a copy of one. */
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'

interface EditorLinkProps {
  workspace_id: string
  /** The campaign that the new one begins as a copy of. */
  copy?: string
  className: string
  children: ReactNode
}

export function EditorLink({ workspace_id, copy, className, children }: EditorLinkProps) {
  return (
    <Link
      to="/w/$workspace_id/campaigns/new"
      params={{ workspace_id }}
      search={copy === undefined ? {} : { copy }}
      className={className}
    >
      {children}
    </Link>
  )
}
