/** What the folder of a platform offers, and what it hands over once opened. `cli/platforms.ts` lists them. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { z } from 'zod'
import type { ControlCall } from './control-operation.ts'
import type { Platform, PlatformClock } from './port.ts'

export interface PlatformModule {
  /** What the accounts of this platform say under `platform`. */
  readonly name: string
  /** Its own variables of the environment, checked with all others at the start. */
  readonly variables: Readonly<Record<string, z.ZodType>>
  /** Undefined: this process has no part in the platform, for example because nothing says where it is. */
  open(options: PlatformOptions): Promise<OpenPlatform | undefined>
}

export interface PlatformOptions {
  /** With `start` everything runs in this one process, so a platform of our own may run inside of it. */
  readonly role: 'start' | 'work'
  /** Where the platform may keep files: a folder of its own that need not exist yet. */
  readonly data_dir: string
  /** The values of its variables, as they stand in the environment. */
  readonly env: Readonly<Record<string, string>>
  /** Where the manual clock stands; undefined means real time. */
  readonly manual_from: Date | undefined
  /** Told when the platform can no longer go on by itself. */
  readonly failed: (error: unknown) => void
}

export interface OpenPlatform {
  readonly platform: Platform
  /** Real people are on it. Its time cannot be moved, so a manual clock is refused next to it. */
  readonly real: boolean
  /** Only with a manual clock. */
  readonly clock?: PlatformClock | undefined
  /** What this process answers below `/<name>/v1`, for callers on this machine only. */
  control?(advance: AdvanceClock | undefined): Control
  /** Only a platform whose people are made up, and only where it runs inside this process. */
  readonly demo?: DemoPeople
  /** Closes the port and everything behind it. */
  close(): Promise<void>
}

/** Moves the manual clock of the service by this many seconds; answers the new time. */
export type AdvanceClock = (seconds: number) => Promise<Date>

/** The control address of a platform: how a person or a test acts on what is behind it. */
export interface Control {
  /** The platform's name. */
  readonly name: string
  readonly summary: string
  readonly calls: readonly ControlCall[]
}

/** Takes over a connection that asked for another protocol than HTTP. */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/** Who lives in the demo workspace of the first start. */
export interface DemoPeople {
  /** Makes this many people up; answers their numbers. */
  addPeople(count: number): number[]
  /** Gives the account past conversations with these people, and a group with some of them. */
  addAccount(account: { readonly account_id: string; readonly name: string }, people: readonly number[]): void
  /** Lets somebody write now and then, so that a demo that is left open stays alive. */
  keepTalking(): { stop(): void }
}
