/** Pages for dead ends: an unknown address, or a page that could not be shown. */
import { Link, useRouter } from '@tanstack/react-router'
import { CircleOff, Compass, Unplug } from 'lucide-react'
import { useEffect } from 'react'
import { Refused } from '../data/api.ts'
import { Button, buttonClass } from './button.tsx'
import { ExactLine } from './exact-text.tsx'
import { Empty } from './states.tsx'

export function Missing() {
  return (
    <div className="mx-auto max-w-xl px-4 py-16">
      <Empty
        icon={Compass}
        title="Page not found"
        action={
          <Link to="/" className={buttonClass({ kind: 'primary' })}>
            Go to the dashboard
          </Link>
        }
      >
        The address may be old, or it belongs to a workspace that you are not a member of.
      </Empty>
    </div>
  )
}

export function DisabledWorkspace({ name }: { name: string }) {
  return (
    <div className="mx-auto max-w-xl px-4 py-16">
      <Empty icon={CircleOff} title="This workspace is disabled">
        An operator of this instance disabled “<ExactLine text={name} />
        ”. Nothing was deleted, and nothing is sent. An operator can enable it.
      </Empty>
    </div>
  )
}

const againMsMin = 5_000

/** What passes is tried again without a click: what waits to be sent goes out only once a page is shown. */
function againAfterMs(error: unknown): number | undefined {
  if (!(error instanceof Refused)) return undefined
  const passes = error.status === 0 || error.status === 429 || error.status >= 500
  return passes ? Math.max(againMsMin, (error.retry_after ?? 0) * 1_000) : undefined
}

export function Stopped({ error }: { error: unknown }) {
  const router = useRouter()
  // Each failure is a new error, and begins a new wait.
  useEffect(() => {
    const waitMs = againAfterMs(error)
    if (waitMs === undefined) return
    const timer = setTimeout(() => void router.invalidate(), waitMs)
    return () => clearTimeout(timer)
  }, [router, error])
  return (
    <div className="mx-auto max-w-xl px-4 py-16">
      <Empty
        icon={Unplug}
        title="This page cannot be shown right now"
        action={
          <Button kind="primary" onClick={() => void router.invalidate()}>
            Try again
          </Button>
        }
      >
        {error instanceof Refused
          ? `${error.message}${againAfterMs(error) === undefined ? '' : ' Trying again in a moment.'}`
          : 'Something in the page itself went wrong. Nothing was changed.'}
      </Empty>
    </div>
  )
}
