/** A message that this browser is sending: it is not in the timeline yet, and its outcome is unknown. */
import { Check, Clock3 } from 'lucide-react'
import { ExactLine, ExactText } from '../../exact-text.tsx'
import { Button } from '../../ui/button.tsx'
import { ClockTime, Countdown } from '../../ui/time.tsx'
import { type PendingSend, resume, takeBack } from './sending.ts'
import { Bubble, OwnState } from './timeline-items.tsx'

export function PendingItem({ pending }: { pending: PendingSend }) {
  const { entry, because, until, progress, stalled, message_id } = pending
  return (
    <article aria-label="Message from us" className="mt-2 max-w-[min(86%,520px)] self-end">
      <Bubble own faint>
        {entry.file && (
          <span className="block font-medium">
            <ExactLine text={entry.file.name} empty="A file" />
          </span>
        )}
        {entry.text !== '' && <ExactText text={entry.text} />}
      </Bubble>
      {message_id !== null ? (
        <OwnState icon={<Check aria-hidden className="size-3.5 shrink-0 text-accent" />}>Accepted</OwnState>
      ) : (
        <OwnState icon={<Clock3 aria-hidden className="size-3.5 shrink-0" />}>
          {stalled ? (
            <>
              Parley was not reached since <ClockTime at={entry.sent_at} />, so it is not known whether this
              was sent. Asking again cannot send it twice.
            </>
          ) : (
            <span role="status">
              Sending{progress !== null && progress < 1 && `, ${Math.round(progress * 100)} %`}
              {because !== null && `. ${because}`}
            </span>
          )}
          {!stalled && because !== null && until !== null && (
            <>
              {' '}
              Next in <Countdown calm until={until} label="Next attempt" />
            </>
          )}
        </OwnState>
      )}
      {stalled && (
        <div className="mt-1.5 flex flex-wrap justify-end gap-1.5">
          <Button size="small" onClick={() => resume(pending)}>
            Ask again
          </Button>
          <Button size="small" onClick={() => void takeBack(pending)}>
            Take it back
          </Button>
        </div>
      )}
    </article>
  )
}
