/** The menu, and the user's own row below it. */
import { useQuery } from '@tanstack/react-query'
import { Link, type LinkProps, useNavigate } from '@tanstack/react-router'
import {
  Bot,
  ChartNoAxesColumn,
  Columns3,
  ContactRound,
  Inbox,
  KeyRound,
  LogOut,
  Megaphone,
  Send,
  Settings,
  ShieldCheck,
  SlidersHorizontal,
  Smartphone,
  Users,
  UserX,
  Webhook,
} from 'lucide-react'
import type { ComponentType, ReactNode } from 'react'
import { ask } from '../data/api.ts'
import { forgetAll } from '../data/kept.ts'
import { useSession, useWorkspace } from '../data/place.ts'
import { queryClient, type Workspace, waitingQuery, workspaceQuery } from '../data/queries.ts'
import { ExactLine } from '../ui/exact-text.tsx'
import { Select } from '../ui/select.tsx'
import { PaletteButton } from './palette/opening.tsx'

type Place = readonly [path: string, label: string, icon: Icon, role?: 'admin']
type Icon = ComponentType<{ className?: string }>

/** Pages of a workspace; those with a role are not for members. */
const work: readonly Place[] = [
  ['pipeline', 'Pipeline', Columns3],
  ['contacts', 'Contacts', ContactRound],
  ['campaigns', 'Campaigns', Send, 'admin'],
  ['broadcast', 'Broadcast', Megaphone, 'admin'],
  ['analytics', 'Analytics', ChartNoAxesColumn],
]
const administration: readonly Place[] = [
  ['accounts', 'Accounts', Smartphone],
  ['suppressions', 'Suppression', UserX],
  ['webhooks', 'Webhooks', Webhook, 'admin'],
  ['keys', 'API keys', KeyRound],
  ['members', 'Members', Users],
  ['connect', 'Connect an agent', Bot],
  ['settings', 'Settings', Settings],
]

export function SideBar() {
  const { user } = useSession()
  const workspace = useWorkspace()
  const { data } = useQuery(waitingQuery)
  const waiting = data?.approvals.length ?? 0
  return (
    <div className="flex h-full flex-col gap-4 p-2.5 pt-3">
      <div className="pt-1">
        <Mark />
      </div>
      <PaletteButton />
      <nav
        aria-label="Main"
        className="-mx-2.5 grid min-h-0 flex-1 content-start gap-5 overflow-y-auto px-2.5"
      >
        <ul className="grid gap-0.5">
          {workspace && <Places of={workspace} places={[['inbox', 'Inbox', Inbox]]} />}
          <Entry to="/mcp-approvals" icon={ShieldCheck} label="Approvals">
            {waiting > 0 && (
              <span className="ml-auto rounded-md bg-accent px-1.5 text-xs font-semibold text-accent-ink">
                {waiting}
                <span className="sr-only"> waiting</span>
              </span>
            )}
          </Entry>
          {workspace && <Places of={workspace} places={work} />}
        </ul>
        {workspace && (
          <div>
            <WorkspaceMenu />
            <ul aria-label={workspace.name} className="mt-1 grid gap-0.5">
              <Places of={workspace} places={administration} />
            </ul>
          </div>
        )}
        {user.operator && (
          <div>
            <p className="px-2.5 pb-1 text-xs font-medium text-muted">This instance</p>
            <ul aria-label="This instance" className="grid gap-0.5">
              <Entry to="/operator" icon={SlidersHorizontal} label="Operator" />
            </ul>
          </div>
        )}
      </nav>
      <div>
        <a
          href="/docs/"
          className="flex h-9 items-center rounded-lg px-2.5 text-muted transition-colors hover:bg-hover hover:text-ink"
        >
          API reference
        </a>
        <AccountRow />
      </div>
    </div>
  )
}

