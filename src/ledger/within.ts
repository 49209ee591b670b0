/** Waiting with a time limit. */
import type { Sources } from '../app.ts'

/** The promise's value, or undefined once the time is up or the signal aborts. */
export function within<T>(
  { timer }: Pick<Sources, 'timer'>,
  ms: number,
  work: Promise<T>,
  signal?: AbortSignal,
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const end = () => settle(() => resolve(undefined))
    const cancel = timer(ms, end)
    const settle = (done: () => void) => {
      cancel()
      signal?.removeEventListener('abort', end)
      done()
    }
    if (signal?.aborted) return end()
    signal?.addEventListener('abort', end)
    work.then(
      (value) => settle(() => resolve(value)),
      (error) => settle(() => reject(error)),
    )
  })
}
