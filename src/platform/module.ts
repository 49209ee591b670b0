/** What a platform's folder exports, and what it returns once opened. `cli/platforms.ts` lists the platforms. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { z } from 'zod'
import type { ControlCall } from './control-operation.ts'
import type { AccountProxy, Platform, PlatformClock } from './port.ts'

export interface PlatformModule {
  /** The value of `platform` on its accounts. */
  readonly name: string
  /** Its own environment variables, checked with all others at the start. */
  readonly variables: Readonly<Record<string, z.ZodType>>
  /** Undefined: this process does not use the platform, for example because no variable says where it is. */
  open(options: PlatformOptions): Promise<OpenPlatform | undefined>
  /** Connects without a login and leaves again. Returns what is wrong; undefined: not configured. */
  reach(options: ReachOptions): Promise<readonly ReachProblem[] | undefined>
}

export interface ReachProblem {
  readonly problem: string
  /** What to do, if it is not the network. */
  readonly advice?: string
}

export interface ReachOptions {
  readonly env: PlatformOptions['env']
  /** The proxies of its accounts. */
  readonly proxies: readonly AccountProxy[]
  /** Whether an account connects without a proxy. */
  readonly direct: boolean
}

export interface PlatformOptions {
  /** With `start` everything runs in this one process, so a platform of our own may run inside it. */
  readonly role: 'start' | 'work'
  /** The platform's own folder for files, which need not exist yet. */
  readonly data_dir: string
  /** The values of its variables, as the environment has them. */
  readonly env: Readonly<Record<string, string>>
  /** The time of the manual clock; undefined means real time. */
  readonly manual_from: Date | undefined
  /** Called when the platform cannot recover by itself. */
  readonly failed: (error: unknown) => void
}

export interface OpenPlatform {
  readonly platform: Platform
  /** It has real people. Their time cannot be moved, so a manual clock is refused next to it. */
  readonly real: boolean
  /** Only with a manual clock. */
  readonly clock?: PlatformClock | undefined
  /** What this process serves below `/<name>/v1`, for callers on this machine only. */
  control?(advance: AdvanceClock | undefined): Control
  /** Only a platform with made-up people has it, and only if it runs inside this process. */
  readonly demo?: DemoPeople
  /** Closes the port and everything behind it. */
  close(): Promise<void>
}

/** Moves the service's manual clock by this many seconds; returns the new time. */
export type AdvanceClock = (seconds: number) => Promise<Date>

/** A platform's control address: how a person or a test acts on the other side of it. */
export interface Control {
  /** The platform's name. */
  readonly name: string
  readonly summary: string
  readonly calls: readonly ControlCall[]
}

/** Takes over a connection that requested a protocol other than HTTP. */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/** The people of the demo workspace that the first start makes. */
export interface DemoPeople {
  /** Makes up this many people; returns their numbers. */
  addPeople(count: number): number[]
  /** Gives the account past conversations with these people, and a group with some of them. */
  addAccount(account: { readonly account_id: string; readonly name: string }, people: readonly number[]): void
  /** Makes a person write now and then, so that an open demo stays alive. */
  keepTalking(): { stop(): void }
}
