/** Which segments of an account are worth a merge. Pure. */
import type { Segment } from './segment-writer.ts'

/** This many segments of about the same size become one: of the same power of it in messages. */
const tierSize = 4
/** No more are merged at once from one tier, however many have come together. */
const tierMergeMax = 16
/** Merge everything once 1,000 entries, and one in a hundred, are tombstones: below that, leaving them out costs less. */
const tombstonesLeast = 1000
const tombstonesOneIn = 100
/** With nothing pending, three segments become one once all but the largest have an eighth of its messages together. */
const quietSegments = 3
const quietOneIn = 8

interface MergeState {
  readonly tombstones: number
  /** Nothing is pending in the account. */
  readonly isQuiet: boolean
}

/** What to merge; undefined: nothing. */
export function chooseSegments<T extends Pick<Segment, 'messages'>>(
  segments: readonly T[],
  { tombstones, isQuiet }: MergeState,
): readonly T[] | undefined {
  const total = segments.reduce((sum, { messages }) => sum + messages, 0)
  if (tombstones >= Math.max(tombstonesLeast, total / tombstonesOneIn)) return segments
  const largest = segments.reduce((most, { messages }) => Math.max(most, messages), 0)
  if (isQuiet && segments.length >= quietSegments && (total - largest) * quietOneIn >= largest)
    return segments
  const tiers = Map.groupBy(segments, ({ messages }) => Math.floor(Math.log(messages) / Math.log(tierSize)))
  return [...tiers.values()].find((some) => some.length >= tierSize)?.slice(0, tierMergeMax)
}
