/** Where the user is: the workspace that the menu shows on pages that belong to none, and where a sign-in returns to. */

import { useSuspenseQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { type Session, sessionQuery, type Workspace } from './queries.ts'

const name = 'parley.workspace'

export function rememberWorkspace(id: string): void {
  localStorage.setItem(name, id)
}

/** The workspace that the user opened last, else the first; a disabled one only if there is no other. */
export function lastWorkspace({ workspaces }: Session): Workspace | undefined {
  const isOpen = ({ disabled_at }: Workspace) => disabled_at === null
  return (
    workspaces.find((each) => each.id === localStorage.getItem(name) && isOpen(each)) ??
    workspaces.find(isOpen) ??
    workspaces[0]
  )
}

export function useSession(): Session {
  return useSuspenseQuery(sessionQuery).data
}

/** The workspace in the address, else the last one the user opened, else the first. */
export function useWorkspace(): Workspace | undefined {
  const session = useSession()
  const { workspace_id } = useParams({ strict: false })
  return session.workspaces.find(({ id }) => id === workspace_id) ?? lastWorkspace(session)
}

/** Allows only a path of the dashboard: an address from outside must not lead the user away from here. */
export function safeReturn(to: string | undefined): string {
  const home = '/dashboard/'
  if (!to?.startsWith(home) || to.includes('\\')) return home
  const url = new URL(to, location.origin)
  return url.origin === location.origin && url.pathname.startsWith(home) ? url.pathname + url.search : home
}
