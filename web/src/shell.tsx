/** The frame of every page behind the sign-in: a menu at the side or, on a narrow screen, behind a button. */
import { useQuery } from '@tanstack/react-query'
import { Link, type LinkProps, Outlet, useNavigate, useRouterState } from '@tanstack/react-router'
import {
  Bot,
  Columns3,
  ContactRound,
  Inbox,
  KeyRound,
  LogOut,
  Menu,
  ShieldCheck,
  SlidersHorizontal,
  Smartphone,
  Users,
} from 'lucide-react'
import { type ComponentType, lazy, type ReactNode, Suspense, useEffect, useState } from 'react'
import { ask } from './api.ts'
import { startLive, useLiveState } from './live/live.ts'
import { clearOutbox } from './outbox.ts'
import { PaletteButton, PalettePlace } from './palette/opening.tsx'
import { useSession, useWorkspace } from './place.ts'
import { queryClient, waitingQuery } from './queries.ts'
import { useGoKeys } from './shortcuts.ts'
import { TimeZone } from './ui/time.tsx'

export function Shell() {
  const { user } = useSession()
  useGoToPages()
  useEffect(startLive, [])
  return (
    <TimeZone.Provider value={user.time_zone}>
      <a
        href="#content"
        className="sr-only focus:not-sr-only focus:fixed focus:left-3 focus:top-3 focus:z-50 focus:rounded-lg focus:bg-raised focus:px-4 focus:py-2 focus:shadow-float"
      >
        Skip to the content
      </a>
      <div className="min-h-dvh lg:grid lg:grid-cols-[208px_minmax(0,1fr)]">
        <aside className="sticky top-0 hidden h-dvh border-r border-line lg:block">
          <SideBar />
        </aside>
        <TopBar />
        <main id="content" tabIndex={-1} className="min-w-0 bg-surface outline-none">
          <Outlet />
        </main>
      </div>
      <LiveNote />
      <PalettePlace />
    </TimeZone.Provider>
  )
}

function useGoToPages(): void {
  const workspace = useWorkspace()
  const navigate = useNavigate()
  const params = { workspace_id: workspace?.id ?? '' }
  useGoKeys(
    workspace
      ? {
          i: () => void navigate({ to: '/w/$workspace_id/inbox', params }),
          p: () => void navigate({ to: '/w/$workspace_id/pipeline', params }),
          c: () => void navigate({ to: '/w/$workspace_id/contacts', params }),
          a: () => void navigate({ to: '/w/$workspace_id/accounts', params }),
        }
      : {},
  )
}

/** Shows nothing while all is well. */
function LiveNote() {
  const state = useLiveState()
  return (
    <p
      role="status"
      className={
        state === 'lost'
          ? 'fixed bottom-3 left-3 z-40 rounded-lg bg-raised px-3 py-1.5 text-xs text-soft shadow-float'
          : 'sr-only'
      }
    >
      {state === 'lost' && 'Reconnecting…'}
    </p>
  )
}

