/** A button that is an icon; its label is read aloud and shown as a title. */
import type { ComponentProps } from 'react'

interface IconButtonProps extends ComponentProps<'button'> {
  label: string
  keys?: string
}

export function IconButton({ label, keys, ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={keys === undefined ? label : `${label} (${keys})`}
      {...rest}
      className="grid size-7 shrink-0 place-items-center rounded-md text-soft hover:bg-hover hover:text-ink aria-disabled:cursor-default aria-disabled:opacity-40 pointer-coarse:size-11"
    />
  )
}
