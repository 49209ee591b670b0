/** Calls made while the work runs share its result: many calls cost as much as one. */
export function together<T>(work: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined
  return () => {
    asked ??= work().finally(() => {
      asked = undefined
    })
    return asked
  }
}
