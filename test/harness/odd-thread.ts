/** A thread that answers or dies, as its message says (`src/lib/threads.test.ts`). */
import { parentPort, threadId } from 'node:worker_threads'

parentPort?.on('message', (job: string) => {
  if (job === 'throw') throw new Error('broken')
  if (job === 'exit') process.exit(3)
  parentPort?.postMessage(threadId)
  if (job === 'answer and throw') {
    setImmediate(() => {
      throw new Error('broken later')
    })
  }
})
