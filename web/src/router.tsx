/** Every page and its address. Each page loads when it is opened, so that the first one appears quickly. */
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from '@tanstack/react-router'
import { Refused } from './api.ts'
import type { InboxSearch } from './pages/inbox/inbox.tsx'
import type { PipelineSearch } from './pages/pipeline/pipeline-queries.ts'
import { Missing, Stopped } from './pages/stopped.tsx'
import { lastWorkspace, rememberWorkspace } from './place.ts'
import { queryClient, sessionQuery } from './queries.ts'
import { Shell } from './shell.tsx'
import { Loading } from './ui/states.tsx'

const root = createRootRoute({ component: Outlet, notFoundComponent: Missing, errorComponent: Stopped })

const setup = createRoute({
  getParentRoute: () => root,
  path: '/setup',
  component: lazyRouteComponent(() => import('./pages/setup.tsx'), 'SetupPage'),
})

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: (search): { return_to?: string; refused?: string } => ({
    ...(typeof search.return_to === 'string' && { return_to: search.return_to }),
    ...(typeof search.refused === 'string' && { refused: search.refused }),
  }),
  component: lazyRouteComponent(() => import('./pages/sign-in.tsx'), 'SignInPage'),
})

/** All other pages require a sign-in. */
const inside = createRoute({
  getParentRoute: () => root,
  id: 'inside',
  beforeLoad: async ({ location }) => {
    try {
      return { session: await queryClient.ensureQueryData(sessionQuery) }
    } catch (error) {
      if (!(error instanceof Refused && error.status === 401)) throw error
      throw redirect({ to: '/sign-in', search: { return_to: `/dashboard${location.href}` } })
    }
  },
  component: Shell,
})

const home = createRoute({
  getParentRoute: () => inside,
  path: '/',
  beforeLoad: ({ context }) => {
    const workspace = lastWorkspace(context.session)
    if (!workspace) throw redirect({ to: '/mcp-approvals' })
    throw redirect({ to: '/w/$workspace_id/inbox', params: { workspace_id: workspace.id } })
  },
})

const approvals = createRoute({
  getParentRoute: () => inside,
  path: '/mcp-approvals',
  validateSearch: (search): { request?: string; view?: 'history' } => ({
    ...(typeof search.request === 'string' && { request: search.request }),
    ...(search.view === 'history' && { view: 'history' as const }),
  }),
  component: lazyRouteComponent(() => import('./pages/approvals.tsx'), 'ApprovalsPage'),
})

const workspace = createRoute({
  getParentRoute: () => inside,
  path: '/w/$workspace_id',
  beforeLoad: ({ params, context }) => {
    const found = context.session.workspaces.find(({ id }) => id === params.workspace_id)
    if (found) rememberWorkspace(found.id)
    return { workspace: found }
  },
  component: Outlet,
})

const workspaceHome = createRoute({
  getParentRoute: () => workspace,
  path: '/',
  beforeLoad: ({ params }) => {
    throw redirect({ to: '/w/$workspace_id/inbox', params })
  },
})

const inbox = createRoute({
  getParentRoute: () => workspace,
  path: '/inbox',
  validateSearch: (search): InboxSearch => {
    const texts = ['account', 'chat', 'of', 'message'] as const
    const known = texts.flatMap((name) => {
      const value = search[name]
      // The router reads a message's id as a number.
      return typeof value === 'string' || typeof value === 'number' ? [[name, String(value)]] : []
    })
    const view = ['unread', 'unanswered', 'mine'].find((each) => each === search.view)
    return { ...Object.fromEntries(known), ...(view !== undefined && { view }) }
  },
  component: lazyRouteComponent(() => import('./pages/inbox/inbox.tsx'), 'InboxPage'),
})

const pipeline = createRoute({
  getParentRoute: () => workspace,
  path: '/pipeline',
  validateSearch: (search): PipelineSearch => ({
    ...(search.view === 'table' && { view: 'table' as const }),
    ...(typeof search.account === 'string' && { account: search.account }),
    // The router reads a key of digits as a number.
    ...((typeof search.stage === 'string' || typeof search.stage === 'number') && {
      stage: String(search.stage),
    }),
    ...((search.edit === 'stages' || search.edit === 'columns') && { edit: search.edit }),
  }),
  component: lazyRouteComponent(() => import('./pages/pipeline/pipeline.tsx'), 'PipelinePage'),
})

const keys = createRoute({
  getParentRoute: () => workspace,
  path: '/keys',
  component: lazyRouteComponent(() => import('./pages/keys.tsx'), 'KeysPage'),
})

const members = createRoute({
  getParentRoute: () => workspace,
  path: '/members',
  component: lazyRouteComponent(() => import('./pages/members.tsx'), 'MembersPage'),
})

const accounts = createRoute({
  getParentRoute: () => workspace,
  path: '/accounts',
  validateSearch: (search): { login?: string } => ({
    ...(typeof search.login === 'string' && { login: search.login }),
  }),
  component: lazyRouteComponent(() => import('./pages/accounts/accounts.tsx'), 'AccountsPage'),
})

const connect = createRoute({
  getParentRoute: () => workspace,
  path: '/connect',
  component: lazyRouteComponent(() => import('./pages/connect.tsx'), 'ConnectPage'),
})

const gates = createRoute({
  getParentRoute: () => inside,
  path: '/gates',
  component: lazyRouteComponent(() => import('./pages/gates.tsx'), 'GatesPage'),
})

const profile = createRoute({
  getParentRoute: () => inside,
  path: '/profile',
  component: lazyRouteComponent(() => import('./pages/profile.tsx'), 'ProfilePage'),
})

const routeTree = root.addChildren([
  setup,
  signIn,
  inside.addChildren([
    home,
    approvals,
    gates,
    profile,
    workspace.addChildren([workspaceHome, inbox, pipeline, accounts, keys, members, connect]),
  ]),
])

export const router = createRouter({
  routeTree,
  basepath: '/dashboard',
  defaultPreload: 'intent',
  defaultPendingMs: 400,
  defaultPendingComponent: () => (
    <div className="p-5">
      <Loading />
    </div>
  ),
  scrollRestoration: true,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
