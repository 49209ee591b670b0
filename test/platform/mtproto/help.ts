/** The methods that clients call before they log in. Both data centres answer the same. */
import type { tl } from '@mtcute/core'
import type { Handlers } from './connection.ts'
import type { CentreParts } from './parts.ts'
import { captionLengthMax, textLengthMax } from './served-account.ts'

/** Figures of Telegram's configuration that no test depends on. */
const figures =
  'chatSizeMax megagroupSizeMax forwardedCountMax onlineUpdatePeriodMs offlineBlurTimeoutMs offlineIdleTimeoutMs ' +
  'onlineCloudTimeoutMs notifyCloudDelayMs notifyDefaultDelayMs pushChatPeriodMs pushChatLimit editTimeLimit ' +
  'revokeTimeLimit revokePmTimeLimit ratingEDecay stickersRecentLimit channelsReadMediaPeriod ' +
  'callReceiveTimeoutMs callRingTimeoutMs callConnectTimeoutMs callPacketTimeoutMs'

export function helpHandlers({ clock, ports }: CentreParts): Handlers {
  return {
    'help.getConfig': (_request, { connection }) => {
      const date = clock.seconds()
      const dcOptions = [...ports].map(
        ([id, port]) => ({ _: 'dcOption', id, ipAddress: '127.0.0.1', port }) as const,
      )
      return {
        ...(Object.fromEntries(figures.split(' ').map((each) => [each, 1000])) as unknown as tl.RawConfig),
        _: 'config',
        date,
        expires: date + 3600,
        testMode: false,
        thisDc: connection.dc,
        dcOptions,
        dcTxtDomainName: 'localhost',
        meUrlPrefix: 'https://t.me/',
        captionLengthMax,
        messageLengthMax: textLengthMax,
        webfileDcId: connection.dc,
      }
    },
    'help.getNearestDc': (_request, { connection }) => {
      return { _: 'nearestDc', country: 'AQ', thisDc: connection.dc, nearestDc: connection.dc }
    },
  }
}
