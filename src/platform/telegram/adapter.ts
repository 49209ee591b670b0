/** Telegram as a platform. */
import type { Platform } from '../port.ts'
import type { Endpoint } from './client.ts'
import { ConnectMemory } from './connect-memory.ts'
import { beginImport } from './import.ts'
import { beginLogin, logout } from './login.ts'
import { openSession } from './session.ts'
import { Tally } from './tally.ts'

const paceMsDefault = 1_000 // limit: pace of the sync

/** Those that a test makes small. */
interface Limits {
  readonly paceMs?: number
  readonly doubtMs?: number
  readonly logoutPauseMs?: number
}

export function telegramPlatform(
  endpoint: Endpoint,
  { paceMs = paceMsDefault, doubtMs, logoutPauseMs }: Limits = {},
): Platform {
  const tally = new Tally()
  /** By account. Not shared: what a proxy of one account makes up must not touch another. */
  const memories = new Map<string, ConnectMemory>()
  const memoryOf = (account_id: string) => {
    const memory = memories.get(account_id) ?? new ConnectMemory(doubtMs)
    memories.set(account_id, memory)
    return memory
  }
  return {
    name: 'telegram',
    paceMs,
    gapJitter: 0.5,
    coldRamp: true,
    takeoverSeconds: 75, // limit: takeover
    connect: (account, listener) =>
      openSession(endpoint, account, { listener, tally, memory: memoryOf(account.account_id) }),
    login: (request, report) =>
      request.session_string === undefined
        ? beginLogin(endpoint, request, report)
        : beginImport(endpoint, { ...request, session_string: request.session_string }, report),
    logout: (request) => logout(endpoint, request, logoutPauseMs),
    forgetAccount: (account_id) => void memories.delete(account_id), // guard: an account that left has no clock
    figures: () => ({
      ...tally.figures(),
      clock_offset_seconds: [...memories.values()]
        .map(({ clock }) => clock.offsetSeconds)
        .reduce((furthest, each) => (Math.abs(each) > Math.abs(furthest) ? each : furthest), 0),
    }),
    close: () => Promise.resolve(),
  }
}
