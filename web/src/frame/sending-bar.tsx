/** At the lower edge of every page while nothing is sent: since when, and why. */
import { Link } from '@tanstack/react-router'
import { OctagonPause } from 'lucide-react'
import type { Answer } from '../data/api.ts'
import { useSession } from '../data/place.ts'
import { ExactLine } from '../ui/exact-text.tsx'
import { ClockTime } from '../ui/time.tsx'

/** Pages that fill the window leave it its place: see `data-sending-bar` in `styles.css`. */
export function SendingBar({ stop, since, reason }: Answer<'GET /sending'>) {
  const { user } = useSession()
  return (
    <aside
      data-sending-bar
      aria-label="Sending is stopped"
      className="fixed inset-x-0 bottom-0 z-20 flex h-(--sending-bar) items-center gap-2.5 border-t border-line bg-warn-wash px-4 sm:px-5"
    >
      <OctagonPause aria-hidden className="size-4 shrink-0 text-warn" />
      <p role="status" className="line-clamp-3 min-w-0 flex-1 text-ink lg:line-clamp-1">
        <b className="font-semibold">{stop}</b>{' '}
        {since && (
          <>
            Since <ClockTime at={String(since)} />.{' '}
          </>
        )}
        {reason !== null && <ExactLine text={reason} />}
      </p>
      {user.operator && (
        <Link
          to="/operator"
          search={{ view: 'sending' }}
          className="shrink-0 rounded-md px-1 font-medium text-warn underline underline-offset-2"
        >
          Sending
        </Link>
      )}
    </aside>
  )
}
