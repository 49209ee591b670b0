/** A message that this browser is sending: it is not in the timeline yet, and its outcome is unknown. */
import { Check, Clock3 } from 'lucide-react'
import { type PendingSend, resume, takeBack } from '../../data/sending.ts'
import { Button } from '../../ui/button.tsx'
import { ExactLine, ExactText } from '../../ui/exact-text.tsx'
import { ClockTime, Countdown } from '../../ui/time.tsx'
import { Bubble, OwnState } from './timeline-items.tsx'

export function PendingItem({ pending }: { pending: PendingSend }) {
  const { entry, because, until, progress, stalled, message_id } = pending
  const all = entry.part + entry.files.length
  return (
    <article aria-label="Message from us" className="mt-2 max-w-[min(86%,520px)] self-end">
      <Bubble own faint>
        {entry.files.map((file, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two files may be alike, and they keep their order.
          <span key={at} className="block font-medium">
            <ExactLine text={file.name} empty="A file" />
          </span>
        ))}
        {entry.body !== '' && <ExactText text={String(entry.body)} />}
      </Bubble>
      {message_id !== null ? (
        <OwnState icon={<Check aria-hidden className="size-3.5 shrink-0 text-accent" />}>Accepted</OwnState>
      ) : (
        <OwnState icon={<Clock3 aria-hidden className="size-3.5 shrink-0" />}>
          {stalled ? (
            <>
              Parley has been unreachable since <ClockTime at={entry.at} />, so we don’t know yet whether this
              was sent. Trying again won’t send it twice.
            </>
          ) : (
            <span role="status">
              Sending{all > 1 && ` file ${entry.part + 1} of ${all}`}
              {progress !== null && progress < 1 && `, ${Math.round(progress * 100)} %`}
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
            Try again
          </Button>
          <Button size="small" onClick={() => void takeBack(pending)}>
            Take it back
          </Button>
        </div>
      )}
    </article>
  )
}
