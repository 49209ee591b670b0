/** The frame of every page behind the sign-in: a menu at the side or, on a narrow screen, behind a button. */
import { useQuery } from '@tanstack/react-query'
import { Outlet, useNavigate, useParams } from '@tanstack/react-router'
import { lazy, Suspense, useEffect } from 'react'
import { forgetOthers } from '../data/kept.ts'
import { startLive } from '../data/live/live.ts'
import { useSession, useWorkspace } from '../data/place.ts'
import { sendingQuery } from '../data/queries.ts'
import { MenuButton, MenuContent } from '../ui/menu-button.tsx'
import { useGoKeys } from '../ui/shortcuts.ts'
import { DisabledWorkspace, Missing } from '../ui/stopped.tsx'
import { TimeZone } from '../ui/time.tsx'
import { LiveNote } from './live-note.tsx'
import { PalettePlace } from './palette/opening.tsx'
import { Mark, SideBar } from './side-bar.tsx'

const menu = <SideBar />

export function Shell() {
  const { user } = useSession()
  useGoToPages()
  useEffect(startLive, [])
  useEffect(() => startKept(user.id), [user.id])
  return (
    <TimeZone.Provider value={user.time_zone}>
      <MenuContent.Provider value={menu}>
        <a
          href="#content"
          className="sr-only focus:not-sr-only focus:fixed focus:left-3 focus:top-3 focus:z-50 focus:rounded-lg focus:bg-raised focus:px-4 focus:py-2 focus:shadow-float"
        >
          Skip to the content
        </a>
        <div className="min-h-dvh lg:grid lg:grid-cols-[208px_minmax(0,1fr)]">
          <aside aria-label="Side bar" className="sticky top-0 hidden h-dvh border-r border-line lg:block">
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
      </MenuContent.Provider>
    </TimeZone.Provider>
  )
}

/** What was sent before goes out on every page; what other users wrote here is gone. */
function startKept(user_id: string): () => void {
  void forgetOthers(user_id)
  const started = import('../data/sending.ts').then(({ startOutbox }) => startOutbox(user_id))
  return () => void started.then((stop) => stop())
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

/** A page that fills the window has its own bar, with the button for the menu in it. */
function TopBar() {
  return (
    <header className="sticky top-0 z-20 flex h-14 items-center gap-2 border-b border-line bg-canvas px-3 [body:has([data-own-bar])_&]:hidden lg:hidden">
      <MenuButton />
      <Mark />
    </header>
  )
}
