/** How the platform misbehaves during a storm, and how often in each way. */
import type { FaultKind, NewFault } from '../../src/platform/sandbox/faults.ts'
import type { Kind } from './oracle.ts'
import type { Random } from './random.ts'

/** Every kind of outcome, the quick ones more often: a timeout blocks an account for seconds. */
const onCalls: readonly (readonly [FaultKind, number])[] = [
  ['refuse', 3],
  ['flood_wait', 4],
  ['unavailable', 4],
  ['slow', 5],
  ['timeout_before', 2],
  ['timeout_after', 4],
  ['drop_after', 5],
  ['freeze', 1],
]
/** Only where the platform knows a random id again: mtcute sends such a message a second time. */
const resend: readonly [FaultKind, number] = ['resend', 4]
const onUpdates: readonly (readonly [FaultKind, number])[] = [
  ['late', 4],
  ['twice', 4],
  ['drop_after', 2],
  ['slow', 2],
]
const onConnect: readonly (readonly [FaultKind, number])[] = [
  ['unavailable', 2],
  ['slow', 2],
  ['drop_after', 1],
]

export function drawFault(
  random: Random,
  { account_id, kind, resends = false }: { account_id: string; kind: Kind; resends?: boolean },
): NewFault {
  const on = random.weigh<NewFault['on']>([
    [kind, 30],
    ['updates', 3],
    ['connect', 1],
  ])
  const calls = resends && on === 'send' ? [...onCalls, resend] : onCalls
  const fault = random.weigh(on === 'updates' ? onUpdates : on === 'connect' ? onConnect : calls)
  return { on, fault, seconds: secondsOf(fault, random), times: 1, account_id }
}

function secondsOf(fault: FaultKind, random: Random): number {
  if (fault === 'flood_wait') return 1 + random.whole(2)
  if (fault === 'late') return random.between(0.5, 5)
  if (fault === 'freeze') return random.between(1, 8)
  return random.between(0.1, 2)
}
