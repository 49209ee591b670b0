/** The button that starts it, open when the preview is of this very draft: how many, from which accounts, and when first. */
import type { CampaignRequest } from '../../data/api-types.ts'
import { Button } from '../../ui/button.tsx'
import { momentWords } from './preview-load.tsx'
import type { Names } from './previews.ts'
import type { Preview } from './use-preview.ts'

interface StartLineProps {
  preview: Preview
  body: CampaignRequest | undefined
  names: Names
  count: number
  /** What is missing or wrong with the draft itself. */
  because: string | undefined
  busy: boolean
  onStart: (body: CampaignRequest) => void
}

export function StartLine({ preview, body, names, count, because, busy, onStart }: StartLineProps) {
  const { forecast, isCurrent } = preview
  const isOpen = because === undefined && isCurrent && forecast?.creatable === true && body !== undefined
  return (
    <div className="flex min-w-0 flex-wrap items-center justify-end gap-x-2.5 gap-y-1 max-[760px]:basis-full">
      <p
        role="status"
        className="min-w-0 text-right text-xs text-muted max-[760px]:flex-1 max-[760px]:text-left"
      >
        {isOpen ? planWords(preview, names) : !busy && (because ?? whyNot(preview))}
      </p>
      <Button
        kind="primary"
        size="small"
        busy={busy}
        disabled={!isOpen && !busy}
        onClick={() => body && onStart(body)}
      >
        {busy ? 'Starting' : 'Start'} with {count.toLocaleString('en')} {count === 1 ? 'person' : 'people'}
      </Button>
    </div>
  )
}

function whyNot({ forecast, isCurrent, error }: Preview): string {
  if (error !== undefined) return 'The preview was refused.'
  return isCurrent && forecast?.creatable === false
    ? 'Remove the people who can’t be messaged.'
    : 'Preparing the preview…'
}

/** From which accounts, and when the first message leaves. */
function planWords({ forecast }: Preview, names: Names): string {
  const accounts = [...new Set(forecast?.load.map(({ account_id }) => names.account(account_id)))].sort()
  const first = forecast?.timetable.flatMap(({ messages }) => messages.map(({ at }) => at)).sort()[0]
  if (accounts.length === 0 || first === undefined) return 'Nothing would be sent yet.'
  const more = accounts.length > 3 ? ` and ${accounts.length - 3} more` : ''
  return `From ${accounts.slice(0, 3).join(', ')}${more}, first ${momentWords(first, names.timezone)}`
}
