/** What a page shows without data: it is loading, it failed, or there is nothing yet. */
import type { UseInfiniteQueryResult, UseQueryResult } from '@tanstack/react-query'
import { RotateCw } from 'lucide-react'
import { type ComponentType, type ReactNode, useEffect, useState } from 'react'
import { Button } from './button.tsx'
import { Failure } from './notice.tsx'
import { ClockTime } from './time.tsx'

export interface EmptyProps {
  icon: ComponentType<{ className?: string }>
  title: string
  children: ReactNode
  action?: ReactNode
}

export function Empty({ icon: Icon, title, children, action }: EmptyProps) {
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] justify-items-center rounded-xl px-6 py-14 text-center ring-1 ring-line">
      <span className="mb-4 grid size-11 place-items-center rounded-xl bg-accent-wash text-accent">
        <Icon className="size-5" />
      </span>
      <h2 className="text-base font-semibold">{title}</h2>
      <div className="mt-1 w-full max-w-[46ch] min-w-0 text-muted">{children}</div>
      {action && <div className="mt-5">{action}</div>}
    </div>
  )
}

/** The opacity of the bars, from the first to the last. */
const strengths = [1, 0.85, 0.7, 0.55, 0.4, 0.3, 0.2, 0.1]

/** Most answers arrive before this, and a flash of grey makes a page feel slower. */
const patienceMs = 150

/** Shows its content only once the user has waited a moment. */
export function Late({ children }: { children: ReactNode }) {
  const [isLate, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), patienceMs)
    return () => clearTimeout(timer)
  }, [])
  return isLate ? children : <div aria-busy />
}

export function Loading({ rows = 4 }: { rows?: number }) {
  return (
    <div aria-busy className="grid gap-2.5">
      <p role="status" className="sr-only">
        Loading
      </p>
      {strengths.slice(0, rows).map((opacity) => (
        <div key={opacity} className="skeleton h-13" style={{ opacity }} />
      ))}
    </div>
  )
}

interface LoadedProps<Data> {
  query: UseQueryResult<Data>
  rows?: number
  children: (data: Data) => ReactNode
}

/** Shows the data once it is there. If reading it again fails, keeps it visible below the error. */
export function Loaded<Data>({ query, rows, children }: LoadedProps<Data>) {
  const { data, error, isFetching, refetch } = query
  if (data === undefined && !error) return <Loading {...(rows !== undefined && { rows })} />
  return (
    <div className="grid grid-cols-1 gap-4">
      {error && (
        <div className="grid justify-items-start gap-3">
          <div className="w-full">
            <ReadFailure query={query} />
          </div>
          <Button size="small" busy={isFetching} onClick={() => void refetch()}>
            <RotateCw aria-hidden className="size-3.5" />
            Try again
          </Button>
        </div>
      )}
      {data !== undefined && children(data)}
    </div>
  )
}

type PagedQuery = Pick<UseInfiniteQueryResult, 'hasNextPage' | 'isFetchingNextPage' | 'fetchNextPage'>

/** Reads the next page of a list, if there is one. */
export function More({ of: { hasNextPage, isFetchingNextPage, fetchNextPage }, children }: MoreProps) {
  return (
    hasNextPage && (
      <div>
        <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          {children}
        </Button>
      </div>
    )
  )
}

interface MoreProps {
  of: PagedQuery
  children: string
}

/** Why the last read failed, when the page reads again, and how old the data is that stays visible. */
function ReadFailure({ query: { error, data, dataUpdatedAt } }: { query: FailedRead }) {
  if (!error) return null
  return (
    <div className="grid gap-1">
      <Failure error={error} again="The page tries again" />
      {data !== undefined && dataUpdatedAt > 0 && (
        <p className="text-xs text-muted">
          As of <ClockTime at={new Date(dataUpdatedAt).toISOString()} />
        </p>
      )}
    </div>
  )
}

interface ReadingProps {
  query: FailedRead
  rows?: number
  /** Around the usual bars and the failure. */
  className?: string
  /** In place of the usual bars. */
  children?: ReactNode
}

/** What stands above data that is read by itself: bars until it is there, and why it cannot be read. */
export function Reading({ query, rows, className = '', children }: ReadingProps) {
  const { data, error } = query
  if (data === undefined && !error && children) return <Late>{children}</Late>
  if (data !== undefined && !error) return null
  return (
    <div className={className}>
      {error ? (
        <ReadFailure query={query} />
      ) : (
        <Late>
          <Loading {...(rows !== undefined && { rows })} />
        </Late>
      )}
    </div>
  )
}

type FailedRead = Pick<UseQueryResult, 'error' | 'data' | 'dataUpdatedAt'>
