/**
 * What runs in the background. A slice exports a function that makes its loops, because some keep state between steps.
 * `lists/loops.ts` lists these functions as `lists/routes.ts` lists routes.
 */
import type { App, Topic } from './app.ts'

export interface Loop {
  readonly name: string
  /** How long to rest after a step that found nothing. */
  readonly restMs: number
  /** What ends the rest early. */
  readonly wakeOn?: Topic
  /** One step of work, which may end unfinished on the signal. True: there may be more, so continue at once. */
  step(app: App, stopping: AbortSignal): Promise<boolean>
  /** When something is due next, in domain time; null when nothing waits. For loops that act at due times. */
  nextDueAt?(app: App): Promise<Date | null>
  /** How much is due now and not done yet. A manual clock waits until every loop returns 0. */
  countDue?(app: App): Promise<number>
}

/** Makes a slice's loops for one worker, and adds its figures to `app.metrics`. */
export type MakeLoops = (app: App) => readonly Loop[]
