/** Whoever asks while the answer is being found gets the same one: many who ask cost as much as one. */
export function together<T>(work: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined
  return () => {
    asked ??= work().finally(() => {
      asked = undefined
    })
    return asked
  }
}
