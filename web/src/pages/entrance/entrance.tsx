/** The frame of the two pages before sign-in. */
import type { ReactNode } from 'react'
import { useTitle } from '../../ui/title.ts'

export function Entrance({
  title,
  about,
  children,
}: {
  title: string
  about?: ReactNode
  children: ReactNode
}) {
  useTitle(title)
  return (
    <main className="grid min-h-dvh place-items-center px-4 py-10">
      <div className="w-full max-w-sm">
        <img src="/dashboard/mark.svg" alt="Parley" width="40" height="40" className="mb-6" />
        <h1 className="text-xl font-semibold">{title}</h1>
        <p className="mb-7 mt-1 text-muted [overflow-wrap:anywhere]">{about}</p>
        {children}
      </div>
    </main>
  )
}

export function Or() {
  return (
    <div
      aria-hidden
      className="my-5 flex items-center gap-3 text-xs text-muted before:h-px before:flex-1 before:bg-line after:h-px after:flex-1 after:bg-line"
    >
      or
    </div>
  )
}
