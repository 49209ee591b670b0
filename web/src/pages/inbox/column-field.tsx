/** The value of one column, edited in place with the control for its type. */
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import type { Column } from '../../api-types.ts'
import { ExactLine } from '../../exact-text.tsx'
import { Button } from '../../ui/button.tsx'
import { colourClass, Tag } from '../../ui/face.tsx'
import { setColumn } from './chat-changes.ts'
import { type ChatRef, chatQuery } from './inbox-queries.ts'

/** A field that looks like plain text until the pointer is over it. */
export const plainField = `-mx-1.5 h-7 w-[calc(100%+12px)] min-w-0 cursor-pointer appearance-none truncate rounded-md bg-transparent px-1.5 text-ink
  hover:bg-hover pointer-coarse:h-11 disabled:cursor-default disabled:text-muted`

/** A choice in its colour. */
export function tagField(colour: string | null | undefined): string {
  return `field-sizing-content h-5.5 max-w-full min-w-0 cursor-pointer appearance-none truncate rounded-[5px] bg-[color-mix(in_oklab,var(--c)_13%,var(--surface))] px-1.5
    text-xs font-medium text-(--c) pointer-coarse:h-11 ${colourClass(colour)}`
}

interface FieldProps {
  chat: ChatRef
  column: Column
  value: readonly string[]
}

export function ColumnField({ chat, column, value }: FieldProps) {
  const set = (to: readonly string[]) => void setColumn(chat, { column, from: value, to })
  if (column.type === 'select') return <OneOption column={column} value={value} set={set} />
  if (column.type === 'multi_select') return <ManyOptions column={column} value={value} set={set} />
  if (column.type === 'checkbox') {
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
  return <TextField chat={chat} column={column} value={value} set={set} />
}

interface SetProps {
  column: Column
  value: readonly string[]
  set: (to: readonly string[]) => void
}

function OneOption({ column, value, set }: SetProps) {
  const current = value[0] ?? ''
  const colour = column.options.find((option) => option.value === current)?.color
  return (
    <select
      aria-label={column.name}
      value={current}
      onChange={(event) => set(event.target.value === '' ? [] : [event.target.value])}
      className={current === '' ? `${plainField} !text-muted` : tagField(colour)}
    >
      <option value="" className="bg-raised text-ink">
        Empty
      </option>
      {column.options.map((option) => (
        <option key={option.value} value={option.value} className="bg-raised text-ink">
          {option.value}
        </option>
      ))}
    </select>
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

const inputTypes = { number: 'text', date: 'date', url: 'url', text: 'text' } as const

/** A value that another user changed meanwhile is shown before it is overwritten. */
function TextField({ chat, column, value, set }: SetProps & { chat: ChatRef }) {
  const current = value[0] ?? ''
  const [edit, setEdit] = useState<{ text: string; from: string }>()
  const [other, setOther] = useState<string>()
  const field = useRef<HTMLInputElement>(null)
  const client = useQueryClient()
  const isEditing = edit !== undefined
  useEffect(() => {
    if (isEditing) field.current?.focus()
  }, [isEditing])
  const close = () => {
    setEdit(undefined)
    setOther(undefined)
  }
  const write = (text: string) => {
    set(text === '' ? [] : [text])
    close()
  }
  const save = async () => {
    const text = edit?.text.trim() ?? ''
    if (!edit || text === edit.from) return close()
    const { chat: now } = await client.fetchQuery({ ...chatQuery(chat), staleTime: 0 })
    const stored = now.columns.find(({ column_id }) => column_id === column.id)?.value[0] ?? ''
    if (stored !== edit.from && stored !== text) return setOther(stored)
    write(text)
  }
  if (!edit) {
    return (
      <button
        type="button"
        aria-label={`${column.name}: ${current || 'empty'}. Change`}
        onClick={() => setEdit({ text: current, from: current })}
        className={`${plainField} text-left ${current === '' ? '!text-muted' : ''}`}
      >
        {current === '' ? 'Empty' : <ExactLine text={current} />}
      </button>
    )
  }
  return (
    <span className="grid w-full min-w-0 gap-1">
      <input
        ref={field}
        aria-label={column.name}
        type={inputTypes[column.type as keyof typeof inputTypes]}
        {...(column.type === 'number' && { inputMode: 'decimal' })}
        value={edit.text}
        onChange={(event) => setEdit({ ...edit, text: event.target.value })}
        onBlur={() => other === undefined && void save().catch(close)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') void save().catch(close)
          if (event.key === 'Escape') close()
        }}
        className="-mx-1.5 h-7 w-[calc(100%+12px)] rounded-md bg-surface px-1.5 ring-1 ring-inset ring-accent outline-none pointer-coarse:h-11"
      />
      {other !== undefined && (
        <span role="alert" className="grid gap-1 rounded-md bg-warn-wash p-1.5 text-xs">
          <span>
            Meanwhile changed to <ExactLine text={other} empty="empty" />.
          </span>
          <span className="flex flex-wrap gap-1">
            <Button size="small" onClick={() => write(edit.text.trim())}>
              Overwrite
            </Button>
            <Button size="small" kind="quiet" onClick={close}>
              Keep theirs
            </Button>
          </span>
        </span>
      )}
    </span>
  )
}
