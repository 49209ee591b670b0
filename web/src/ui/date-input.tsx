/** The browser's own field for a day or a time, which may show it in another order, and beside it the same in words. */
import type { ComponentProps } from 'react'

const day = { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' } as const
const words = {
  date: new Intl.DateTimeFormat('en-GB', { ...day, timeZone: 'UTC' }),
  'datetime-local': new Intl.DateTimeFormat('en-GB', {
    ...day,
    hour: '2-digit',
    minute: '2-digit',
    timeZone: 'UTC',
  }),
} as const

export interface DateInputProps extends Omit<ComponentProps<'input'>, 'onChange' | 'value' | 'type'> {
  type?: keyof typeof words
  value: string
  onChange: (value: string) => void
}

/** Undefined for what is no date. */
export function dateInWords(value: string, type: keyof typeof words = 'date'): string | undefined {
  // Both are local to their place, so no zone takes part.
  const at = Date.parse(type === 'date' ? value : `${value}Z`)
  return Number.isNaN(at) ? undefined : words[type].format(at)
}

export function DateInput({ type = 'date', value, onChange, ...rest }: DateInputProps) {
  const said = dateInWords(value, type)
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2">
      <input
        {...rest}
        type={type}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className="h-7 rounded-md bg-surface px-2 text-ink ring-1 ring-inset ring-line-strong aria-invalid:ring-danger pointer-coarse:h-11"
      />
      {said !== undefined && <span className="text-muted">{said}</span>}
    </span>
  )
}
