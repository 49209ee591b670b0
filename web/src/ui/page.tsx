/** The frame of a page's content. */
import type { ReactNode } from 'react'
import { useTitle } from './title.ts'

/** A page: one bar with its title, a short line and its main action, then its content in the whole width. */
export function Page({ title, about, action, narrow = false, children }: PageProps) {
  useTitle(title)
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
