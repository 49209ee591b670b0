/** The routes for people at the dashboard. They are not part of the contract and not in its document. */
import { ownRoutes as approvals } from './capabilities/approvals/people.ts'
import { ownRoutes as sessions } from './capabilities/sessions/people.ts'
import type { Route } from './route.ts'

/** In a workspace, beside the contract's: under /dashboard/api/w/{workspace_id}. */
export const workspaceRoutes: readonly Route[] = [...keys, ...members]

/** What is the user's own, and what operators do: under /dashboard/api. */
export const ownRoutes: readonly Route[] = [...approvals, ...sessions]
