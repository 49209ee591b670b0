/** Every page and its address. Each page loads when it is opened, so that the first one appears quickly. */
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from '@tanstack/react-router'
import { Refused } from '../data/api.ts'
import { lastWorkspace, rememberWorkspace, useWorkspace } from '../data/place.ts'
import { queryClient, sessionQuery } from '../data/queries.ts'
import type { AnalyticsSearch } from '../pages/analytics/analytics-search.ts'
import type { BroadcastSearch } from '../pages/broadcast/broadcast.tsx'
import type { EditorSearch } from '../pages/campaign-editor/campaign-editor.tsx'
import type { CampaignSearch } from '../pages/campaigns/campaign-search.ts'
import type { ContactsSearch } from '../pages/contacts/contacts-search.ts'
import type { SignInSearch } from '../pages/entrance/sign-in.tsx'
import type { InboxSearch } from '../pages/inbox/inbox-search.ts'
import { type OperatorSearch, views } from '../pages/operator/operator-views.ts'
import type { PeopleSearch } from '../pages/people/people-search.ts'
import type { PipelineSearch } from '../pages/pipeline/pipeline-search.ts'
import type { SuppressionSearch } from '../pages/suppressions/suppression-search.ts'
import type { WebhooksSearch } from '../pages/webhooks/webhooks-search.ts'
import { Loading } from '../ui/states.tsx'
import { Missing, Stopped } from '../ui/stopped.tsx'
import { ColdFrame } from './cold-frame.tsx'
import { signInSearch } from './session-end.ts'
import { Shell } from './shell.tsx'

const root = createRootRoute({ component: Outlet, notFoundComponent: Missing, errorComponent: Stopped })

const setup = createRoute({
  getParentRoute: () => root,
  path: '/setup',
  component: lazyRouteComponent(() => import('../pages/entrance/setup.tsx'), 'SetupPage'),
})

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: (search): SignInSearch => textsOf(search, ['return_to', 'refused', 'ended']),
  component: lazyRouteComponent(() => import('../pages/entrance/sign-in.tsx'), 'SignInPage'),
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
      throw redirect({ to: '/sign-in', search: signInSearch(location.href) })
    }
  },
  component: Shell,
  // At once, and no longer than it takes.
  pendingComponent: ColdFrame,
  pendingMs: 0,
  pendingMinMs: 0,
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
  component: lazyRouteComponent(() => import('../pages/approvals/approvals.tsx'), 'ApprovalsPage'),
})

const workspace = createRoute({
  getParentRoute: () => inside,
  path: '/w/$workspace_id',
  beforeLoad: ({ params, context }) => {
    const found = context.session.workspaces.find(({ id }) => id === params.workspace_id)
    if (found) rememberWorkspace(found.id)
    return { workspace: found }
  },
  component: InWorkspace,
})

/** The key: another workspace begins with its own values. */
function InWorkspace() {
  const here = useWorkspace()
  const { workspace_id } = workspace.useParams()
  return here?.id === workspace_id ? <Outlet key={workspace_id} /> : <Missing />
}

const workspaceHome = createRoute({
  getParentRoute: () => workspace,
  path: '/',
  beforeLoad: ({ params }) => {
    throw redirect({ to: '/w/$workspace_id/inbox', params })
  },
})

/** The texts of these names. The router reads a text of digits, such as a message's id, as a number. */
function textsOf(
  search: Readonly<Record<string, unknown>>,
  names: readonly string[],
): Record<string, string> {
  const known = names.flatMap((name) => {
    const value = search[name]
    return typeof value === 'string' || typeof value === 'number' ? [[name, String(value)]] : []
  })
  return Object.fromEntries(known)
}

const inbox = createRoute({
  getParentRoute: () => workspace,
  path: '/inbox',
  validateSearch: (search): InboxSearch => {
    const view = (['unread', 'unanswered', 'mine'] as const).find((each) => each === search.view)
    return { ...textsOf(search, ['account', 'chat', 'of', 'message']), ...(view !== undefined && { view }) }
  },
  component: lazyRouteComponent(() => import('../pages/inbox/inbox.tsx'), 'InboxPage'),
})

const pipeline = createRoute({
  getParentRoute: () => workspace,
  path: '/pipeline',
  validateSearch: (search): PipelineSearch => ({
    ...(search.view === 'table' && { view: 'table' as const }),
    ...textsOf(search, ['account', 'column', 'value', 'stage']),
    ...((search.edit === 'stages' || search.edit === 'columns') && { edit: search.edit }),
  }),
  component: lazyRouteComponent(() => import('../pages/pipeline/pipeline.tsx'), 'PipelinePage'),
})

const contacts = createRoute({
  getParentRoute: () => workspace,
  path: '/contacts',
  validateSearch: (search): ContactsSearch => textsOf(search, ['q', 'account', 'contact', 'of', 'start']),
  component: lazyRouteComponent(() => import('../pages/contacts/contacts.tsx'), 'ContactsPage'),
})

const people = createRoute({
  getParentRoute: () => workspace,
  path: '/people',
  validateSearch: (search): PeopleSearch => ({
    ...textsOf(search, ['q']),
    ...(search.open === true && { open: search.open }),
  }),
  component: lazyRouteComponent(() => import('../pages/people/people.tsx'), 'PeoplePage'),
})

