/** The one form: labels above, help below, the service's refusal at the end, one submit button. */
import { type ComponentProps, createContext, type ReactNode, useContext, useId } from 'react'
import { useUnkept } from '../data/use-kept.ts'
import { Button } from './button.tsx'
import { DateInput, type DateInputProps } from './date-input.tsx'
import { Failure } from './notice.tsx'
import { Select, type SelectProps } from './select.tsx'

/** As much of a mutation as a form shows. */
export interface Change {
  readonly isPending: boolean
  readonly error: unknown
}

/** Where the buttons are: right in a dialog, below the fields on a page. */
export const Place = createContext<'page' | 'dialog'>('page')

interface FormProps {
  onSubmit: () => void
  change: Change
  /** The button's label. */
  action: string
  kind?: 'primary' | 'danger'
  disabled?: boolean
  /** Shown beside the button. */
  aside?: ReactNode
  /** Says so beside the button. */
  saved?: boolean
  /** The button is as wide as the fields. */
  wide?: boolean
  children?: ReactNode
}

export function Form(props: FormProps) {
  const { onSubmit, change, action, kind = 'primary', disabled = false, aside, wide = false } = props
  const inDialog = useContext(Place) === 'dialog'
  return (
    <form
      noValidate={false}
      className="flex min-h-0 flex-col gap-5"
      onSubmit={(event) => {
        event.preventDefault()
        if (!change.isPending && !disabled) onSubmit()
      }}
    >
      {/* In a dialog the fields scroll, and the buttons stay in sight. */}
      <div className={`grid gap-5 ${inDialog ? '-mx-6 min-h-0 overflow-y-auto px-6 py-1' : ''}`}>
        {props.children}
      </div>
      <Failure error={change.error} />
      <div className={`flex flex-wrap gap-2 ${inDialog ? 'justify-end' : ''}`}>
        {inDialog && aside}
        <Button
          type="submit"
          kind={kind}
          busy={change.isPending}
          disabled={disabled}
          className={wide ? 'w-full' : ''}
        >
          {action}
        </Button>
        {!inDialog && aside}
        {props.saved && (
          <span role="status" className="self-center text-accent">
            Saved
          </span>
        )}
      </div>
    </form>
  )
}

/** Shown while a form has changes that this browser keeps and the service does not have. */
export function DiscardChanges({ of, onDiscard }: { of: object | null; onDiscard: () => Promise<void> }) {
  if (of === null || Object.keys(of).length === 0) return null
  return (
    <Button kind="quiet" onClick={() => void onDiscard()}>
      Discard changes
    </Button>
  )
}

/** The label and the help of the field around. */
interface Described {
  id?: string
  'aria-describedby'?: string
}

const Labelled = createContext<Described>({})

export function Field({ label, help, children }: Labels & { children: ReactNode }) {
  const id = useId()
  const described = { id, ...(help && { 'aria-describedby': `${id}-help` }) }
  return (
    <div className="grid gap-1.5">
      <label htmlFor={id} className="font-medium text-ink">
        {label}
      </label>
      <Labelled.Provider value={described}>{children}</Labelled.Provider>
      {help && (
        <p id={`${id}-help`} className="text-xs text-muted">
          {help}
        </p>
      )}
    </div>
  )
}

const box = `w-full min-w-0 rounded-lg bg-surface px-3 text-sm text-ink ring-1 ring-inset ring-line-strong
  transition-shadow hover:ring-muted focus:outline-2 focus:-outline-offset-1 focus:outline-accent disabled:opacity-60`

interface TextProps extends Omit<ComponentProps<'input'>, 'onChange' | 'value'> {
  value: string
  onChange: (value: string) => void
}

export function TextInput({ className = '', onChange, ...rest }: TextProps) {
  const type = useUnkept(rest.value, onChange)
  return (
    <input
      {...useContext(Labelled)}
      autoComplete="off"
      {...rest}
      onChange={(event) => type(event.target.value)}
      className={`${box} h-9 ${className}`}
    />
  )
}

export function TextArea({ onChange, ...rest }: AreaProps) {
  const type = useUnkept(rest.value, onChange)
  return (
    <textarea
      {...useContext(Labelled)}
      dir="auto"
      {...rest}
      onChange={(event) => type(event.target.value)}
      className={`${box} resize-y py-2`}
    />
  )
}

export function FileInput({ accept, onFile }: { accept: string; onFile: (file: File | undefined) => void }) {
  return (
    <input
      {...useContext(Labelled)}
      type="file"
      accept={accept}
      onChange={(event) => onFile(event.target.files?.[0])}
      className={`${box} h-9 py-1.5`}
    />
  )
}

interface AreaProps extends Omit<ComponentProps<'textarea'>, 'onChange' | 'value'> {
  value: string
  onChange: (value: string) => void
}

interface Labels {
  label: string
  help?: ReactNode
}

/** Why an entry leaves the suppression list. */
export function ReasonField(props: Pick<TextProps, 'value' | 'onChange'>) {
  return (
    <TextField
      {...props}
      label="Reason"
      help="The audit log keeps it with your name."
      required
      maxLength={500}
    />
  )
}

export function TextField({ label, help, ...rest }: TextProps & Labels) {
  return (
    <Field label={label} help={help}>
      <TextInput {...rest} />
    </Field>
  )
}

export function SelectField<Value extends string>({ label, help, ...rest }: SelectProps<Value> & Labels) {
  return (
    <Field label={label} help={help}>
      <Labelled.Consumer>{(labelled) => <Select look="field" {...labelled} {...rest} />}</Labelled.Consumer>
    </Field>
  )
}

export function DateField({ label, help, ...rest }: DateInputProps & Labels) {
  return (
    <Field label={label} help={help}>
      <Labelled.Consumer>{(labelled) => <DateInput {...labelled} {...rest} />}</Labelled.Consumer>
    </Field>
  )
}

const zones = Intl.supportedValuesOf('timeZone')

export function ZoneField({ value, ...rest }: Omit<SelectProps<string>, 'options'> & Pick<Labels, 'help'>) {
  // The database may know zones that this browser does not.
  const known = zones.includes(value) ? zones : [value, ...zones]
  return <SelectField label="Time zone" value={value} options={known.map((zone) => [zone, zone])} {...rest} />
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
