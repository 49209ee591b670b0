/** Telegram as a platform. */
import type { Platform } from '../port.ts'
import type { Endpoint } from './client.ts'
import { beginLogin, logout } from './login.ts'
import { openSession } from './session.ts'
import { Tally } from './tally.ts'

/** Channels have this number and lower ones. */
const channelsFrom = '-1000000000000'

const paceMsDefault = 1_000 // limit: pace of the sync

export function telegramPlatform(
  endpoint: Endpoint,
  { paceMs = paceMsDefault }: { paceMs?: number } = {},
): Platform {
  const tally = new Tally()
  return {
    name: 'telegram',
    paceMs,
    ownCountUpTo: channelsFrom,
    gapJitter: 0.5,
    coldRamp: true,
    takeoverSeconds: 75, // limit: takeover
    connect: (account, listener) => openSession(endpoint, account, { listener, tally }),
    login: (request, report) => beginLogin(endpoint, request, report),
    logout: (request) => logout(endpoint, request),
    figures: () => tally.figures(),
    close: () => Promise.resolve(),
  }
}
