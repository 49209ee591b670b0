/** Strangers at as many places as the queue of passwords has, in this process: it is full until they are told to end. */
import { setImmediate } from 'node:timers/promises'
import { isPassword } from '../../src/lib/passwords.ts'

const placesMax = 42

export function crowdQueue(): { end(): Promise<void> } {
  let going = true
  const all = Promise.all(
    Array.from({ length: placesMax }, async (_, at) => {
      const turn = { lane: 'stranger', source: `stranger ${at}` } as const
      // Whoever is through comes again before any request can be read. One is refused while another lane has its turn.
      while (going) await isPassword('x', undefined, turn).catch(() => setImmediate())
    }),
  )
  const end = async () => {
    going = false
    await all
  }
  return { end }
}
