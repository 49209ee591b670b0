/** One delivery: the exact body that is sent, and each attempt with what came back. */
import { useQuery } from '@tanstack/react-query'
import { deliveryQuery, outcomeOf, type WebhookRef } from '../../data/webhooks.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { ExactText } from '../../ui/exact-text.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { DeliveryBadge } from './state-badges.tsx'

interface DeliveryDialogProps {
  params: WebhookRef & { readonly delivery_id: string }
  onClose: () => void
}

export function DeliveryDialog({ params, onClose }: DeliveryDialogProps) {
  const query = useQuery(deliveryQuery(params))
  return (
    <Dialog open onClose={onClose} title={query.data?.delivery.type ?? 'Delivery'}>
      <Loaded query={query} rows={2}>
        {({ delivery: { state, event_id, body, tries, next_attempt_at } }) => (
          <div className="grid min-h-0 gap-4 overflow-y-auto">
            <p className="flex flex-wrap items-center gap-2 text-xs text-muted">
              <DeliveryBadge state={state} />
              <span className="font-mono">{event_id}</span>
              {next_attempt_at !== null && (
                <span>
                  Next attempt <Time at={next_attempt_at} ahead />
                </span>
              )}
            </p>
            <ForeignText label="Body" text={pretty(body)} />
            <ol aria-label="Attempts" className="grid gap-3">
              {tries.map((each) => (
                <li key={each.n} className="grid gap-1">
                  <p>
                    <span className="font-medium">Attempt {each.n}</span>: {outcomeOf(each)},{' '}
                    <Time at={each.at} />
                  </p>
                  {each.response !== null && each.response !== '' && (
                    <ForeignText label={`Answer to attempt ${each.n}`} text={each.response} />
                  )}
                </li>
              ))}
            </ol>
            {tries.length === 0 && <p className="text-muted">No attempt yet.</p>}
          </div>
        )}
      </Loaded>
    </Dialog>
  )
}

/** Strangers wrote it: the messages in an event, and whatever an endpoint answers. */
function ForeignText({ label, text }: { label: string; text: string }) {
  return (
    <figure className="overflow-hidden rounded-lg bg-sunken ring-1 ring-inset ring-line">
      <figcaption className="border-b border-line px-3 py-1.5 text-xs text-muted">{label}</figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the keyboard. */}
      <pre tabIndex={0} className="max-h-64 overflow-y-auto p-3 font-mono text-xs leading-5 text-ink">
        <ExactText text={text} />
      </pre>
    </figure>
  )
}

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}
