/** The dialog that is open on the page of members: add, change a role, a new set-up link, remove or leave. */
import { useSession } from '../place.ts'
import { type Member, useChange, type Workspace } from '../queries.ts'
import { Confirm } from '../ui/dialog.tsx'
import { ChangeRole, Invite, NewLink } from './member-dialogs.tsx'

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

export function Remove({
  member,
  workspace,
  onClose,
}: {
  member: Pick<Member, 'user_id' | 'email'> | undefined
  workspace: Workspace
  onClose: () => void
}) {
  const { user } = useSession()
  const remove = useChange('DELETE /w/{workspace_id}/members/{user_id}', ['members', 'session'])
  const own = member?.user_id === user.id
  const done = () => (own ? location.assign('/dashboard/') : onClose())
  return (
    <Confirm
      open={member !== undefined}
      onClose={onClose}
      title={own ? 'Leave this workspace?' : `Remove ${member?.email ?? ''}?`}
      description="Access and keys in this workspace end within a second. What was done with them stays in the records."
      phrase={own ? workspace.name : (member?.email ?? '')}
      action={own ? 'Leave' : 'Remove'}
      busy={remove.isPending}
      error={remove.error}
      onConfirm={() =>
        member &&
        remove.mutate(
          { params: { workspace_id: workspace.id, user_id: member.user_id } },
          { onSuccess: done },
        )
      }
    />
  )
}
