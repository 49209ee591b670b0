/**
 * A text with placeholders. It is a plain field, which every keyboard, screen reader and input method knows; a copy behind it
 * marks the placeholders, and each has a chip below with what people without a value read instead.
 */
import { Braces, Slash } from 'lucide-react'
import { createElement, type ReactNode, useId, useRef, useState } from 'react'
import { textMax } from '../../../src/rules/limits.ts'
import { findPlaceholders, forms, type PlaceholderForm, type Word } from '../../../src/rules/placeholders.ts'
import { lengthOf } from '../../../src/rules/text.ts'
import { useWorkspace } from '../data/place.ts'
import { Button } from './button.tsx'
import { ExactLine } from './exact-text.tsx'
import { placeholder, replacePlaceholders } from './placeholders.ts'
import { SavedReplies } from './saved-replies.tsx'

/** The frame of a text with its faults. */
export const cardClass =
  'rounded-xl ring-1 ring-line focus-within:ring-2 focus-within:ring-accent has-[[aria-invalid=true]]:ring-danger'

interface PlaceholderTextProps {
  label: string
  value: string
  form: PlaceholderForm
  fault: string | undefined
  hint?: string
  autoFocus?: boolean
  onChange: (text: string) => void
}

const shared =
  'col-start-1 row-start-1 w-full whitespace-pre-wrap px-3.5 py-1 text-[14.5px]/[22px] [overflow-wrap:anywhere]'

const fallbackOf: Readonly<Record<Word, string>> = { name: 'there', username: '' }

export function PlaceholderText({
  label,
  value,
  form,
  fault,
  hint,
  autoFocus,
  onChange,
}: PlaceholderTextProps) {
  const field = useRef<HTMLTextAreaElement>(null)
  const id = useId()
  const workspace = useWorkspace()
  const [isPicking, setPicking] = useState(false)
  const insert = (added: string) => {
    const { selectionStart = value.length, selectionEnd = value.length } = field.current ?? {}
    onChange(value.slice(0, selectionStart) + added + value.slice(selectionEnd))
    const caret = selectionStart + added.length
    requestAnimationFrame(() => {
      field.current?.focus()
      field.current?.setSelectionRange(caret, caret)
    })
  }
  return (
    <div>
      <div className="grid">
        <Marked text={value} form={form} />
        <textarea
          ref={field}
          aria-label={label}
          aria-invalid={fault !== undefined}
          aria-describedby={fault === undefined ? undefined : `${id}-fault`}
          // biome-ignore lint/a11y/noAutofocus: the user has just added it.
          autoFocus={autoFocus}
          value={value}
          placeholder={hint}
          rows={2}
          dir="auto"
          onChange={(event) => onChange(event.target.value)}
          className={`${shared} field-sizing-content relative block min-h-13 resize-none bg-transparent outline-none`}
        />
      </div>
      {fault !== undefined && (
        <p id={`${id}-fault`} role="alert" className="px-3.5 pt-1 text-xs text-danger">
          <ExactLine text={fault} />
        </p>
      )}
      <div className="relative flex flex-wrap items-center gap-1 px-2 pb-2 pt-1">
        {isPicking && workspace && (
          <SavedReplies
            workspace_id={workspace.id}
            text={value}
            below
            onPick={(text) => {
              setPicking(false)
              insert(text)
            }}
            onClose={() => {
              setPicking(false)
              field.current?.focus()
            }}
          />
        )}
        {forms[form].words.map((word) => (
          <Button
            key={word}
            kind="quiet"
            size="small"
            onClick={() => insert(placeholder(form, word, fallbackOf[word] || undefined))}
          >
            <Braces aria-hidden className="size-3.5" />
            {word === 'name' ? 'Name' : 'Username'}
          </Button>
        ))}
        <Button kind="quiet" size="small" aria-expanded={isPicking} onClick={() => setPicking(!isPicking)}>
          <Slash aria-hidden className="size-3.5" />
          Saved reply
        </Button>
        <Chips value={value} form={form} onChange={onChange} />
        <Length value={value} />
      </div>
    </div>
  )
}

function Length({ value }: { value: string }) {
  return (
    <span className="ml-auto px-1 text-xs text-muted">
      {lengthOf(value).toLocaleString('en')} of {textMax.toLocaleString('en')}
    </span>
  )
}

/** The same text behind the field, invisible but for the ground of its placeholders. */
function Marked({ text, form }: { text: string; form: PlaceholderForm }) {
  const parts: ReactNode[] = []
  let from = 0
  for (const { index, whole } of findPlaceholders(text, form).known) {
    parts.push(text.slice(from, index))
    parts.push(
      createElement(
        'span',
        { className: 'rounded-[5px] bg-accent-wash shadow-[0_0_0_2px_var(--accent-wash)]' },
        whole,
      ),
    )
    from = index + whole.length
  }
  // The break keeps a last, empty line as high as the field's.
  parts.push(`${text.slice(from)}\n`)
  // As arguments, not as a list: the parts need no keys.
  return createElement(
    'div',
    {
      'aria-hidden': true,
      dir: 'auto',
      className: `${shared} pointer-events-none select-none text-transparent`,
    },
    ...parts,
  )
}

function Chips({ value, form, onChange }: Pick<PlaceholderTextProps, 'value' | 'form' | 'onChange'>) {
  const { known } = findPlaceholders(value, form)
  const words = forms[form].words.flatMap((word) => known.find((each) => each.word === word) ?? [])
  return words.map(({ word, fallback = '' }) => (
    <label
      key={word}
      className="inline-flex h-7 items-center gap-1 rounded-md bg-accent-wash px-2 text-xs font-medium text-accent"
    >
      {word}, or
      <input
        aria-label={`What people without a ${word} read`}
        value={fallback}
        placeholder="left out"
        maxLength={100}
        onChange={(event) => {
          const text = event.target.value.replaceAll(/[[\]{}|]/g, '')
          onChange(
            replacePlaceholders(value, form, (found) =>
              found.word === word ? placeholder(form, word, text === '' ? undefined : text) : found.whole,
            ),
          )
        }}
        className="field-sizing-content min-w-12 max-w-40 rounded bg-transparent px-0.5 underline decoration-dotted underline-offset-3 placeholder:text-muted"
      />
    </label>
  ))
}
