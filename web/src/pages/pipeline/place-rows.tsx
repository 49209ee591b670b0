/** A list whose entries have an order: name, colour, up, down, delete. Each change is saved immediately. */
import { ArrowDown, ArrowUp, Trash2 } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { nameMax } from '../../../../src/rules/limits.ts'
import { useUnkept } from '../../data/use-kept.ts'
import { Button } from '../../ui/button.tsx'
import { colourClass } from '../../ui/face.tsx'
import { type Change, TextInput } from '../../ui/form.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Failure } from '../../ui/notice.tsx'
import { Select } from '../../ui/select.tsx'

/** The names that the API gives them. */
const colours = ['gray', 'blue', 'purple', 'pink', 'red', 'orange', 'yellow', 'green', 'teal']

const field = `h-8 min-w-0 rounded-md bg-surface px-2 ring-1 ring-inset ring-line-strong hover:ring-muted focus:outline-2
  focus:-outline-offset-1 focus:outline-accent pointer-coarse:h-11`

interface NameProps {
  label: string
  value: string
  onChange: (name: string) => void
}

interface AddProps {
  label: string
  placeholder: string
  action: ReactNode
  change: Change
  onAdd: (name: string, done: { onSuccess: () => void }) => void
  kind?: 'quiet' | 'secondary'
  /** What else is chosen. */
  children?: ReactNode
}

/** Adds an entry by its name. */
export function AddForm({ label, placeholder, action, change, onAdd, kind, children }: AddProps) {
  const [text, setText] = useState('')
  const name = text.trim()
  return (
    <form
      className="grid gap-2"
      onSubmit={(event) => {
        event.preventDefault()
        if (name !== '' && !change.isPending) onAdd(name, { onSuccess: () => setText('') })
      }}
    >
      <Failure error={change.error} />
      <div className="flex flex-wrap gap-2 sm:flex-nowrap">
        <TextInput
          aria-label={label}
          placeholder={placeholder}
          maxLength={nameMax}
          value={text}
          onChange={setText}
        />
        {children}
        <Button type="submit" {...(kind && { kind })} disabled={name === ''} busy={change.isPending}>
          {action}
        </Button>
      </div>
    </form>
  )
}

/** Saved on Enter or blur; Escape restores the old name. */
export function NameField({ label, value, onChange }: NameProps) {
  const [text, setText] = useState(value)
  const [saved, setSaved] = useState(value)
  if (saved !== value) {
    setSaved(value)
    setText(value)
  }
  const type = useUnkept(text, setText, value)
  const save = () => {
    const name = text.trim()
    if (name === '') setText(value)
    else if (name !== value) onChange(name)
  }
  return (
    <input
      aria-label={label}
      value={text}
      maxLength={nameMax}
      onChange={(event) => type(event.target.value)}
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
      <Select
        look="small"
        aria-label={label}
        value={value ?? ''}
        options={[['', 'Default'], ...[...own, ...colours].map((name) => [name, name] as const)]}
        onChange={(name) => onChange(name || null)}
        className="w-24"
      />
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
    <IconButton label={label} aria-disabled={disabled || undefined} onClick={() => !disabled && onClick()}>
      {children}
    </IconButton>
  )
}
