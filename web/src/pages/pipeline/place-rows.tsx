/** A list whose entries have an order: name, colour, up, down, delete. Each change is saved immediately. */
import { ArrowDown, ArrowUp, Trash2 } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { colourClass } from '../../ui/face.tsx'

/** The names that the API gives them. */
const colours = ['gray', 'blue', 'purple', 'pink', 'red', 'orange', 'yellow', 'green', 'teal']

const field = `h-8 min-w-0 rounded-md bg-surface px-2 ring-1 ring-inset ring-line-strong hover:ring-muted focus:outline-2
  focus:-outline-offset-1 focus:outline-accent pointer-coarse:h-11`

interface NameProps {
  label: string
  value: string
  max: number
  onChange: (name: string) => void
}

/** Saved on Enter or blur; Escape restores the old name. */
export function NameField({ label, value, max, onChange }: NameProps) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  const save = () => {
    const name = text.trim()
    if (name === '') setText(value)
    else if (name !== value) onChange(name)
  }
  return (
    <input
      aria-label={label}
      value={text}
      maxLength={max}
      onChange={(event) => setText(event.target.value)}
      onBlur={save}
      onKeyDown={(event) => {
        if (event.key === 'Enter') {
          event.preventDefault()
          save()
        }
        if (event.key === 'Escape' && text !== value) {
          event.stopPropagation()
          setText(value)
        }
      }}
      className={`${field} w-full basis-full sm:flex-1 sm:basis-auto`}
    />
  )
}

interface ColourProps {
  label: string
  value: string | null
  /** What is shown while none is chosen. */
  fallback?: string
  onChange: (colour: string | null) => void
}

export function ColourField({ label, value, fallback = 'gray', onChange }: ColourProps) {
  const own = value !== null && !colours.includes(value) ? [value] : []
  return (
    <span className={`flex shrink-0 items-center gap-1.5 ${colourClass(value ?? fallback)}`}>
      <span aria-hidden className="size-2.5 rounded-[3px] bg-(--c)" />
      <select
        aria-label={label}
        value={value ?? ''}
        onChange={(event) => onChange(event.target.value === '' ? null : event.target.value)}
        className={`${field} w-24`}
      >
        <option value="">Default</option>
        {[...own, ...colours].map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </span>
  )
}

interface PlaceProps {
  name: string
  /** From 0. */
  at: number
  count: number
  onPlace: (place: number) => void
  /** Undefined: it cannot be deleted. */
  onDelete: (() => void) | undefined
}

export function PlaceButtons({ name, at, count, onPlace, onDelete }: PlaceProps) {
  return (
    <span className="flex shrink-0">
      <RowButton label={`Move ${name} up`} disabled={at === 0} onClick={() => onPlace(at)}>
        <ArrowUp aria-hidden className="size-4" />
      </RowButton>
      <RowButton label={`Move ${name} down`} disabled={at === count - 1} onClick={() => onPlace(at + 2)}>
        <ArrowDown aria-hidden className="size-4" />
      </RowButton>
      <RowButton label={`Delete ${name}`} disabled={!onDelete} onClick={() => onDelete?.()}>
        <Trash2 aria-hidden className="size-4" />
      </RowButton>
    </span>
  )
}

interface RowButtonProps {
  label: string
  disabled?: boolean
  onClick: () => void
  children: ReactNode
}

/** Stays focusable while it does nothing, so that the focus is not lost at the ends of the list. */
function RowButton({ label, disabled = false, onClick, children }: RowButtonProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      aria-disabled={disabled || undefined}
      onClick={() => !disabled && onClick()}
      className="grid size-8 place-items-center rounded-md text-muted hover:bg-hover hover:text-ink aria-disabled:cursor-default aria-disabled:opacity-40 pointer-coarse:size-11"
    >
      {children}
    </button>
  )
}
