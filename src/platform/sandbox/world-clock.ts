/** The world's time. Nothing in the world reads the machine's clock: the caller that opens a world provides the time. */

export interface Clock {
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }

/** A clock that moves only when it is set, and never back. */
export interface ManualClock extends Clock {
  set(time: Date): void
}

export function manualClock(start: Date): ManualClock {
  let time = start.getTime()
  return {
    now: () => new Date(time),
    set: (to) => {
      time = Math.max(time, to.getTime())
    },
  }
}

/** Something with due times: the world. */
interface Dues {
  nextDueAt(): Date | null
  runDue(now: Date): void
}

/** Moves a manual clock from one due time to the next, so that everything happens in order and at its time. */
export function advanceTo(world: Dues, clock: ManualClock, time: Date): void {
  for (let due = world.nextDueAt(); due !== null && due <= time; due = world.nextDueAt()) {
    clock.set(due)
    world.runDue(due)
  }
  clock.set(time)
}

/** `setTimeout` fires at once beyond this. */
const timerMsMax = 2 ** 31 - 1

interface DrivenWorld extends Dues {
  readonly clock: Clock
  onDueChanged: (() => void) | null
}

/** How long to wait before writing again what could not be written. */
const failedMs = 5_000

/** Runs due acts in real time, with one timer. Retries what cannot be written. */
export function drive(world: DrivenWorld, onFailure: (error: unknown) => void): { stop(): void } {
  let timer: NodeJS.Timeout | undefined
  const arm = () => {
    clearTimeout(timer)
    const due = world.nextDueAt()
    if (due === null) return
    const ms = due.getTime() - world.clock.now().getTime()
    timer = setTimeout(run, Math.min(Math.max(ms, 0), timerMsMax))
  }
  const run = () => {
    try {
      world.runDue(world.clock.now())
      arm()
    } catch (error) {
      onFailure(error)
      // A full disk may have room later.
      timer = setTimeout(run, failedMs)
    }
  }
  world.onDueChanged = arm
  arm()
  return {
    stop: () => {
      world.onDueChanged = null
      clearTimeout(timer)
    },
  }
}
