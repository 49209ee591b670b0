/** Asks a database that is slow for a moment again: a start on a busy machine would end, and its supervisor begin all over. */
import type { App } from '../app.ts'
import { codeOf, isAway } from '../db/errors.ts'

const waitMsMax = 60_000
const restMs = 500

/**
 * Runs a step again while the database does not answer, for a minute. The step must be one that may run twice: what it
 * writes may have been stored before. `requireGoing` throws once the process stops.
 */
export async function retryWhileAway<T>(
  { sources, log }: Pick<App, 'sources' | 'log'>,
  requireGoing: () => void,
  step: () => Promise<T>,
): Promise<T> {
  const deadline = sources.now() + waitMsMax
  for (;;) {
    try {
      return await step()
    } catch (error) {
      if (!isAway(error) || sources.now() >= deadline) throw error // guard: a start waits for a slow database
      log.warn({ code: codeOf(error) }, 'the database is slow: the start asks it again')
    }
    await sources.sleep(restMs)
    requireGoing() // guard: a start that is stopped asks no more
  }
}
