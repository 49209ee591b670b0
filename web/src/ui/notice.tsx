/** A line the user must see: an error, a warning, a success. */
import { CircleCheck, Info, OctagonAlert, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { Refused } from '../data/api.ts'

type Tone = 'danger' | 'warn' | 'good' | 'info'

const tones: Record<Tone, { icon: typeof Info; look: string }> = {
  danger: { icon: OctagonAlert, look: 'bg-danger-wash text-danger' },
  warn: { icon: TriangleAlert, look: 'bg-warn-wash text-warn' },
  good: { icon: CircleCheck, look: 'bg-accent-wash text-accent' },
  info: { icon: Info, look: 'bg-sunken text-muted' },
}

interface NoticeProps {
  tone: Tone
  children: ReactNode
  /** What belongs to it and is not announced, such as what a button in it shows. */
  after?: ReactNode
}

export function Notice({ tone, children, after }: NoticeProps) {
  const { icon: Icon, look } = tones[tone]
  return (
    <div className={`flex gap-2.5 rounded-lg px-3.5 py-2.5 ${look}`}>
      <Icon aria-hidden className="mt-0.5 size-4 shrink-0" />
      <div className="min-w-0 text-ink [overflow-wrap:anywhere]">
        <div role={tone === 'danger' ? 'alert' : 'status'}>{children}</div>
        {after}
      </div>
    </div>
  )
}

/** The service's own sentence and, for a bug, the number that finds it in the log. */
export function Failure({ error, again = 'Try again' }: FailureProps) {
  if (!error) return null
  const known = error instanceof Refused
  return (
    <Notice tone="danger">
      {known ? error.message : 'Something went wrong on this page. Reload it and try again.'}
      {known && error.retry_after !== undefined && ` ${again} in ${error.retry_after} s.`}
      {known && error.status >= 500 && error.request_id && (
        <span className="mt-0.5 block font-mono text-xs text-soft">Request {error.request_id}</span>
      )}
    </Notice>
  )
}

interface FailureProps {
  error: unknown
  /** Who acts once the wait is over: the user, unless the page does. */
  again?: string
}
