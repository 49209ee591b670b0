/**
 * Counts how often a run reached the states that matter. A run that never did proves nothing, so it fails. The counts come from
 * state changes in the database, not from lines of the product's log.
 */
import type { Evidence, Transition } from './oracle.ts'

export interface Rare {
  /** The worker timed out waiting for the platform. */
  ambiguous_by_timeout: number
  /** The worker got an answer that proves nothing: a broken connection, an error of the platform. */
  ambiguous_by_answer: number
  /** Another process found it after its worker had died or been frozen. */
  ambiguous_by_lease: number
  /** Proof arrived later. */
  late_upgrade: number
  /** Of these: the platform showed our random id. Telegram does so only in `updateMessageID`. */
  proven_by_platform: number
  /** The worker proved that not a byte was written. */
  never_written: number
  /** The platform asked the account to wait. */
  flood_release: number
  refused: number
  withdrawn: number
  /** The same key ran again after a release. */
  run_again: number
  /** Only the journal of a dead process knew the answer. */
  journal_replay: number
  /** The connection broke at the boundary's COMMIT: before it was done, and after. */
  commit_lost_undone: number
  commit_lost_done: number
}

/** Connections cut at the COMMIT of a boundary, as the plant's proxy counted them. */
export interface Cuts {
  readonly before: number
  readonly after: number
}

/** Shorter than the lease of an operation, longer than any limit of a call. */
const leaseMsMin = 50_000

export function countRare({ transitions = [] }: Evidence, cuts: Cuts = { before: 0, after: 0 }): Rare {
  const rare: Rare = {
    ambiguous_by_timeout: 0,
    ambiguous_by_answer: 0,
    ambiguous_by_lease: 0,
    late_upgrade: 0,
    proven_by_platform: 0,
    never_written: 0,
    flood_release: 0,
    refused: 0,
    withdrawn: 0,
    run_again: 0,
    journal_replay: 0,
    commit_lost_undone: cuts.before,
    commit_lost_done: cuts.after,
  }
  const submitted = new Map<string, Transition>()
  for (const change of transitions) {
    const name = nameOf(change, submitted.get(change.operation_id))
    if (name) rare[name]++
    if (name === 'late_upgrade' && change.reconciled) rare.proven_by_platform++
    if (change.from === 'submitting' && isReplay(change, submitted.get(change.operation_id))) {
      rare.journal_replay++
    }
    if (change.to === 'submitting') submitted.set(change.operation_id, change)
  }
  return rare
}

function nameOf(change: Transition, boundary: Transition | undefined): keyof Rare | undefined {
  const { from, to, reason } = change
  if (to === 'ambiguous') {
    const ms = change.at - (boundary?.at ?? change.at)
    if (!boundary || change.by !== boundary.by || ms >= leaseMsMin) return 'ambiguous_by_lease'
    // Use the row's reason: in a storm a worker waits for an answer for a different time than elsewhere.
    return reason === 'timeout' ? 'ambiguous_by_timeout' : 'ambiguous_by_answer'
  }
  if (from === 'ambiguous' && to === 'completed') return 'late_upgrade'
  if (to === 'released' && reason === 'never_written') return 'never_written'
  if (to === 'released' && from === 'submitting') return 'flood_release'
  if (to === 'released') return 'withdrawn'
  if (to === 'refused') return 'refused'
  if (from === 'released') return 'run_again'
  return undefined
}

/** Settled by a process that never called the platform, and not from an update of the platform. */
function isReplay({ to, by, reconciled }: Transition, boundary: Transition | undefined): boolean {
  return to !== 'ambiguous' && boundary !== undefined && boundary.by !== by && !reconciled
}

/** The states that the run was meant to reach and did not. */
export function listMissing<Name extends string>(
  reached: Readonly<Record<Name, number>>,
  wanted: readonly Name[],
): Name[] {
  return wanted.filter((name) => reached[name] === 0)
}
