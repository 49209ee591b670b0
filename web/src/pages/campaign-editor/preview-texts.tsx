/** The texts as each of the first twenty recipients will read them. */
import { ChevronLeft, ChevronRight } from 'lucide-react'
import { useState } from 'react'
import { ExactLine, ExactText } from '../../ui/exact-text.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { momentWords } from './preview-load.tsx'
import type { Forecast, Names, RecipientIds } from './previews.ts'

type Texts = Forecast['texts'][number]
type StepTexts = Texts['messages'][number]

const idOf = ({ account_id, chat_id, identifier }: RecipientIds) => identifier ?? `${account_id} ${chat_id}`

export function PreviewTexts({ forecast, names }: { forecast: Forecast; names: Names }) {
  const [wanted, setWanted] = useState(0)
  const { texts, timetable } = forecast
  const at = Math.min(wanted, texts.length - 1)
  const one = texts[at]
  if (!one) return null
  const planned = timetable.find((row) => idOf(row) === idOf(one))?.messages ?? []
  return (
    <section className="rounded-xl bg-surface px-3.5 py-3 ring-1 ring-line">
      <div className="mb-1 flex items-center gap-1">
        <h2 className="flex min-w-0 flex-1 gap-1 font-semibold whitespace-nowrap">
          What <ExactLine text={names.recipient(one)} empty="this person" cut /> will read
        </h2>
        <IconButton label="The recipient before" disabled={at === 0} onClick={() => setWanted(at - 1)}>
          <ChevronLeft aria-hidden className="size-4" />
        </IconButton>
        <span className="whitespace-nowrap text-xs text-muted">
          {at + 1} of {texts.length}
        </span>
        <IconButton
          label="The next recipient"
          disabled={at >= texts.length - 1}
          onClick={() => setWanted(at + 1)}
        >
          <ChevronRight aria-hidden className="size-4" />
        </IconButton>
      </div>
      <ol className="grid gap-2.5">
        {one.messages.map((message) => (
          <Message
            key={`${message.step} ${message.branch}`}
            message={message}
            planned={planned.find((each) => each.step === message.step && fits(each.branch, message.branch))}
            names={names}
          />
        ))}
      </ol>
    </section>
  )
}

/** A plan assumes that nobody reads, so its follow-ups are those of the track `unseen`. */
const fits = (planned: string | null, shown: string | null) => planned === shown

interface MessageProps {
  message: StepTexts
  planned: Forecast['timetable'][number]['messages'][number] | undefined
  names: Names
}

function Message({ message: { step, branch, variants }, planned, names }: MessageProps) {
  const when = planned
    ? `${momentWords(planned.at, names.timezone)}, from ${names.account(planned.account_id)}`
    : branch === 'seen'
      ? 'If the message before was read'
      : 'Not planned'
  const letters = variants.map((_, at) => String.fromCharCode(65 + at))
  const choice = letters.length > 1 ? `, text ${letters.slice(0, -1).join(', ')} or ${letters.at(-1)}` : ''
  return (
    <li className="grid justify-items-end gap-1">
      <p className="text-right text-xs text-muted">
        {when}
        {step > 0 && ', if there is no reply'}
        {choice}
      </p>
      {variants.map((text, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a variant is its place.
        <div key={at} className="max-w-[88%] rounded-[14px_4px_14px_14px] bg-accent-wash px-3 py-2 text-sm/5">
          {text === null ? (
            <span className="text-muted">The name is known once the account has found the person.</span>
          ) : (
            <ExactText text={text} />
          )}
        </div>
      ))}
    </li>
  )
}