/** A page: one bar with its title, a short line and its main action, then its content in the whole width. */
export function Page({ title, about, action, narrow = false, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Parley`
  }, [title])
  return (
    <>
      <header className="top-0 z-10 flex min-h-[53px] flex-wrap items-center gap-x-4 gap-y-1 border-b border-line bg-surface px-4 py-2 sm:px-5 lg:sticky">
        <h1 className="text-lg font-semibold">{title}</h1>
        {about && <p className="min-w-0 text-xs text-muted">{about}</p>}
        {action && <div className="ml-auto">{action}</div>}
      </header>
      <div className={`px-4 py-5 sm:px-5 ${narrow ? 'max-w-[64ch]' : ''}`}>{children}</div>
    </>
  )
}

interface PageProps {
  title: string
  about?: ReactNode
  action?: ReactNode
  /** For forms, which are easier to read when narrow. */
  narrow?: boolean
  children: ReactNode
}

/** A part of a page. */
export function Section({
  title,
  about,
  children,
}: {
  title: string
  about?: ReactNode
  children: ReactNode
}) {
  return (
    <section className="mb-10 grid gap-4">
      <div>
        <h2 className="text-base font-semibold">{title}</h2>
        {about && <p className="mt-0.5 max-w-[64ch] text-muted">{about}</p>}
      </div>
      {children}
    </section>
  )
}

/** A page that fills the window has its own bar, with the button for the menu in it. */
function TopBar() {
  return (
    <header className="sticky top-0 z-20 flex h-14 items-center gap-2 border-b border-line bg-canvas px-3 [body:has([data-own-bar])_&]:hidden lg:hidden">
      <MenuButton />
      <Mark />
    </header>
  )
}

/** Loaded when it is first opened, then kept for its animation. */
const Drawer = lazy(async () => ({ default: (await import('./ui/drawer.tsx')).Drawer }))

/** On a narrow screen the menu is behind this button. */
export function MenuButton() {
  const at = useRouterState({ select: ({ location }) => location.href })
  const [openAt, setOpenAt] = useState<string | null>()
  return (
    <>
      <button
        type="button"
        aria-label="Open the menu"
        onClick={() => setOpenAt(at)}
        className="grid size-10 shrink-0 place-items-center rounded-lg hover:bg-hover lg:hidden"
      >
        <Menu aria-hidden className="size-5" />
      </button>
      {openAt !== undefined && (
        <Suspense>
          {/* It is open at one address, so navigating closes it. */}
          <Drawer open={openAt === at} onClose={() => setOpenAt(null)}>
            <SideBar />
          </Drawer>
        </Suspense>
      )}
    </>
  )
}

function Mark() {
  return (
    <Link to="/" className="flex items-center gap-2 rounded-md px-1.5 py-1 text-base font-semibold">
      <img src="/dashboard/mark.svg" alt="" width="22" height="22" />
      Parley
    </Link>
  )
}

function SideBar() {
  const { user } = useSession()
  const workspace = useWorkspace()
  const { data } = useQuery(waitingQuery)
  const waiting = data?.approvals.length ?? 0
  return (
    <div className="flex h-full flex-col gap-4 overflow-y-auto p-2.5 pt-3">
      <div className="pt-1">
        <Mark />
      </div>
      <PaletteButton />
      <nav aria-label="Main" className="grid gap-5">
        <ul className="grid gap-0.5">
          {workspace && (
            <Entry
              to="/w/$workspace_id/inbox"
              params={{ workspace_id: workspace.id }}
              icon={Inbox}
              label="Inbox"
            />
          )}
          <Entry to="/mcp-approvals" icon={ShieldCheck} label="Approvals">
            {waiting > 0 && (
              <span className="ml-auto rounded-md bg-accent px-1.5 text-xs font-semibold text-accent-ink">
                {waiting}
                <span className="sr-only"> waiting</span>
              </span>
            )}
          </Entry>
          {workspace && (
            <>
              <Entry
                to="/w/$workspace_id/pipeline"
                params={{ workspace_id: workspace.id }}
                icon={Columns3}
                label="Pipeline"
              />
              <Entry
                to="/w/$workspace_id/contacts"
                params={{ workspace_id: workspace.id }}
                icon={ContactRound}
                label="Contacts"
              />
            </>
          )}
        </ul>
        {workspace && (
          <div>
            <WorkspaceMenu />
            <ul className="mt-1 grid gap-0.5">
              <Entry
                to="/w/$workspace_id/accounts"
                params={{ workspace_id: workspace.id }}
                icon={Smartphone}
                label="Accounts"
              />
              <Entry
                to="/w/$workspace_id/keys"
                params={{ workspace_id: workspace.id }}
                icon={KeyRound}
                label="API keys"
              />
              <Entry
                to="/w/$workspace_id/members"
                params={{ workspace_id: workspace.id }}
                icon={Users}
                label="Members"
              />
              <Entry
                to="/w/$workspace_id/connect"
                params={{ workspace_id: workspace.id }}
                icon={Bot}
                label="Connect an agent"
              />
            </ul>
          </div>
        )}
        {user.operator && (
          <div>
            <p className="px-2.5 pb-1 text-xs font-medium text-muted">This instance</p>
            <ul className="grid gap-0.5">
              <Entry to="/gates" icon={SlidersHorizontal} label="Gates" />
            </ul>
          </div>
        )}
      </nav>
      <div className="mt-auto">
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

interface EntryProps {
  to: LinkProps['to']
  params?: { workspace_id: string }
  icon: ComponentType<{ className?: string }>
  label: string
  children?: ReactNode
}

function Entry({ to, params, icon: Icon, label, children }: EntryProps) {
  return (
    <li>
      <Link
        {...({ to, params } as LinkProps)}
        className="group flex h-11 items-center gap-2.5 rounded-lg px-2.5 text-soft transition-colors hover:bg-hover hover:text-ink lg:h-8"
        activeProps={{ className: 'bg-hover !text-ink font-medium' }}
      >
        <Icon className="size-4 shrink-0 text-muted group-aria-[current=page]:text-accent" />
        {label}
        {children}
      </Link>
    </li>
  )
}

/** A native select: it loads nothing, and works with every keyboard and screen reader. */
function WorkspaceMenu() {
  const { workspaces } = useSession()
  const workspace = useWorkspace()
  const navigate = useNavigate()
  if (!workspace) return null
  if (workspaces.length === 1)
    return <p className="truncate px-2.5 pb-1 text-xs font-medium text-muted">{workspace.name}</p>
  return (
    <select
      aria-label="Workspace"
      value={workspace.id}
      onChange={(event) => {
        void navigate({ to: '/w/$workspace_id/inbox', params: { workspace_id: event.target.value } })
      }}
      className="h-8 w-full truncate rounded-lg bg-transparent px-1.5 text-xs font-medium text-muted hover:bg-hover"
    >
      {workspaces.map(({ id, name }) => (
        <option key={id} value={id} className="bg-raised text-ink">
          {name}
        </option>
      ))}
    </select>
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
    if (to === '/dashboard/sign-in') await clearOutbox()
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
          <span className="block truncate font-medium">{user.name || user.email}</span>
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
