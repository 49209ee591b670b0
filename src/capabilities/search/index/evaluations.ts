/** Where a search evaluates its posting lists: short ones here, long ones in a thread, because they take the loop for long. */
import { threadCalls } from '../../../lib/threads.ts'
import type { Evaluation } from './evaluate.ts'
import { evaluatePacked, type PackedSegment } from './evaluate-packed.ts'

/** About a millisecond of work: a thread would cost the caller more. */
const charactersMax = 64 * 1024

/** As many threads as there are searches at a time (`app.costly`). */
const askThread = threadCalls<readonly PackedSegment[], Evaluation[]>(
  new URL('./evaluate-thread.ts', import.meta.url),
)

export async function evaluateSegments(segments: readonly PackedSegment[]): Promise<Evaluation[]> {
  let characters = 0
  for (const { lists } of segments) for (const [, packed] of lists) characters += packed?.length ?? 0
  if (characters <= charactersMax) return evaluatePacked(segments)
  return askThread(segments) // guard: long posting lists in a thread
}
