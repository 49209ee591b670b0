/** Faults on demand: what the platform does wrong, to which account, how often. */
import { ApiError } from '../../lib/errors.ts'
import { type PlatformRefusal, platformRefusals } from '../port.ts'

export const faultTargets = [
  'send',
  'start',
  'resolve',
  'ask',
  'read_state',
  'history',
  'chats',
  'download',
  'export',
  'connect',
  'login',
  'updates',
] as const
export type FaultTarget = (typeof faultTargets)[number]

export const faultKinds = [
  'refuse',
  'flood_wait',
  'unavailable',
  'slow',
  'timeout_before',
  'timeout_after',
  'drop_after',
  'resend',
  'freeze',
  'late',
  'twice',
] as const
export type FaultKind = (typeof faultKinds)[number]

export interface NewFault {
  readonly on: FaultTarget
  readonly fault: FaultKind
  readonly seconds?: number | undefined
  readonly times?: number | undefined
  readonly account_id?: string | undefined
  /** With `refuse`: one of the port's refusals, or the Telegram error that clients of the data centre get. */
  readonly error?: string | undefined
}

export interface Fault {
  readonly fault_id: number
  readonly on: FaultTarget
  readonly fault: FaultKind
  readonly seconds: number
  /** How many more times it takes effect; 0 means until it is cleared. */
  readonly times: number
  readonly account_id: string | null
  readonly error: string | null
}

/** The port's refusal that a fault names, if it names one. */
export function findRefusal({ error }: Fault): PlatformRefusal | undefined {
  return platformRefusals.find((each) => each === error)
}

/** The default of `seconds`: a flood wait worth waiting for, a delay worth noticing. */
const secondsDefault: Partial<Record<FaultKind, number>> = { flood_wait: 30, slow: 1, freeze: 30, late: 5 }

/** Updates are not answers: a fault can hold, cut off, delay or repeat them, never refuse them. */
const onUpdates: readonly FaultKind[] = ['late', 'twice', 'slow', 'freeze', 'drop_after']
const onStream: readonly FaultKind[] = ['late', 'twice']
/** A fault can only refuse a login: it has no session whose connection could misbehave. */
const onLogin: readonly FaultKind[] = ['refuse', 'flood_wait', 'unavailable']

function canHappen({ on, fault }: NewFault): boolean {
  if (on === 'updates') return onUpdates.includes(fault)
  if (on === 'login') return onLogin.includes(fault)
  if (on === 'connect' && fault === 'resend') return false
  return !onStream.includes(fault)
}

export function makeFault(fault_id: number, given: NewFault): Fault {
  if (!canHappen(given)) {
    throw new ApiError('invalid_request', {
      detail: `The fault ${given.fault} cannot happen on ${given.on}.`,
    })
  }
  if (given.error !== undefined && given.fault !== 'refuse') {
    throw new ApiError('invalid_request', { detail: 'Only the fault refuse can name an error.' })
  }
  return {
    fault_id,
    on: given.on,
    fault: given.fault,
    seconds: given.seconds ?? secondsDefault[given.fault] ?? 0,
    times: given.times ?? 1,
    account_id: given.account_id ?? null,
    error: given.error ?? null,
  }
}

export interface FaultQuestion {
  readonly on: FaultTarget
  readonly account_id: string
  /** On updates: whether the question is about the stream (late, twice) or the connection that carries it. */
  readonly stream?: boolean
}

/** The first fault that applies here, in the order they were added. */
export function findFault(faults: readonly Fault[], question: FaultQuestion): Fault | undefined {
  return faults.find(
    (fault) =>
      fault.on === question.on &&
      (fault.account_id === null || fault.account_id === question.account_id) &&
      onStream.includes(fault.fault) === (question.stream ?? false),
  )
}

/** The list after a fault has taken effect once. */
export function useFault(faults: readonly Fault[], fault_id: number): readonly Fault[] {
  return faults.flatMap((fault) => {
    if (fault.fault_id !== fault_id || fault.times === 0) return [fault]
    return fault.times === 1 ? [] : [{ ...fault, times: fault.times - 1 }]
  })
}
