/** The routes for people at the dashboard. They are not part of the contract and not in its document. */
import { ownRoutes as approvals } from './capabilities/approvals/people.ts'
import { ownRoutes as gates } from './capabilities/gates/people.ts'
import { workspaceRoutes as keys } from './capabilities/keys/people.ts'
import { ownRoutes as oidc } from './capabilities/oidc/people.ts'
import { ownRoutes as sessions } from './capabilities/sessions/people.ts'
import { workspaceRoutes as members, ownRoutes as users } from './capabilities/users/people.ts'
import { ownRoutes as workspaces } from './capabilities/workspaces/people.ts'
import type { Route } from './route.ts'

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
