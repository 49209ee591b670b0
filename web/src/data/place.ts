/** Where the user is: the workspace that the menu shows on pages that belong to none, and where a sign-in returns to. */

import { useSuspenseQuery } from '@tanstack/react-query'
import { type NavigateOptions, useNavigate, useParams } from '@tanstack/react-router'
import { useCallback } from 'react'
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

/** The same on the pages of a workspace, which the router shows only if it is there. */
export function useHere(): Workspace {
  const workspace = useWorkspace()
  if (!workspace) throw new Error('A page of a workspace is shown outside of one.')
  return workspace
}

/** Changes what the address says about the page at `to`, whose parameters stay. */
export function useGo<Search>(
  to: string,
  { replace = false }: { replace?: boolean } = {},
): (search: Search) => void {
  const navigate = useNavigate()
  return useCallback(
    (search) =>
      void navigate({ to, params: true, search, replace, resetScroll: false } as unknown as NavigateOptions),
    [navigate, to, replace],
  )
}

let go: (path: string) => void = () => {}
/** How the router leads to a path below `/dashboard`. */
export function onGoTo(act: (path: string) => void): void {
  go = act
}

/** For what lies outside of a page, such as a notification. */
export function goTo(path: string): void {
  go(path)
}

/** Allows only a path of the dashboard: an address from outside must not lead the user away from here. */
export function safeReturn(to: string | undefined): string {
  const home = '/dashboard/'
  if (!to?.startsWith(home) || to.includes('\\')) return home
  const url = new URL(to, location.origin)
  // guard: back to the dashboard only
  return url.origin === location.origin && url.pathname.startsWith(home) ? url.pathname + url.search : home
}
