/** A thread that evaluates large posting lists, at a lower priority than every other thread. */
import { parentPort } from 'node:worker_threads'
import { lowerPriority } from '../../../lib/threads.ts'
import { evaluatePacked, type PackedSegment } from './evaluate-packed.ts'

lowerPriority()
parentPort?.on('message', (segments: readonly PackedSegment[]) =>
  parentPort?.postMessage(evaluatePacked(segments)),
)
