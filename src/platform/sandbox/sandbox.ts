/** The sandbox as a service uses it: in its own process, or over a socket in another one. */
import { createHash } from 'node:crypto'
import { createServer } from 'node:net'
import { resolve } from 'node:path'
import { Refusal } from '../../lib/errors.ts'
import type { Platform, PlatformClock, Standing } from '../port.ts'
import { sandboxPlatform } from './adapter.ts'
import { directLink } from './direct-link.ts'
import { socketLink } from './socket-link.ts'
import { openWorld, type World } from './world.ts'
import { advanceTo, drive, manualClock, systemClock } from './world-clock.ts'

export interface Sandbox extends PlatformClock {
  readonly platform: Platform
  close(): Promise<void>
}

export interface LocalSandbox extends Sandbox {
  readonly world: World
}

interface LocalOptions {
  readonly data_dir: string | null
  readonly seed?: number
  readonly dedupe?: boolean
  /** The time of a manual clock; undefined means real time. */
  readonly manual_from?: Date | undefined
  readonly failed: (error: unknown) => void
}

export async function openLocalSandbox(options: LocalOptions): Promise<LocalSandbox> {
  const { data_dir, seed, dedupe = false, manual_from, failed } = options
  const unlock = data_dir === null ? undefined : await lockDirectory(resolve(data_dir))
  const manual = manual_from && manualClock(manual_from)
  const clock = manual ?? systemClock
  const world = openWorld({ data_dir, clock, dedupe, ...(seed !== undefined && { seed }) })
  const driver = manual ? undefined : drive(world, failed)
  const platform = sandboxPlatform(directLink(world))
  return {
    world,
    platform,
    async run(to) {
      if (manual) advanceTo(world, manual, to)
      return standingOf(world)
    },
    async close() {
      driver?.stop()
      await platform.close()
      await world.close()
      unlock?.()
    },
  }
}

/** Two worlds writing one log would corrupt it. The lock is a name that the kernel frees when its process ends. */
function lockDirectory(data_dir: string): Promise<(() => void) | undefined> {
  if (process.platform !== 'linux') return Promise.resolve(undefined)
  const name = `\0parley-sandbox-${createHash('sha256').update(data_dir).digest('hex').slice(0, 32)}`
  const server = createServer()
  return new Promise((done, fail) => {
    server.once('error', () => fail(new Refusal(`Another sandbox is running on ${data_dir}.`)))
    server.listen(name, () => {
      server.unref()
      done(() => void server.close())
    })
  })
}

function standingOf(world: World): Standing {
  return {
    next_due_at: world.nextDueAt()?.toISOString() ?? null,
    positions: Object.fromEntries(
      [...world.state.accounts.values()].map(({ account_id, stream }) => [account_id, String(stream.length)]),
    ),
  }
}

/** The address of `parley sandbox`. */
export function connectSandbox(url: string): Sandbox {
  const platform = sandboxPlatform(socketLink(url))
  return {
    platform,
    async run(to) {
      const response = await fetch(new URL('/sandbox/v1/clock', url), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ to: to.toISOString() }),
        signal: AbortSignal.timeout(30_000),
      })
      const answer = (await response.json()) as Standing & { error?: string }
      if (!response.ok) throw new Error(`The sandbox did not move its clock: ${answer.error}`)
      return answer
    },
    close: () => platform.close(),
  }
}
