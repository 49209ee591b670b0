/** Calls to our own threads: for work that needs a core for a while and must not take it from other work. */
import { getPriority, setPriority } from 'node:os'
import { Worker } from 'node:worker_threads'

/**
 * Each call has a thread to itself until it is answered. Starts one if none is free and keeps it for the next call; the
 * caller bounds how many there are. A thread keeps the process alive only during a call. If it dies, its call fails, and
 * the next call starts another.
 */
export function threadCalls<Job, Answer>(file: URL): (job: Job) => Promise<Answer> {
  const free: Worker[] = []
  const start = (): Worker => {
    // The process's flags are for its own entry file.
    const thread = new Worker(file, { execArgv: [] })
    // Also between calls: an error without a listener would end the process.
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

/** Other threads that want the core get nine tenths of it. With a higher number, the work might never end on a busy machine. */
const niceness = 10

/** Lowers the calling thread's priority below all others. */
export function lowerPriority(): void {
  // On Linux, 0 is this thread alone. Elsewhere it would be the whole process, whose priority stays as it is.
  if (process.platform === 'linux') setPriority(0, Math.min(19, getPriority(0) + niceness))
}
