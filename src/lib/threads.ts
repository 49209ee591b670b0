/** Calls to threads of our own: for work that takes a core for a while, and must take it from nobody else. */
import { getPriority, setPriority } from 'node:os'
import { Worker } from 'node:worker_threads'

/**
 * Each call has a thread to itself until it is answered. One is started where none is free and kept for the next call;
 * whoever calls bounds how many there are. A thread keeps the process alive only while it is asked something. One that
 * dies fails the call it had, and the next call starts another.
 */
export function threadCalls<Job, Answer>(file: URL): (job: Job) => Promise<Answer> {
  const free: Worker[] = []
  const start = (): Worker => {
    // Flags of the process are for its own first file.
    const thread = new Worker(file, { execArgv: [] })
    // Also while it is asked nothing: an error that nobody hears would end the process.
    thread.on('error', () => {})
    thread.once('exit', () => {
      const at = free.indexOf(thread)
      if (at >= 0) free.splice(at, 1)
    })
    return thread
  }
  return (job) =>
    new Promise((resolve, reject) => {
      const thread = free.pop() ?? start()
      const died = (cause: unknown) => reject(new Error('A thread died before it had answered.', { cause }))
      thread.once('message', (answer: Answer) => {
        thread.off('error', died).off('exit', died).unref()
        free.push(thread)
        resolve(answer)
      })
      thread.once('error', died).once('exit', died).ref()
      thread.postMessage(job)
    })
}

/** Whoever else wants the core gets nine tenths of it. With a higher number the work would not end on a machine that is always busy. */
const niceness = 10

/** Puts the calling thread behind every other one that wants the processor. */
export function lowerPriority(): void {
  // On Linux 0 is this thread alone. Elsewhere it would be the whole process, which stays as it is.
  if (process.platform === 'linux') setPriority(0, Math.min(19, getPriority(0) + niceness))
}
