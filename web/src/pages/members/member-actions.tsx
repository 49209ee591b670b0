/** The menu of one member. It loads after the list. */
import { useSession } from '../../data/place.ts'
import type { Member, Workspace } from '../../data/queries.ts'
import { ActionsMenu, MenuItem, MenuLine } from '../../ui/menu.tsx'
import type { MemberDialog } from './open-member-dialog.tsx'

interface ActionsProps {
  of: Member
  workspace: Workspace
  onOpen: (open: MemberDialog) => void
}

/** Admins may do everything except change an owner. Only owners change roles. */
export function Actions({ of: member, workspace, onOpen }: ActionsProps) {
  const { user } = useSession()
  const owner = workspace.role === 'owner'
  const own = member.user_id === user.id
  if (!owner && (workspace.role === 'member' || member.role === 'owner')) return null
  return (
    <ActionsMenu of={member.email}>
      {owner && <MenuItem onSelect={() => onOpen({ what: 'role', member })}>Change role…</MenuItem>}
      {!own && <MenuItem onSelect={() => onOpen({ what: 'link', member })}>New set-up link…</MenuItem>}
      <MenuLine />
      <MenuItem tone="danger" onSelect={() => onOpen({ what: 'remove', member })}>
        {own ? 'Leave this workspace…' : 'Remove…'}
      </MenuItem>
    </ActionsMenu>
  )
}
