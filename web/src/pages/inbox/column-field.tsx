/** The value of one column, edited in place with the control for its type. */
import { type KeyboardEvent, type ReactNode, useRef, useState } from 'react'
import type { Column } from '../../data/api-types.ts'
import { placeOf } from '../../data/sending.ts'
import { Button } from '../../ui/button.tsx'
import { DateInput, dateInWords } from '../../ui/date-input.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { colourClass, Tag } from '../../ui/face.tsx'
import { Select } from '../../ui/select.tsx'
import { ColumnNotices } from './column-notices.tsx'
import { type ColumnOfChat, useColumnEdit } from './use-column-edit.ts'

/** A field that looks like plain text until the pointer is over it. */
export const plainField = `-mx-1.5 h-7 w-[calc(100%+12px)] min-w-0 cursor-pointer appearance-none truncate rounded-md bg-transparent px-1.5 text-ink
  hover:bg-hover pointer-coarse:h-11 disabled:cursor-default disabled:text-muted`

/** A choice in its colour. */
export function tagField(colour: string | null | undefined): string {
  return `field-sizing-content h-5.5 max-w-full min-w-0 cursor-pointer appearance-none truncate rounded-[5px] bg-[color-mix(in_oklab,var(--c)_13%,var(--surface))] px-1.5
    text-xs font-medium text-(--c) pointer-coarse:h-11 ${colourClass(colour)}`
}

export function ColumnField(props: ColumnOfChat) {
  const { chat, column } = props
  const key = `${placeOf(chat)} ${column.id}`
  return controls[column.type] ? <ChoiceField key={key} {...props} /> : <TextField key={key} {...props} />
}

/** What is chosen is saved at once. */
function ChoiceField(props: ColumnOfChat) {
  const edit = useColumnEdit(props)
  const Control = controls[props.column.type]
  if (!Control) return null
  return (
    <div className="grid w-full min-w-0 justify-items-start gap-1">
      <Control column={props.column} value={edit.to ?? props.value} set={(to) => void edit.choose(to)} />
      <ColumnNotices edit={edit} chosen />
    </div>
  )
}

interface SetProps {
  column: Column
  value: readonly string[]
  set: (to: readonly string[]) => void
}

function Check({ column, value, set }: SetProps) {
  return (
    <input
      type="checkbox"
      aria-label={column.name}
      checked={value[0] === 'true'}
      onChange={(event) => set([String(event.target.checked)])}
      className="size-4 accent-accent"
    />
  )
}

function OneOption({ column, value, set }: SetProps) {
  const current = value[0] ?? ''
  const colour = column.options.find((option) => option.value === current)?.color
  return (
    <Select
      aria-label={column.name}
      value={current}
      options={[['', 'Empty'], ...column.options.map((option) => [option.value, option.value] as const)]}
      onChange={(chosen) => set(chosen === '' ? [] : [chosen])}
      className={current === '' ? `${plainField} !text-muted` : tagField(colour)}
    />
  )
}

function ManyOptions({ column, value, set }: SetProps) {
  const [isOpen, setOpen] = useState(false)
  if (!isOpen) {
    return (
      <button
        type="button"
        aria-label={`${column.name}: ${value.join(', ') || 'empty'}. Change`}
        onClick={() => setOpen(true)}
        className="-mx-1.5 flex min-h-7 w-[calc(100%+12px)] min-w-0 flex-wrap items-center gap-1 rounded-md px-1.5 text-left text-muted hover:bg-hover pointer-coarse:min-h-11"
      >
        {value.length === 0 && 'Empty'}
        {value.map((each) => (
          <Tag key={each} colour={column.options.find((option) => option.value === each)?.color}>
            {each}
          </Tag>
        ))}
      </button>
    )
  }
  return (
    <fieldset className="min-w-0 rounded-lg p-1.5 ring-1 ring-line">
      <legend className="sr-only">{column.name}</legend>
      {column.options.map((option) => (
        <label key={option.value} className="flex min-h-7 items-center gap-2 pointer-coarse:min-h-11">
          <input
            type="checkbox"
            checked={value.includes(option.value)}
            onChange={(event) =>
              set(
                event.target.checked
                  ? [...value, option.value]
                  : value.filter((each) => each !== option.value),
              )
            }
            className="size-4 shrink-0 accent-accent"
          />
          <span className="min-w-0">
            <Tag colour={option.color}>{option.value}</Tag>
          </span>
        </label>
      ))}
      <Button size="small" kind="quiet" onClick={() => setOpen(false)}>
        Done
      </Button>
    </fieldset>
  )
}

const controls: Partial<Record<Column['type'], (props: SetProps) => ReactNode>> = {
  select: OneOption,
  multi_select: ManyOptions,
  checkbox: Check,
}

/** Opens with a click. A value that another user changed meanwhile is shown before it is overwritten. */
function TextField(props: ColumnOfChat) {
  const { column, value } = props
  const edit = useColumnEdit(props)
  const { to, isLoaded, isSaving, failure, other, set, save, close } = edit
  const isDate = column.type === 'date'
  const current = value[0] ?? ''
  const field = useRef<HTMLInputElement>(null)
  const open = () => {
    set(value)
    // The field is there once this has been shown.
    setTimeout(() => field.current?.focus())
  }
  // A date of which a part is typed has no value: it would be deleted.
  const submit = () => {
    if (!isSaving && !field.current?.validity.badInput) void save()
  }
  if (to === undefined) {
    const said = (isDate && dateInWords(current)) || current
    return (
      <button
        type="button"
        aria-label={`${column.name}: ${said || 'empty'}. Change`}
        disabled={!isLoaded}
        onClick={open}
        className={`${plainField} text-left ${current === '' ? '!text-muted' : ''}`}
      >
        {current === '' ? 'Empty' : <ExactLine text={said} />}
      </button>
    )
  }
  const typed = {
    ref: field,
    'aria-label': column.name,
    value: to[0] ?? '',
    readOnly: isSaving,
    onBlur: () => other === undefined && !failure && submit(),
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key === 'Enter') submit()
      if (event.key === 'Escape') close()
    },
  }
  const type = (text: string) => set(text === '' ? [] : [text])
  return (
    <span className="grid w-full min-w-0 gap-1">
      {isDate ? (
        <DateInput {...typed} onChange={type} />
      ) : (
        <input
          {...typed}
          type={column.type === 'url' ? 'url' : 'text'}
          {...(column.type === 'number' && { inputMode: 'decimal' })}
          onChange={(event) => type(event.target.value)}
          className="-mx-1.5 h-7 w-[calc(100%+12px)] rounded-md bg-surface px-1.5 ring-1 ring-inset ring-accent outline-none pointer-coarse:h-11"
        />
      )}
      <ColumnNotices edit={edit} />
    </span>
  )
}
