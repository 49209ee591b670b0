/** The words for campaigns, their recipients and their steps. */

import type { Campaign, Progress, Totals } from '../../data/campaigns.ts'
import { splitHidden } from '../../data/hidden-characters.ts'

type Tone = 'plain' | 'good' | 'warn' | 'danger'

export const campaignStates: Readonly<Record<Progress['status'], readonly [Tone, string]>> = {
  scheduled: ['plain', 'Scheduled'],
  queued: ['plain', 'Queued'],
  sending: ['good', 'Sending'],
  paused: ['warn', 'Paused'],
  cancelled: ['plain', 'Cancelled'],
  completed: ['plain', 'Done'],
}

/** What to type before it is cancelled: its name, or the end of its id if nobody could type its name. */
export function titleOf({ id, name }: { readonly id: string; readonly name: string | null }): string {
  const text = name ?? ''
  const canBeTyped = text === text.replaceAll(/\s+/g, ' ').trim() && splitHidden(text).length === 1
  return text !== '' && canBeTyped ? text : `Campaign ${id.slice(-6)}`
}

export function countAll(totals: Totals): number {
  return Object.values(totals).reduce((sum, each) => sum + each, 0)
}

export const isOpen = (status: Progress['status']) => status !== 'completed' && status !== 'cancelled'

export const people = (count: number) => (count === 1 ? '1 person' : `${count.toLocaleString('en')} people`)

/** `First message`, `Follow-up 1, after 2 days`, with its branch where there are several. */
export function stepName(step: number, branch: string | null, steps: Campaign['steps']): string {
  if (step === 0) return 'First message'
  const track = steps.filter((each) => branch === null || each.branch === branch)
  const wait = track[step - 1]?.wait_hours
  const branched = new Set(steps.map((each) => each.branch)).size > 1
  const words = [
    `Follow-up ${step}`,
    ...(wait === undefined || (branch === null && branched) ? [] : [`after ${duration(wait)}`]),
    ...(branched && branch !== null ? [branchWords[branch] ?? branch] : []),
  ]
  return words.join(', ')
}

const branchWords: Readonly<Record<string, string>> = {
  no_reply: 'without a reply',
  seen: 'if read',
  unseen: 'if not read',
}

function duration(hours: number): string {
  const [count, unit] = hours >= 48 && hours % 24 === 0 ? [hours / 24, 'day'] : [hours, 'hour']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** A, B, C. */
export const variantName = (variant: number | null) =>
  variant === null ? '' : String.fromCharCode(65 + variant)
