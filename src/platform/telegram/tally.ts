/** What the sessions of a process do, for metrics. */
import type { PlatformFigures } from '../port.ts'

export class Tally {
  differences = 0
  uploads = 0
  readonly #streams = new Set<{ readonly waiting: number }>()

  /** Counts until the returned function is called. */
  watch(stream: { readonly waiting: number }): () => void {
    this.#streams.add(stream)
    return () => void this.#streams.delete(stream)
  }

  figures(): Omit<PlatformFigures, 'clock_offset_seconds'> {
    const { differences, uploads } = this
    const batches_waiting = [...this.#streams].reduce((sum, { waiting }) => sum + waiting, 0)
    return { differences, batches_waiting, uploads }
  }
}