function Places({ of: { id, role }, places }: { of: Workspace; places: readonly Place[] }) {
  const isAdmin = role !== 'member'
  const { data } = useQuery({ ...workspaceQuery(id), enabled: isAdmin })
  const stopped = data?.stopped_webhooks ?? 0
  return places
    .filter(([, , , needed]) => needed === undefined || isAdmin)
    .map(([path, label, icon]) => (
      <Entry
        key={path}
        to={`/w/$workspace_id/${path}` as LinkProps['to']}
        params={{ workspace_id: id }}
        icon={icon}
        label={label}
      >
        {path === 'webhooks' && stopped > 0 && (
          <span className="ml-auto rounded-md bg-warn-wash px-1.5 text-xs font-semibold text-warn">
            {stopped}
            <span className="sr-only"> stopped</span>
          </span>
        )}
      </Entry>
    ))
}

export function Mark() {
  return (
    <Link to="/" className="flex items-center gap-2 rounded-md px-1.5 py-1 text-base font-semibold">
      <img src="/dashboard/mark.svg" alt="" width="22" height="22" />
      Parley
    </Link>
  )
}

interface EntryProps {
  to: LinkProps['to']
  params?: { workspace_id: string }
  icon: Icon
  label: string
  children?: ReactNode
}

function Entry({ to, params, icon: Sign, label, children }: EntryProps) {
  return (
    <li>
      <Link
        {...({ to, params } as LinkProps)}
        className="group flex h-11 items-center gap-2.5 rounded-lg px-2.5 text-soft transition-colors hover:bg-hover hover:text-ink lg:h-8"
        activeProps={{ className: 'bg-hover !text-ink font-medium' }}
      >
        <Sign className="size-4 shrink-0 text-muted group-aria-[current=page]:text-accent" />
        {label}
        {children}
      </Link>
    </li>
  )
}

function WorkspaceMenu() {
  const { workspaces } = useSession()
  const workspace = useWorkspace()
  const navigate = useNavigate()
  if (!workspace) return null
  if (workspaces.length === 1)
    return (
      <p className="px-2.5 pb-1 text-xs font-medium text-muted">
        <ExactLine text={workspace.name} cut />
      </p>
    )
  return (
    <Select
      look="bar"
      aria-label="Workspace"
      value={workspace.id}
      options={workspaces.map(({ id, name }) => [id, name])}
      onChange={(workspace_id) => void navigate({ to: '/w/$workspace_id/inbox', params: { workspace_id } })}
      className="w-full max-w-none"
    />
  )
}

function AccountRow() {
  const { user } = useSession()
  const signOut = async () => {
    // If signing out may have failed, the dashboard checks, and asks to sign in only if the session has ended.
    const to = await ask('POST /sign-out').then(
      () => '/dashboard/sign-in',
      () => '/dashboard/',
    )
    // Only after a sign-out: a draft outlives a session that expired.
    if (to === '/dashboard/sign-in') await forgetAll()
    queryClient.clear()
    // Load a whole new page: nothing that was read as this user stays in memory.
    location.assign(to)
  }
  return (
    <div className="flex items-center gap-1">
      <Link
        to="/profile"
        className="flex min-w-0 flex-1 items-center gap-2.5 rounded-lg p-2 transition-colors hover:bg-hover"
        activeProps={{ className: 'bg-hover' }}
      >
        <span
          aria-hidden
          className="grid size-8 shrink-0 place-items-center rounded-full bg-accent-wash text-sm font-semibold uppercase text-accent"
        >
          {[...(user.name || user.email)][0]}
        </span>
        <span className="min-w-0">
          <span className="sr-only">Profile of</span>
          <span className="block truncate font-medium">
            <ExactLine text={user.name} empty={user.email} cut />
          </span>
          {user.name && <span className="block truncate text-xs text-muted">{user.email}</span>}
        </span>
      </Link>
      <button
        type="button"
        aria-label="Sign out"
        title="Sign out"
        onClick={() => void signOut()}
        className="grid size-9 shrink-0 place-items-center rounded-lg text-muted transition-colors hover:bg-hover hover:text-ink"
      >
        <LogOut aria-hidden className="size-4" />
      </button>
    </div>
  )
}