const person = createRoute({
  getParentRoute: () => workspace,
  path: '/people/$person_id',
  component: lazyRouteComponent(() => import('../pages/people/person.tsx'), 'PersonPage'),
})

const campaigns = createRoute({
  getParentRoute: () => workspace,
  path: '/campaigns',
  component: lazyRouteComponent(() => import('../pages/campaigns/campaigns.tsx'), 'CampaignsPage'),
})

const campaign = createRoute({
  getParentRoute: () => workspace,
  path: '/campaigns/$campaign_id',
  validateSearch: (search): CampaignSearch => textsOf(search, ['status', 'name', 'recipient']),
  component: lazyRouteComponent(() => import('../pages/campaigns/campaign.tsx'), 'CampaignPage'),
})

const analytics = createRoute({
  getParentRoute: () => workspace,
  path: '/analytics',
  validateSearch: (search): AnalyticsSearch => {
    const period = (['7d', '30d', 'all'] as const).find((each) => each === search.period)
    return { ...textsOf(search, ['from', 'to', 'account']), ...(period !== undefined && { period }) }
  },
  component: lazyRouteComponent(() => import('../pages/analytics/analytics.tsx'), 'AnalyticsPage'),
})

const campaignEditor = createRoute({
  getParentRoute: () => workspace,
  path: '/campaigns/new',
  validateSearch: (search): EditorSearch => textsOf(search, ['copy']),
  component: lazyRouteComponent(
    () => import('../pages/campaign-editor/campaign-editor.tsx'),
    'CampaignEditorPage',
  ),
})

const broadcast = createRoute({
  getParentRoute: () => workspace,
  path: '/broadcast',
  validateSearch: (search): BroadcastSearch => textsOf(search, ['broadcast']),
  component: lazyRouteComponent(() => import('../pages/broadcast/broadcast.tsx'), 'BroadcastPage'),
})

const suppressions = createRoute({
  getParentRoute: () => workspace,
  path: '/suppressions',
  validateSearch: (search): SuppressionSearch => {
    const kind = (['username', 'phone', 'platform_id'] as const).find((each) => each === search.kind)
    const open = (['add', 'import'] as const).find((each) => each === search.open)
    return { ...textsOf(search, ['q']), ...(kind && { kind }), ...(open && { open }) }
  },
  component: lazyRouteComponent(() => import('../pages/suppressions/suppressions.tsx'), 'SuppressionsPage'),
})

const webhooks = createRoute({
  getParentRoute: () => workspace,
  path: '/webhooks',
  validateSearch: (search): WebhooksSearch => {
    const state = (['pending', 'delivered', 'failed'] as const).find((each) => each === search.state)
    return {
      ...textsOf(search, ['hook', 'delivery']),
      ...(state && { state }),
      ...(search.open === 'add' && { open: search.open }),
    }
  },
  component: lazyRouteComponent(() => import('../pages/webhooks/webhooks.tsx'), 'WebhooksPage'),
})

const keys = createRoute({
  getParentRoute: () => workspace,
  path: '/keys',
  component: lazyRouteComponent(() => import('../pages/keys/keys.tsx'), 'KeysPage'),
})

const members = createRoute({
  getParentRoute: () => workspace,
  path: '/members',
  component: lazyRouteComponent(() => import('../pages/members/members.tsx'), 'MembersPage'),
})

const accounts = createRoute({
  getParentRoute: () => workspace,
  path: '/accounts',
  validateSearch: (search): { login?: string } => ({
    ...(typeof search.login === 'string' && { login: search.login }),
  }),
  component: lazyRouteComponent(() => import('../pages/accounts/accounts.tsx'), 'AccountsPage'),
})

const connect = createRoute({
  getParentRoute: () => workspace,
  path: '/connect',
  component: lazyRouteComponent(() => import('../pages/connect/connect.tsx'), 'ConnectPage'),
})

/** Where the gates were before; pages that a gate closes lead here. */
const gates = createRoute({
  getParentRoute: () => inside,
  path: '/gates',
  beforeLoad: () => {
    throw redirect({ to: '/operator' })
  },
})

const operator = createRoute({
  getParentRoute: () => inside,
  path: '/operator',
  validateSearch: (search): OperatorSearch => {
    const view = views.find((each) => each === search.view)
    return { ...(view !== undefined && { view }), ...textsOf(search, ['workspace', 'action', 'actor']) }
  },
  component: lazyRouteComponent(() => import('../pages/operator/operator.tsx'), 'OperatorPage'),
})

const settings = createRoute({
  getParentRoute: () => workspace,
  path: '/settings',
  component: lazyRouteComponent(() => import('../pages/settings/settings.tsx'), 'SettingsPage'),
})

const profile = createRoute({
  getParentRoute: () => inside,
  path: '/profile',
  component: lazyRouteComponent(() => import('../pages/profile/profile.tsx'), 'ProfilePage'),
})

const routeTree = root.addChildren([
  setup,
  signIn,
  inside.addChildren([
    home,
    approvals,
    gates,
    operator,
    profile,
    workspace.addChildren([
      workspaceHome,
      inbox,
      pipeline,
      contacts,
      people,
      person,
      campaigns,
      campaign,
      analytics,
      campaignEditor,
      broadcast,
      accounts,
      suppressions,
      webhooks,
      keys,
      members,
      connect,
      settings,
    ]),
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
