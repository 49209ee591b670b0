/** Fills every place of the password queue with strangers, in this process, until `end`. */
import { setImmediate } from 'node:timers/promises'
import { isPassword } from '../../src/lib/passwords.ts'

const placesMax = 42

export function crowdQueue(): { end(): Promise<void> } {
  let going = true
  const all = Promise.all(
    Array.from({ length: placesMax }, async (_, at) => {
      const turn = { lane: 'stranger', source: `stranger ${at}` } as const
      // Each one queues again before the server can read a request. One is refused while another lane has its turn.
      while (going) await isPassword('x', undefined, turn).catch(() => setImmediate())
    }),
  )
  const end = async () => {
    going = false
    await all
  }
  return { end }
}
