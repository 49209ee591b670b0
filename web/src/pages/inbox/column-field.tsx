/** The value of one column, edited in place with the control for its type. */
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import type { Column } from '../../data/api-types.ts'
import { setColumn } from '../../data/chat-changes.ts'
import { type ChatRef, chatQuery } from '../../data/chats.ts'
import { useSession } from '../../data/place.ts'
import { placeOf } from '../../data/sending.ts'
import { useKept } from '../../data/use-kept.ts'
import { Button } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { colourClass, Tag } from '../../ui/face.tsx'
import { Failure } from '../../ui/notice.tsx'
import { Select } from '../../ui/select.tsx'

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
  return <TextField key={`${placeOf(chat)} ${column.id}`} chat={chat} column={column} value={value} />
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

const inputTypes = { number: 'text', date: 'date', url: 'url', text: 'text' } as const

/** What is typed, and the value that it replaces. */
interface Edit {
  readonly text: string
  readonly from: string
}

/**
 * A value that another user changed meanwhile is shown before it is overwritten. What is typed stays in its field until the service
 * has it.
 */
function TextField({ chat, column, value }: FieldProps) {
  const { user } = useSession()
  const { workspace_id } = chat
  const of = `${placeOf(chat)} ${column.id}`
  const { kept, isLoaded, change, discard } = useKept<Edit | null>(
    { user_id: user.id, workspace_id, kind: 'column', of },
    null,
  )
  const edit = kept.value
  const current = value[0] ?? ''
  const [other, setOther] = useState<string>()
  const [failure, setFailure] = useState<unknown>()
  const [isSaving, setSaving] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  const client = useQueryClient()
  const setEdit = (next: Edit) => change(() => next)
  const close = () => {
    setOther(undefined)
    setFailure(undefined)
    void discard()
  }
  const open = () => {
    setEdit({ text: current, from: current })
    // The field is there once this has been shown.
    setTimeout(() => field.current?.focus())
  }
  const write = async (text: string) => {
    setOther(undefined)
    const to = text === '' ? [] : [text]
    const failed = await setColumn(chat, { column, from: value, to, keeps: true })
    if (failed === undefined) return close()
    setFailure(failed)
  }
  const work = async (saving: () => Promise<void>) => {
    if (isSaving) return
    setSaving(true)
    setFailure(undefined)
    try {
      await saving()
    } catch (error) {
      // What the service cannot take stays in its field.
      setFailure(error)
    } finally {
      setSaving(false)
    }
  }
  const save = () =>
    work(async () => {
      const text = edit?.text.trim() ?? ''
      if (!edit || text === edit.from) return close()
      const { chat: now } = await client.fetchQuery({ ...chatQuery(chat), staleTime: 0 })
      const stored = now.columns.find(({ column_id }) => column_id === column.id)?.value[0] ?? ''
      if (stored === text) return close()
      if (stored !== edit.from) return setOther(stored)
      await write(text)
    })
  const overwrite = () => work(() => write(edit?.text.trim() ?? ''))
  const isDone = edit !== null && edit.from !== current && edit.text.trim() === current
  useEffect(() => {
    // The service had it before the page was reloaded.
    if (isDone && !isSaving) void discard()
  }, [isDone, isSaving, discard])
  const isOpen = edit !== null && !isDone
  if (!isOpen) {
    return (
      <button
        type="button"
        aria-label={`${column.name}: ${current || 'empty'}. Change`}
        disabled={!isLoaded}
        onClick={open}
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
        readOnly={isSaving}
        onChange={(event) => setEdit({ ...edit, text: event.target.value })}
        onBlur={() => other === undefined && !failure && void save()}
        onKeyDown={(event) => {
          if (event.key === 'Enter') void save()
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
            <Button size="small" onClick={() => void overwrite()}>
              Overwrite
            </Button>
            <Button size="small" kind="quiet" onClick={close}>
              Keep theirs
            </Button>
          </span>
        </span>
      )}
      {failure !== undefined && (
        <span className="grid gap-1 text-xs">
          <Failure error={failure} />
          <span className="flex flex-wrap gap-1">
            <Button size="small" onClick={() => void save()}>
              Try again
            </Button>
            <Button size="small" kind="quiet" onClick={close}>
              Discard
            </Button>
          </span>
        </span>
      )}
    </span>
  )
}
