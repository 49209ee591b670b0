/** The frame of every page behind the sign-in: a menu at the side or, on a narrow screen, behind a button. */
import { useQuery } from '@tanstack/react-query'
import { Outlet, useNavigate, useParams, useRouterState } from '@tanstack/react-router'
import { Menu } from 'lucide-react'
import { lazy, type ReactNode, Suspense, useEffect, useState } from 'react'
import { startLive, useLiveState } from './live/live.ts'
import { DisabledWorkspace, Missing } from './pages/stopped.tsx'
import { PalettePlace } from './palette/opening.tsx'
import { useSession, useWorkspace } from './place.ts'
import { sendingQuery } from './queries.ts'
import { useGoKeys } from './shortcuts.ts'
import { Mark, SideBar } from './side-bar.tsx'
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
          <Content />
        </main>
      </div>
      <SendingPlace />
      <LiveNote />
      <PalettePlace />
    </TimeZone.Provider>
  )
}

/** Of a workspace that is not the user's, or that is disabled, every page would only be refused. */
function Content() {
  const { workspace_id } = useParams({ strict: false })
  const workspace = useWorkspace()
  if (workspace_id === undefined) return <Outlet />
  if (workspace?.id !== workspace_id) return <Missing />
  return workspace.disabled_at === null ? <Outlet /> : <DisabledWorkspace name={workspace.name} />
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
          ...(workspace.role !== 'member' && {
            s: () => void navigate({ to: '/w/$workspace_id/campaigns', params }),
          }),
        }
      : {},
  )
}

const SendingBar = lazy(async () => ({ default: (await import('./sending-bar.tsx')).SendingBar }))

/** Loads the bar only while nothing is sent. */
function SendingPlace() {
  const { data } = useQuery(sendingQuery)
  if (!data || data.on) return null
  return (
    <Suspense>
      <SendingBar {...data} />
    </Suspense>
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
