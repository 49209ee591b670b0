/** Calls to our own threads: for work that needs a core for a while and must not take it from other work. */
import { getPriority, setPriority } from 'node:os'
import { Worker } from 'node:worker_threads'

/**
 * Each call has a thread to itself until it is answered. Starts one if none is free and keeps it for the next call; the
 * caller bounds how many there are. Buffers that are moved are empty afterwards. A thread keeps the process alive only during
 * a call. If it dies, its call fails, and the next call starts another. A thread that is free for `idleMsMax` ends: it
 * collects no garbage meanwhile, and would keep the memory of its last call.
 */
export function threadCalls<Job, Answer>(
  file: URL,
  { idleMsMax = 10_000 }: { readonly idleMsMax?: number } = {},
): (job: Job, moved?: readonly ArrayBuffer[]) => Promise<Answer> {
  const free: Worker[] = []
  const ends = new Map<Worker, NodeJS.Timeout>()
  const leave = (thread: Worker) => {
    const at = free.indexOf(thread)
    if (at >= 0) free.splice(at, 1)
    clearTimeout(ends.get(thread))
    ends.delete(thread)
  }
  const rest = (thread: Worker) => {
    free.push(thread)
    const end = () => {
      leave(thread)
      void thread.terminate() // guard: idle threads end
    }
    ends.set(thread, setTimeout(end, idleMsMax).unref())
  }
  const take = (): Worker | undefined => {
    const thread = free.at(-1)
    if (thread) leave(thread)
    return thread
  }
  const start = (): Worker => {
    const thread = startThread(file)
    thread.once('exit', () => leave(thread))
    return thread
  }
  return (job, moved = []) =>
    new Promise((resolve, reject) => {
      const thread = take() ?? start()
      const died = (cause: unknown) => reject(new Error('A thread died before it had answered.', { cause }))
      thread.once('message', (answer: Answer) => {
        thread.off('error', died).off('exit', died).unref()
        rest(thread)
        resolve(answer)
      })
      thread.once('error', died).once('exit', died).ref()
      thread.postMessage(job, moved)
    })
}

export interface Thread<Job, Answer> {
  /** One question at a time. Fails if the thread has died or was ended. */
  ask(job: Job): Promise<Answer>
  /** At once, whatever it does. */
  end(): void
}

/** A thread that remembers what it was asked before, for one conversation. The caller ends it. */
export function openThread<Job, Answer>(file: URL): Thread<Job, Answer> {
  const thread = startThread(file)
  let died: unknown
  thread.once('error', (error) => {
    died = error
  })
  const exited = new Promise<void>((resolve) => void thread.once('exit', () => resolve()))
  return {
    async ask(job) {
      const answered = new Promise<{ readonly answer: Answer }>((resolve) => {
        thread.once('message', (answer: Answer) => resolve({ answer }))
      })
      thread.postMessage(job)
      const heard = await Promise.race([answered, exited])
      if (heard) return heard.answer
      throw new Error('A thread died before it had answered.', { cause: died })
    },
    end: () => void thread.terminate(),
  }
}

function startThread(file: URL): Worker {
  // The process's flags are for its own entry file.
  const thread = new Worker(file, { execArgv: [] })
  // Also between calls: an error without a listener would end the process.
  thread.on('error', () => {})
  return thread
}

/** Other threads that want the core get nine tenths of it. With a higher number, the work might never end on a busy machine. */
const niceness = 10

/** Lowers the calling thread's priority below all others. */
export function lowerPriority(): void {
  // On Linux, 0 is this thread alone. Elsewhere it would be the whole process, whose priority stays as it is.
  if (process.platform === 'linux') setPriority(0, Math.min(19, getPriority(0) + niceness))
}
