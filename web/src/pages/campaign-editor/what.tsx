/** What they read: the first message, and follow-ups with their waits and variants, in one track or two. */

import { Plus, Split } from 'lucide-react'
import { trackMax } from '../../../../src/rules/limits.ts'
import { newKey } from '../../data/kept.ts'
import { Button } from '../../ui/button.tsx'
import { Switch } from '../../ui/form.tsx'
import { cardClass, PlaceholderText } from '../../ui/placeholder-text.tsx'
import type { Change } from './campaign-draft.ts'
import {
  type Branch,
  type CampaignDraft,
  changeBranching,
  type DraftStep,
  type Faults,
  formOf,
  mayStopByHand,
  stopsByHand,
} from './campaign-draft.ts'
import { Step } from './step.tsx'

interface WhatProps {
  draft: CampaignDraft
  change: Change
  faults: Faults
}

export function What({ draft, change, faults }: WhatProps) {
  return (
    <section aria-labelledby="what" className="grid gap-2.5">
      <h2 id="what" className="text-sm font-semibold">
        What
      </h2>
      <div className={cardClass}>
        <h3 className="px-3.5 pb-0.5 pt-2.5 font-semibold">First message</h3>
        <PlaceholderText
          label="First message"
          value={draft.message_text}
          form={formOf(draft)}
          fault={faults.get('message_text')}
          hint="Write the first message"
          onChange={(message_text) => change((each) => ({ ...each, message_text }))}
        />
      </div>
      {draft.branching ? (
        <>
          <Track
            draft={draft}
            change={change}
            faults={faults}
            branch="seen"
            title="For those who have read it"
          />
          <Track
            draft={draft}
            change={change}
            faults={faults}
            branch="unseen"
            title="For those who have not"
          />
        </>
      ) : (
        <Track draft={draft} change={change} faults={faults} branch="no_reply" />
      )}
      {draft.steps.length > 0 && (
        <div>
          <Button
            kind="quiet"
            size="small"
            aria-pressed={draft.branching}
            onClick={() => change((each) => changeBranching(each, !each.branching))}
          >
            <Split aria-hidden className="size-3.5" />
            {draft.branching ? 'The same texts for everyone' : 'Different texts for those who read it'}
          </Button>
        </div>
      )}
      {mayStopByHand(draft) && <ByHand draft={draft} change={change} />}
    </section>
  )
}

function ByHand({ draft, change }: Pick<WhatProps, 'draft' | 'change'>) {
  const label = 'Stop when one of us writes by hand'
  return (
    <div className="flex items-start gap-3">
      <Switch
        label={label}
        checked={stopsByHand(draft)}
        onChange={(stop_on_own_message) => change((each) => ({ ...each, stop_on_own_message }))}
      />
      <p className="min-w-0">
        <span className="block font-medium">{label}</span>
        <span className="block text-xs text-soft">
          {stopsByHand(draft)
            ? 'A message to the person from the inbox or a phone, from any account, ends their follow-ups. So does a reply.'
            : 'Only a reply or an opt-out ends the follow-ups. They also go out after you have written by hand.'}
        </span>
      </p>
    </div>
  )
}

const newStep = (branch: Branch): DraftStep => ({
  id: newKey(),
  branch,
  wait: '2',
  unit: 'days',
  variants: [''],
})

function Track({ draft, change, faults, branch, title }: WhatProps & { branch: Branch; title?: string }) {
  const steps = draft.steps.flatMap((step, at) => (step.branch === branch ? [{ step, at }] : []))
  const set = (id: string, next: DraftStep | undefined) =>
    change((each) => ({
      ...each,
      steps: each.steps.flatMap((step) => (step.id === id ? (next ?? []) : step)),
    }))
  return (
    <div className={`grid gap-2.5 ${title === undefined ? '' : 'border-l-2 border-line pl-3'}`}>
      {title !== undefined && <h3 className="font-medium text-soft">{title}</h3>}
      {steps.map(({ step, at }, number) => (
        <Step
          key={step.id}
          step={step}
          label={`Follow-up ${number + 1}${title === undefined ? '' : `, ${title.toLowerCase()}`}`}
          title={`Follow-up ${number + 1}`}
          form={formOf(draft)}
          wait={faults.get(`wait ${at}`)}
          texts={step.variants.map((_, variant) => faults.get(`text ${at} ${variant}`))}
          onChange={(next) => set(step.id, next)}
          onRemove={() => set(step.id, undefined)}
        />
      ))}
      {steps.length < trackMax && (
        <div>
          <Button
            kind="quiet"
            size="small"
            onClick={() => change((each) => ({ ...each, steps: [...each.steps, newStep(branch)] }))}
          >
            <Plus aria-hidden className="size-3.5" />
            Follow-up
          </Button>
        </div>
      )}
    </div>
  )
}
