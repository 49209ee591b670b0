/** What the sign-in page is told when a session has ended. */
import { hasUnkept, keepAll } from '../data/kept.ts'
import { queryClient, sessionQuery } from '../data/queries.ts'
import type { Ended } from '../pages/entrance/session-ended.ts'
import type { SignInSearch } from '../pages/entrance/sign-in.tsx'

/** Stays until a sign-in loads a new page: a navigation that was under way notices the end again, without the session. */
let ended: Ended | undefined

/** `href` is where the sign-in returns to. Without a session that this page has read, none has ended. */
export function signInSearch(href: string): SignInSearch {
  if (queryClient.getQueryData(sessionQuery.queryKey)) ended = endOf()
  return { return_to: `/dashboard${href}`, ...(ended && { ended }) }
}

function endOf(): Ended {
  const typed = keepAll()
  // guard: a form that is not kept says so
  if (hasUnkept() && typed !== 'lost') return typed === 'kept' ? 'partly' : 'gone'
  return typed
}
