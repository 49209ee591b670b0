/** The one select: the browser's own, which loads nothing and works with every keyboard, finger and screen reader. */
import type { ComponentProps } from 'react'

const looks = {
  /** Of a form. */
  field: `h-9 w-full min-w-0 rounded-lg bg-surface px-3 pr-8 text-sm text-ink ring-1 ring-inset ring-line-strong transition-shadow
    hover:ring-muted focus:outline-2 focus:-outline-offset-1 focus:outline-accent disabled:opacity-60`,
  /** In a line of text. */
  small: `h-7 rounded-md bg-surface px-2 font-medium text-ink ring-1 ring-inset ring-line-strong pointer-coarse:h-11`,
  /** A filter in the bar of a page. */
  bar: `h-7 min-w-0 max-w-40 truncate rounded-lg bg-transparent px-1.5 text-xs font-medium text-soft hover:bg-hover
    max-[760px]:h-10 pointer-coarse:h-11`,
  /** Its `className` says. */
  bare: '',
} as const

/** What is sent, what people read, and whether it cannot be chosen now. */
export type Option<Value extends string> = readonly [value: Value, label: string, disabled?: boolean]

export interface SelectProps<Value extends string>
  extends Omit<ComponentProps<'select'>, 'value' | 'onChange' | 'children'> {
  look?: keyof typeof looks
  value: Value
  options: readonly Option<Value>[]
  onChange: (value: Value) => void
}

export function Select<Value extends string>(props: SelectProps<Value>) {
  const { look = 'bare', value, options, onChange, className = '', ...rest } = props
  return (
    <select
      {...rest}
      value={value}
      onChange={(event) => {
        const chosen = options.find(([each]) => each === event.target.value)
        if (chosen) onChange(chosen[0])
      }}
      className={`${looks[look]} ${className}`}
    >
      {options.map(([each, label, disabled]) => (
        <option key={each} value={each} disabled={disabled} className="bg-raised text-ink">
          {label}
        </option>
      ))}
    </select>
  )
}
