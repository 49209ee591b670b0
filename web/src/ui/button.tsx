/** The one button, and links that look like it. */
import { LoaderCircle } from 'lucide-react'
import type { ComponentProps } from 'react'

type Kind = 'primary' | 'secondary' | 'quiet' | 'danger'
type Size = 'normal' | 'small' | 'large'

const kinds: Record<Kind, string> = {
  primary: 'bg-accent text-accent-ink hover:bg-accent-hover',
  secondary: 'bg-surface text-ink ring-1 ring-inset ring-line hover:bg-hover',
  quiet: 'text-soft hover:bg-hover hover:text-ink',
  danger: 'bg-danger-solid text-danger-ink hover:opacity-90',
}
/** A finger needs 44 px, whatever the size. */
const sizes: Record<Size, string> = {
  small: 'h-7 gap-1.5 rounded-md px-2.5 text-xs pointer-coarse:h-11',
  normal: 'h-9 gap-2 rounded-lg px-3.5 text-sm pointer-coarse:h-11',
  large: 'h-11 gap-2 rounded-lg px-5 text-base',
}

export function buttonClass({ kind = 'secondary', size = 'normal' }: { kind?: Kind; size?: Size } = {}) {
  return `inline-flex shrink-0 items-center justify-center whitespace-nowrap font-medium transition-colors
    aria-disabled:opacity-60 disabled:opacity-60 ${kinds[kind]} ${sizes[size]}`
}

/** Within a sentence. */
export function LinkButton(props: Omit<ComponentProps<'button'>, 'className'>) {
  return (
    <button
      type="button"
      {...props}
      className="rounded font-medium text-soft underline underline-offset-3 hover:text-ink"
    />
  )
}

interface ShowThemProps {
  /** Read aloud after "Show them": there may be several on a page. */
  who: string
  shown: boolean
  onShow: (shown: boolean) => void
}

export function ShowThem({ who, shown, onShow }: ShowThemProps) {
  return (
    <LinkButton aria-expanded={shown} onClick={() => onShow(!shown)}>
      {shown ? 'Hide them' : 'Show them'}
      <span className="sr-only">: {who}</span>
    </LinkButton>
  )
}

interface ButtonProps extends ComponentProps<'button'> {
  kind?: Kind
  size?: Size
  /** In progress: it stays in place, keeps the focus, and ignores further clicks. */
  busy?: boolean
}

export function Button({
  kind,
  size,
  busy = false,
  className = '',
  children,
  onClick,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      aria-disabled={busy || undefined}
      onClick={(event) => (busy ? event.preventDefault() : onClick?.(event))}
      className={`${buttonClass({ ...(kind && { kind }), ...(size && { size }) })} ${className}`}
    >
      {busy && <LoaderCircle aria-hidden className="size-4 animate-spin" />}
      {children}
    </button>
  )
}
