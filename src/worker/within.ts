/** Waiting with a time limit. */

/** What the promise gave, or undefined once the time is up or the signal came. */
export function within<T>(ms: number, work: Promise<T>, signal?: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const end = () => settle(() => resolve(undefined))
    const timer = setTimeout(end, ms)
    const settle = (done: () => void) => {
      clearTimeout(timer)
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
