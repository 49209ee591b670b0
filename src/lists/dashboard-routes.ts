/** The routes of the dashboard. They are not part of the contract or of its document. */
import {
  workspaceRoutes as accounts,
  ownRoutes as troubledAccounts,
} from '../capabilities/accounts/dashboard-routes.ts'
import { workspaceRoutes as analytics } from '../capabilities/analytics/dashboard-routes.ts'
import { ownRoutes as approvals } from '../capabilities/approvals/dashboard-routes.ts'
import { ownRoutes as audit } from '../capabilities/audit/dashboard-routes.ts'
import { workspaceRoutes as board } from '../capabilities/board/dashboard-routes.ts'
import { workspaceRoutes as broadcasts } from '../capabilities/broadcast/dashboard-routes.ts'
import { workspaceRoutes as campaigns } from '../capabilities/campaigns/dashboard-routes.ts'
import { workspaceRoutes as inbox } from '../capabilities/chats/dashboard-routes.ts'
import { workspaceRoutes as columns } from '../capabilities/columns/dashboard-routes.ts'
import { ownRoutes as gates } from '../capabilities/gates/dashboard-routes.ts'
import { ownRoutes as dispatch } from '../capabilities/gates/dispatch-routes.ts'
import { ownRoutes as instance } from '../capabilities/instance/dashboard-routes.ts'
import { workspaceRoutes as keys } from '../capabilities/keys/dashboard-routes.ts'
import { ownRoutes as live, workspaceRoutes as presence } from '../capabilities/live/dashboard-routes.ts'
import { workspaceRoutes as notes } from '../capabilities/notes/dashboard-routes.ts'
import { ownRoutes as oidc } from '../capabilities/oidc/dashboard-routes.ts'
import {
  ownRoutes as ambiguous,
  workspaceRoutes as operations,
} from '../capabilities/operations/dashboard-routes.ts'
import { workspaceRoutes as stages } from '../capabilities/pipeline/dashboard-routes.ts'
import { workspaceRoutes as retention } from '../capabilities/retention/dashboard-routes.ts'
import { workspaceRoutes as savedReplies } from '../capabilities/saved-replies/dashboard-routes.ts'
import { ownRoutes as sessions } from '../capabilities/sessions/dashboard-routes.ts'
import { workspaceRoutes as suppressions } from '../capabilities/suppressions/dashboard-routes.ts'
import { workspaceRoutes as timeline } from '../capabilities/timeline/dashboard-routes.ts'
import { workspaceRoutes as members } from '../capabilities/users/dashboard-routes.ts'
import { ownRoutes as users } from '../capabilities/users/operator-routes.ts'
import {
  workspaceRoutes as workspace,
  ownRoutes as workspaces,
} from '../capabilities/workspaces/dashboard-routes.ts'
import type { Route } from '../route.ts'

/** The routes in a workspace, besides the contract's: under /dashboard/api/w/{workspace_id}. */
export const workspaceRoutes: readonly Route[] = [
  ...workspace,
  ...accounts,
  ...analytics,
  ...board,
  ...broadcasts,
  ...campaigns,
  ...columns,
  ...inbox,
  ...keys,
  ...members,
  ...notes,
  ...operations,
  ...retention,
  ...savedReplies,
  ...stages,
  ...suppressions,
  ...timeline,
  ...presence,
]

/** The user's own routes and the operators': under /dashboard/api. */
export const ownRoutes: readonly Route[] = [
  ...approvals,
  ...sessions,
  ...oidc,
  ...gates,
  ...dispatch,
  ...users,
  ...workspaces,
  ...troubledAccounts,
  ...ambiguous,
  ...audit,
  ...instance,
  ...live,
]
