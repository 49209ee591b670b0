/** The dashboard's entry point. */
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { onGoTo } from './data/place.ts'
import { onSignedOut, queryClient } from './data/queries.ts'
import { keepPageOnDrop } from './frame/dropped-files.ts'
import { router } from './frame/router.tsx'
import { signInSearch } from './frame/session-end.ts'
import './styles.css'

onGoTo((path) => void router.navigate({ href: `/dashboard${path}` }))

onSignedOut(() => {
  // Where the router is already going: several requests notice the end of the session at once.
  const { pathname, href } = router.latestLocation
  if (pathname === '/sign-in' || pathname === '/setup') return
  const search = signInSearch(href)
  queryClient.removeQueries()
  void router.navigate({ to: '/sign-in', search })
})

keepPageOnDrop()

/** A new version has removed a part that this page was about to load: the new page has its own. Never twice in a row. */
const reloadName = 'parley.reloaded_at'
addEventListener('vite:preloadError', (event) => {
  if (Date.now() - Number(sessionStorage.getItem(reloadName)) < 60_000) return
  event.preventDefault()
  sessionStorage.setItem(reloadName, String(Date.now()))
  location.reload()
})

const place = document.getElementById('app')
if (place) {
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  )
}
