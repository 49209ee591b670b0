/** The routes for people at the dashboard. They are not part of the contract and not in its document. */
import { ownRoutes as approvals } from '../capabilities/approvals/dashboard-routes.ts'
import { ownRoutes as gates } from '../capabilities/gates/dashboard-routes.ts'
import { workspaceRoutes as keys } from '../capabilities/keys/dashboard-routes.ts'
import { ownRoutes as oidc } from '../capabilities/oidc/dashboard-routes.ts'
import { ownRoutes as sessions } from '../capabilities/sessions/dashboard-routes.ts'
import { workspaceRoutes as members, ownRoutes as users } from '../capabilities/users/dashboard-routes.ts'
import { ownRoutes as workspaces } from '../capabilities/workspaces/dashboard-routes.ts'
import type { Route } from '../route.ts'

/** In a workspace, beside the contract's: under /dashboard/api/w/{workspace_id}. */
export const workspaceRoutes: readonly Route[] = [...keys, ...members]

/** What is the user's own, and what operators do: under /dashboard/api. */
export const ownRoutes: readonly Route[] = [
  ...approvals,
  ...sessions,
  ...oidc,
  ...gates,
  ...users,
  ...workspaces,
]
