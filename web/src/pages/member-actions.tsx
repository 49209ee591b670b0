/** The menu of one member. It loads after the list. */
import { Ellipsis } from 'lucide-react'
import { useSession } from '../place.ts'
import type { Member, Workspace } from '../queries.ts'
import { Menu, MenuItem, MenuLine } from '../ui/menu.tsx'
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
    <Menu
      trigger={
        <button
          type="button"
          aria-label={`Actions for ${member.email}`}
          className="grid size-8 place-items-center rounded-lg text-muted hover:bg-hover hover:text-ink"
        >
          <Ellipsis aria-hidden className="size-4" />
        </button>
      }
    >
      {owner && <MenuItem onSelect={() => onOpen({ what: 'role', member })}>Change role…</MenuItem>}
      {!own && <MenuItem onSelect={() => onOpen({ what: 'link', member })}>New set-up link…</MenuItem>}
      <MenuLine />
      <MenuItem tone="danger" onSelect={() => onOpen({ what: 'remove', member })}>
        {own ? 'Leave this workspace…' : 'Remove…'}
      </MenuItem>
    </Menu>
  )
}
