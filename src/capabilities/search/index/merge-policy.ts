/** Chooses the segments of an account that are worth merging. Pure. */
import type { Segment } from './segment-writer.ts'

/** This many segments of one tier become one. Tiers hold segments of 1 to 3 messages, of 4 to 15, of 16 to 63, and so on. */
const tierSize = 4
/** At most this many segments of a tier are merged at once, however many there are. */
const tierMergeMax = 16
/** Merge everything once 1,000 entries, and one in a hundred, are tombstones: below that, skipping them costs less. */
const tombstonesLeast = 1000
const tombstonesOneIn = 100
/** With nothing pending, merge three segments once all but the largest hold together an eighth of its messages. */
const quietSegments = 3
const quietOneIn = 8

interface MergeState {
  readonly tombstones: number
  /** The account has no pending messages. */
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
