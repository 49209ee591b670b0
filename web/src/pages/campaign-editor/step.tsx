/** A follow-up: how long it waits, and up to five texts of which each recipient gets one. */
import { Plus, Trash2 } from 'lucide-react'
import { useId, useState } from 'react'
import { variantsMax } from '../../../../src/rules/limits.ts'
import type { PlaceholderForm } from '../../../../src/rules/placeholders.ts'
import { IconButton } from '../../ui/icon-button.tsx'
import { cardClass, PlaceholderText } from '../../ui/placeholder-text.tsx'
import { Select } from '../../ui/select.tsx'
import { type DraftStep, type Unit, units } from './campaign-draft.ts'

interface StepProps {
  step: DraftStep
  /** Unique on the page. */
  label: string
  title: string
  form: PlaceholderForm
  /** What is wrong with the wait, and with each text. */
  wait: string | undefined
  texts: readonly (string | undefined)[]
  onChange: (step: DraftStep) => void
  onRemove: () => void
}

const letterOf = (at: number) => String.fromCharCode(65 + at)

export function Step({ step, label, title, form, wait, texts, onChange, onRemove }: StepProps) {
  const [wanted, setWanted] = useState(0)
  const at = Math.min(wanted, step.variants.length - 1)
  const several = step.variants.length > 1
  const add = () => {
    onChange({ ...step, variants: [...step.variants, ''] })
    setWanted(step.variants.length)
  }
  const remove = () => {
    if (!several) return onRemove()
    onChange({ ...step, variants: step.variants.filter((_, each) => each !== at) })
  }
  return (
    <>
      <Wait step={step} label={label} fault={wait} onChange={onChange} />
      <div className={cardClass}>
        <div className="flex items-center gap-1 py-1.5 pl-3.5 pr-2">
          <h3 className="min-w-0 flex-1 truncate font-semibold">{title}</h3>
          {several && (
            <fieldset aria-label={`Variants of ${label}`} className="flex rounded-lg bg-sunken p-0.5">
              {step.variants.map((_, each) => (
                <button
                  // biome-ignore lint/suspicious/noArrayIndexKey: a variant is its place.
                  key={each}
                  type="button"
                  aria-pressed={each === at}
                  aria-label={`Variant ${letterOf(each)}${texts[each] === undefined ? '' : ', has a fault'}`}
                  onClick={() => setWanted(each)}
                  className={`h-6 min-w-7 rounded-md px-2 text-xs font-medium pointer-coarse:h-10
                    ${each === at ? 'bg-surface text-ink shadow-card' : 'text-soft hover:text-ink'}
                    ${texts[each] === undefined ? '' : 'text-danger'}`}
                >
                  {letterOf(each)}
                </button>
              ))}
            </fieldset>
          )}
          {step.variants.length < variantsMax && (
            <IconButton label={`Add a variant to ${label}`} onClick={add}>
              <Plus aria-hidden className="size-3.5" />
            </IconButton>
          )}
          <IconButton
            label={several ? `Remove variant ${letterOf(at)} of ${label}` : `Remove ${label}`}
            onClick={remove}
          >
            <Trash2 aria-hidden className="size-3.5" />
          </IconButton>
        </div>
        <PlaceholderText
          key={at}
          label={several ? `${label}, variant ${letterOf(at)}` : label}
          value={step.variants[at] ?? ''}
          form={form}
          fault={texts[at]}
          hint="Write the follow-up"
          autoFocus={step.variants[at] === ''}
          onChange={(text) =>
            onChange({ ...step, variants: step.variants.map((each, index) => (index === at ? text : each)) })
          }
        />
      </div>
    </>
  )
}

interface WaitProps {
  step: DraftStep
  label: string
  fault: string | undefined
  onChange: (step: DraftStep) => void
}

const unitOptions = (Object.keys(units) as Unit[]).map((unit) => [unit, unit] as const)

const mini =
  'h-7 rounded-md bg-surface px-2 font-medium text-ink ring-1 ring-inset ring-line-strong pointer-coarse:h-11'

function Wait({ step, label, fault, onChange }: WaitProps) {
  const id = useId()
  return (
    <div className="ml-3.5 grid gap-1 border-l border-line-strong py-0.5 pl-3">
      <div className="flex flex-wrap items-center gap-2 text-muted">
        Wait
        <input
          aria-label={`Wait before ${label}`}
          aria-invalid={fault !== undefined}
          aria-describedby={fault === undefined ? undefined : id}
          inputMode="decimal"
          value={step.wait}
          onChange={(event) => onChange({ ...step, wait: event.target.value })}
          className={`${mini} w-14 text-right aria-invalid:ring-danger`}
        />
        <Select
          look="small"
          aria-label={`Unit of the wait before ${label}`}
          value={step.unit}
          options={unitOptions}
          onChange={(unit) => onChange({ ...step, unit })}
        />
        and, if there is no reply, send
      </div>
      {fault !== undefined && (
        <p id={id} role="alert" className="text-xs text-danger">
          {fault}
        </p>
      )}
    </div>
  )
}
