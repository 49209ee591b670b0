/** Why what a form describes has not started, or not yet. */
import { Refused } from '../data/api.ts'
import { isStored } from '../data/browser-store.ts'
import type { StartState } from '../data/use-start-form.ts'
import { Button } from './button.tsx'
import { Failure, Notice } from './notice.tsx'
import { Countdown } from './time.tsx'

interface StartNoticesProps {
  start: StartState
  thing: 'campaign' | 'broadcast'
}

export function StartNotices({ start, thing }: StartNoticesProps) {
  return (
    <>
      {start.error !== undefined && (
        <div>
          <Failure error={start.error} />
          <p className="mt-1 text-xs text-muted">{consequenceOf(start, thing)}</p>
        </div>
      )}
      {start.waiting && (
        <Notice tone="warn">
          {start.waiting.because} Next attempt in{' '}
          <Countdown calm until={start.waiting.until} label="Next attempt" />.
        </Notice>
      )}
      {start.busy && !isStored() && (
        <Notice tone="warn">
          This browser cannot store what you started, for example because its disk is full. Leave this tab
          open until the {thing} has started.
        </Notice>
      )}
      {start.stalled && (
        <Notice tone="warn">
          You started this {thing} some time ago, and this browser does not know whether it was created.
          <span className="mt-1.5 flex flex-wrap gap-1.5">
            <Button size="small" onClick={start.resume}>
              Start it, once
            </Button>
            <Button size="small" kind="quiet" onClick={start.giveUp}>
              Back to the draft
            </Button>
          </span>
        </Notice>
      )}
    </>
  )
}

function consequenceOf({ error, unsure }: StartState, thing: string): string {
  if (error instanceof Refused && error.code === 'idempotency_collision') {
    return `An earlier version of this ${thing} was started: look at the list before you start this one. Your draft is kept.`
  }
  return unsure
    ? `An earlier attempt may have started this ${thing}: look at the list. Started again unchanged, it won’t start twice.`
    : 'Nothing was started. Your draft is kept.'
}
