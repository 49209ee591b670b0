/** The dialog that is open on the page of members: add, change a role, a new set-up link, remove or leave. */
import type { Member, Workspace } from '../../data/queries.ts'
import { ChangeRole, Invite, NewLink } from './member-dialogs.tsx'
import { Remove } from './remove-member.tsx'

export type MemberDialog = { what: 'invite' } | { what: 'role' | 'link' | 'remove'; member: Member }

interface DialogsProps {
  open: MemberDialog | undefined
  onClose: () => void
  workspace: Workspace
}

export function Dialogs({ open, onClose, workspace }: DialogsProps) {
  const given = { workspace, onClose }
  return (
    <>
      <Invite {...given} open={open?.what === 'invite'} />
      <ChangeRole {...given} member={open?.what === 'role' ? open.member : undefined} />
      <NewLink {...given} member={open?.what === 'link' ? open.member : undefined} />
      <Remove {...given} member={open?.what === 'remove' ? open.member : undefined} />
    </>
  )
}
