/** Beside the draft, always: who cannot be written to, what is sent on which day, and what each of the first twenty reads. */

import { RotateCw } from 'lucide-react'
import { useState } from 'react'
import { type Person, personKey } from '../../data/audience.ts'
import { Button } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Failure, Notice } from '../../ui/notice.tsx'
import { Countdown, useClock } from '../../ui/time.tsx'
import type { CampaignDraft, Change } from './campaign-draft.ts'
import { PreviewLoad } from './preview-load.tsx'
import { PreviewTexts } from './preview-texts.tsx'
import type { Forecast, Names, RecipientIds } from './previews.ts'
import type { Preview } from './use-preview.ts'

/** How the page calls accounts and recipients. */
interface PreviewProps {
  preview: Preview
  /** What is still to be written before there can be one. */
  missing: string | undefined
  count: number
  /** Chats that the request cannot even name. */
  groups: readonly Person[]
  names: Names
  change: Change
}

export function PreviewPane({ preview, missing, count, groups, names, change }: PreviewProps) {
  const { forecast, error, until } = preview
  return (
    <div className="grid content-start gap-3.5">
      {until !== undefined && (
        <Notice tone="info">
          The next preview is allowed in <Countdown calm until={until} label="Next preview" />.
        </Notice>
      )}
      {error !== undefined && !preview.busy && (
        <div className="grid justify-items-start gap-2">
          <div className="w-full">
            <Failure error={error} />
          </div>
          <Button size="small" onClick={preview.again}>
            <RotateCw aria-hidden className="size-3.5" />
            Preview again
          </Button>
        </div>
      )}
      {missing !== undefined && (
        <p className="text-muted">
          {missing}
          {!forecast &&
            ' Then the preview shows who gets what, when and from which account. It sends nothing.'}
        </p>
      )}
      <Excluded preview={preview} groups={groups} count={count} names={names} change={change} />
      {forecast && (
        <div className={`grid gap-3.5 ${preview.isCurrent ? '' : 'grayscale'}`}>
          <PreviewLoad forecast={forecast} names={names} stamp={<Stamp preview={preview} count={count} />} />
          <PreviewTexts forecast={forecast} names={names} />
        </div>
      )}
    </div>
  )
}

/** Of when it is, and whether the draft has changed since. */
function Stamp({ preview, count }: { preview: Preview; count: number }) {
  const { clock: clockOf } = useClock()
  const clock = preview.at === undefined ? '' : clockOf(new Date(preview.at).toISOString())
  if (preview.isCurrent) return `as of ${clock}`
  const part = preview.of !== undefined && !preview.whole && count > 20
  return (
    <span role="status" className="font-medium text-warn">
      {part ? 'the first 20 only' : `old: as of ${clock}`}
    </span>
  )
}

type ExcludedProps = Pick<PreviewProps, 'preview' | 'groups' | 'count' | 'names' | 'change'>

const warningWords: Readonly<Record<Forecast['warnings'][number], string | undefined>> = {
  already_in_campaign: 'Some people are already in a running campaign.',
  steps_truncated: 'Some follow-ups are not sent.',
  // The field says which instant was taken.
  scheduled_at_adjusted: undefined,
}

function Excluded({ preview, groups, count, names, change }: ExcludedProps) {
  const [shows, setShows] = useState(false)
  const { forecast, isCurrent } = preview
  const excluded = [
    ...(forecast?.excluded ?? []),
    ...groups.map(({ account_id, chat_id, sentence }) => ({
      ...{ account_id, chat_id, identifier: null, code: 'group' },
      sentence: sentence ?? undefined,
    })),
  ]
  const warnings = forecast?.warnings ?? []
  const said = warnings.flatMap((each) => warningWords[each] ?? [])
  const bySentence = Map.groupBy(excluded, ({ sentence, code }) => sentence ?? code)
  const leaveOut = () =>
    change((draft) => ({ ...draft, left_out: [...draft.left_out, ...excluded.map(keyOf)] }))
  return (
    <>
      {said.map((sentence) => (
        <Notice key={sentence} tone="warn">
          {sentence}
        </Notice>
      ))}
      {excluded.length > 0 && (
        <Notice
          tone="warn"
          after={
            <>
              <div className="flex flex-wrap gap-1.5">
                <Button size="small" disabled={forecast !== undefined && !isCurrent} onClick={leaveOut}>
                  Leave {excluded.length === 1 ? 'this one' : `these ${excluded.length.toLocaleString('en')}`}{' '}
                  out
                </Button>
                <Button size="small" kind="quiet" aria-expanded={shows} onClick={() => setShows(!shows)}>
                  {shows ? 'Hide them' : 'Show them'}
                  <span className="sr-only">: who cannot be written to</span>
                </Button>
              </div>
              {shows && (
                <ul
                  aria-label="Who cannot be written to"
                  className="mt-2 grid max-h-48 gap-1 overflow-y-auto"
                >
                  {excluded.slice(0, 200).map((one) => (
                    <li key={keyOf(one)} className="flex flex-wrap gap-x-2">
                      <ExactLine text={names.recipient(one)} empty="No name" />
                      <span className="text-xs/5 text-soft">{one.sentence}</span>
                    </li>
                  ))}
                </ul>
              )}
            </>
          }
        >
          <b className="font-semibold">
            {excluded.length.toLocaleString('en')} of {count.toLocaleString('en')} cannot be written to.
          </b>
          <ul className="my-1.5 grid gap-1">
            {[...bySentence].map(([sentence, those]) => (
              <li key={sentence} className="flex gap-2">
                <b className="min-w-4 text-right font-semibold">{those.length.toLocaleString('en')}</b>
                {sentence}
              </li>
            ))}
          </ul>
        </Notice>
      )}
    </>
  )
}

/** As the draft's `left_out` has it. */
function keyOf({ account_id, chat_id, identifier }: RecipientIds): CampaignDraft['left_out'][number] {
  return identifier ?? personKey({ account_id: account_id ?? '', chat_id: chat_id ?? '' })
}
