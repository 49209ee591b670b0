/** The one form: labels above, help below, the service's refusal at the end, one submit button. */
import { type ComponentProps, createContext, type ReactNode, useContext, useId } from 'react'
import { Button } from './button.tsx'
import { Failure } from './notice.tsx'

interface FormProps {
  onSubmit: () => void
  busy: boolean
  error: unknown
  /** The button's label. */
  action: string
  kind?: 'primary' | 'danger'
  disabled?: boolean
  /** Shown beside the button. */
  aside?: ReactNode
  /** Where the buttons are: right in a dialog, below the fields on a page, full width on the sign-in pages. */
  align?: 'start' | 'end' | 'wide'
  children: ReactNode
}

export function Form(props: FormProps) {
  const { onSubmit, busy, error, action, kind = 'primary', disabled = false, aside, align = 'start' } = props
  return (
    <form
      noValidate={false}
      className="flex min-h-0 flex-col gap-5"
      onSubmit={(event) => {
        event.preventDefault()
        if (!busy && !disabled) onSubmit()
      }}
    >
      {/* In a dialog the fields scroll, and the buttons stay in sight. */}
      <div className={`grid gap-5 ${align === 'end' ? '-mx-6 min-h-0 overflow-y-auto px-6 py-1' : ''}`}>
        {props.children}
      </div>
      <Failure error={error} />
      <div className={`flex flex-wrap gap-2 ${align === 'end' ? 'justify-end' : ''}`}>
        {align === 'end' && aside}
        <Button
          type="submit"
          kind={kind}
          busy={busy}
          disabled={disabled}
          className={align === 'wide' ? 'w-full' : ''}
        >
          {action}
        </Button>
        {align === 'start' && aside}
      </div>
    </form>
  )
}

interface Described {
  id: string
  'aria-describedby'?: string
}

const Labelled = createContext<Described>({ id: '' })

export function Field({ label, help, children }: { label: string; help?: ReactNode; children: ReactNode }) {
  const id = useId()
  const described = { id, ...(help !== undefined && { 'aria-describedby': `${id}-help` }) }
  return (
    <div className="grid gap-1.5">
      <label htmlFor={id} className="font-medium text-ink">
        {label}
      </label>
      <Labelled.Provider value={described}>{children}</Labelled.Provider>
      {help !== undefined && (
        <p id={`${id}-help`} className="text-xs text-muted">
          {help}
        </p>
      )}
    </div>
  )
}

const box = `w-full min-w-0 rounded-lg bg-surface px-3 text-sm text-ink ring-1 ring-inset ring-line-strong
  transition-shadow hover:ring-muted focus:outline-2 focus:-outline-offset-1 focus:outline-accent disabled:opacity-60`

export function TextInput({ className = '', ...rest }: ComponentProps<'input'>) {
  return <input {...useContext(Labelled)} {...rest} className={`${box} h-9 ${className}`} />
}

export function Select({ className = '', ...rest }: ComponentProps<'select'>) {
  return <select {...useContext(Labelled)} {...rest} className={`${box} h-9 pr-8 ${className}`} />
}

interface ChoiceProps extends Omit<ComponentProps<'input'>, 'type'> {
  type?: 'checkbox' | 'radio'
  label: string
  help?: ReactNode
  /** `warn` for what should not be granted lightly. */
  tone?: 'plain' | 'warn'
}

/** A checkbox with one line on what it means: a row of a list of choices. */
export function Choice({ label, help, tone = 'plain', type = 'checkbox', ...rest }: ChoiceProps) {
  const id = useId()
  return (
    <label
      className={`flex min-h-11 items-center gap-3 px-3 py-[3px] transition-colors hover:bg-hover
        has-focus-visible:outline-2 has-focus-visible:-outline-offset-2 has-focus-visible:outline-accent
        has-checked:bg-accent-wash ${tone === 'warn' ? 'has-checked:bg-warn-wash' : ''}`}
    >
      <input
        type={type}
        aria-labelledby={`${id}-label`}
        aria-describedby={`${id}-help`}
        {...rest}
        className="size-4 shrink-0 accent-accent"
      />
      <span className="min-w-0">
        <span id={`${id}-label`} className="block font-medium text-ink">
          {label}
        </span>
        <span id={`${id}-help`} className="block text-xs text-soft">
          {help}
        </span>
      </span>
    </label>
  )
}

/** Choices as one list. */
export function Choices({ legend, children }: { legend: string; children: ReactNode }) {
  return (
    <fieldset>
      <legend className="mb-1.5 font-medium">{legend}</legend>
      <div className="grid divide-y divide-line overflow-hidden rounded-lg ring-1 ring-line">{children}</div>
    </fieldset>
  )
}

interface SwitchProps {
  label: string
  checked: boolean
  disabled?: boolean
  onChange: (checked: boolean) => void
}

/** On or off, effective immediately: it is not part of a submitted form. */
export function Switch({ label, checked, disabled = false, onChange }: SwitchProps) {
  return (
    <input
      type="checkbox"
      role="switch"
      aria-label={label}
      aria-checked={checked}
      checked={checked}
      disabled={disabled}
      onChange={(event) => onChange(event.target.checked)}
      className="relative h-6 w-10 shrink-0 cursor-pointer appearance-none rounded-full bg-line-strong transition-colors
        before:absolute before:left-1 before:top-1 before:size-4 before:rounded-full before:bg-surface before:transition-transform
        checked:bg-accent checked:before:translate-x-4 disabled:cursor-default disabled:opacity-60"
    />
  )
}
