/** A part of the preview. */
import type { ReactNode } from 'react'

export function Card({
  title,
  aside,
  children,
}: {
  title: ReactNode
  aside?: ReactNode
  children: ReactNode
}) {
  return (
    <section className="rounded-xl bg-surface px-3.5 py-3 ring-1 ring-line">
      <div className="mb-2 flex flex-wrap items-center gap-x-2">
        <h2 className="min-w-0 flex-1 truncate font-semibold">{title}</h2>
        <span className="text-xs text-muted">{aside}</span>
      </div>
      {children}
    </section>
  )
}
