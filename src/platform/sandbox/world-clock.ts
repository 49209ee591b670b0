/** The world's time. Nothing in the world asks the machine: whoever opens a world says what time it is. */

export interface Clock {
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }

/** A clock that moves only when it is told to, and never back. */
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

/** What has due times: the world. */
interface Dues {
  nextDueAt(): Date | null
  runDue(now: Date): void
}

/** Moves a manual clock from one due time to the next, so that everything happens in its order and at its time. */
export function advanceTo(world: Dues, clock: ManualClock, time: Date): void {
  for (let due = world.nextDueAt(); due !== null && due <= time; due = world.nextDueAt()) {
    clock.set(due)
    world.runDue(due)
  }
  clock.set(time)
}

/** `setTimeout` fires at once beyond this. */
const timerMsMax = 2 ** 31 - 1

interface Driven extends Dues {
  readonly clock: Clock
  onDueChanged: (() => void) | null
}

/** How long it waits before it tries again what it could not write down. */
const failedMs = 5_000

/** Runs what falls due in real time, with one timer. What cannot be written down now is tried again. */
export function drive(world: Driven, onFailure: (error: unknown) => void): { stop(): void } {
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
      // A disk without room may have some later.
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
