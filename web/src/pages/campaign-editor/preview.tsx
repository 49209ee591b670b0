/** Beside the draft, always: who cannot be written to, what is sent on which day, and what each of the first twenty reads. */
import { RotateCw } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { ExactLine } from '../../exact-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Failure, Notice } from '../../ui/notice.tsx'
import { Countdown } from '../../ui/time.tsx'
import { type CampaignDraft, type Person, personKey } from './campaign-draft.ts'
import type { Preview } from './editor-queries.ts'
import { PreviewLoad } from './preview-load.tsx'
import { PreviewTexts } from './preview-texts.tsx'
import type { Forecast } from './previews.ts'
import type { Change } from './who.tsx'

/** How the page calls accounts and recipients. */
export interface Names {
  readonly account: (id: string) => string
  readonly recipient: (one: RecipientIds) => string
  readonly timezone: string
}

export interface RecipientIds {
  readonly account_id: string | null
  readonly chat_id: string | null
  readonly identifier: string | null
}

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
  const clock = preview.at === undefined ? '' : new Date(preview.at).toLocaleTimeString('en-GB')
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
  already_in_campaign: 'Some of them are in another campaign that is under way.',
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
        <Notice tone="warn">
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
          <div className="flex flex-wrap gap-1.5">
            <Button
              size="small"
              className="pointer-coarse:h-11"
              disabled={forecast !== undefined && !isCurrent}
              onClick={leaveOut}
            >
              Leave {excluded.length === 1 ? 'this one' : `these ${excluded.length.toLocaleString('en')}`} out
            </Button>
            <Button
              size="small"
              kind="quiet"
              className="pointer-coarse:h-11"
              aria-expanded={shows}
              onClick={() => setShows(!shows)}
            >
              {shows ? 'Hide them' : 'Show them'}
            </Button>
          </div>
          {shows && (
            <ul aria-label="Who cannot be written to" className="mt-2 grid max-h-48 gap-1 overflow-y-auto">
              {excluded.slice(0, 200).map((one) => (
                <li key={keyOf(one)} className="flex flex-wrap gap-x-2">
                  <ExactLine text={names.recipient(one)} empty="No name" />
                  <span className="text-xs/5 text-soft">{one.sentence}</span>
                </li>
              ))}
            </ul>
          )}
        </Notice>
      )}
    </>
  )
}

/** As the draft's `left_out` has it. */
function keyOf({ account_id, chat_id, identifier }: RecipientIds): CampaignDraft['left_out'][number] {
  return identifier ?? personKey({ account_id: account_id ?? '', chat_id: chat_id ?? '' })
}

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
