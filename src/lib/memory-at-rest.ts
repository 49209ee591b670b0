/**
 * Gives memory back to the machine. After a burst of work V8 keeps the pages of what is garbage by now, until it collects the
 * next time, and a process at rest allocates too little for that.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** A collection stops the process for about a millisecond a megabyte in use, so it must be worth it. */
const grownMin = 64 * 1024 * 1024
/** At rest the process and its threads use less than this share of one core. */
const restShare = 0.05

/** Returns how to stop. */
export function collectAtRest(everyMs = 10_000): () => void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (how: object) => void
  let used = process.cpuUsage()
  const look = lookAtRest({
    bytes: () => process.memoryUsage.rss(),
    cores: () => {
      const { user, system } = process.cpuUsage(used)
      used = process.cpuUsage()
      return (user + system) / 1_000 / everyMs
    },
    collect: () => collect({ type: 'major', flavor: 'last-resort' }),
  })
  const timer = setInterval(look, everyMs).unref()
  return () => clearInterval(timer)
}

interface OwnProcess {
  bytes(): number
  /** How many cores were busy since the last call. */
  cores(): number
  collect(): void
}

export function lookAtRest({ bytes, cores, collect }: OwnProcess): () => void {
  let rested = bytes()
  return () => {
    if (cores() > restShare) return // guard: collects at rest only
    if (bytes() > rested + grownMin) {
      collect() // guard: memory at rest
      rested = bytes() // guard: what stays is not collected again
    }
    rested = Math.min(rested, bytes())
  }
}
