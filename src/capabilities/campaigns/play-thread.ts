/** A thread that simulates campaigns, at a lower priority than every other thread. */
import { parentPort } from 'node:worker_threads'
import { lowerPriority } from '../../lib/threads.ts'
import { type PlayJob, Plays } from './play.ts'

lowerPriority()
const plays = new Plays()
parentPort?.on('message', (job: PlayJob) => parentPort?.postMessage(plays.answer(job)))
