/** Which servers the variables mean. Nothing here dials: a test that did would fail (`test/harness/loopback-only.ts`). */
import { findKeyByFingerprints } from '@mtcute/core/utils.js'
import { expect, test } from 'vitest'
import { dialled } from '../../../test/harness/loopback-only.ts'
import { serversOf } from './client.ts'
import { readApplication, telegramModule } from './module.ts'
import { endpointOf } from './open.ts'

const api = { PARLEY_TELEGRAM_API_ID: '1', PARLEY_TELEGRAM_API_HASH: '0'.repeat(32) }

function endpoint(env: Record<string, string> = {}) {
  const application = readApplication({ ...api, ...env })
  if (!application) throw new Error('The variables are not read.')
  return endpointOf(application)
}

/** As my.telegram.org publishes them for every application. */
const testServer = { id: 2, ipAddress: '149.154.167.40', port: 443 }
const keys = { test: 'b25898df208d2603', production: 'd09d1d85de64fd85' }

test("PARLEY_TELEGRAM_DC=test means Telegram's published test servers, in test mode, with their key", async () => {
  const place = { ...testServer, ipv6: false, mediaOnly: false, testMode: true }
  expect(serversOf(endpoint({ PARLEY_TELEGRAM_DC: 'test' }), null)).toEqual({
    defaultDcs: { main: place, media: place },
    testMode: true,
  })
  expect(findKeyByFingerprints([keys.test])).toMatchObject({ fingerprint: keys.test })
  const env = { ...api, PARLEY_TELEGRAM_DC: 'test' }
  const open = { role: 'work', data_dir: '/nowhere', env, manual_from: undefined, failed: () => {} } as const
  // It has people whose time cannot be moved.
  const opened = await telegramModule.open(open)
  expect(opened).toMatchObject({ real: true })
  await opened?.close()
  expect(dialled).toEqual([])
})

test("without the variable a client dials Telegram itself, and another data centre's files there too", () => {
  expect(serversOf(endpoint(), null)).toEqual({ testMode: false })
  const other = { id: 4, ipAddress: '127.0.0.1', port: 1, ipv6: false, mediaOnly: false, testMode: false }
  expect(serversOf(endpoint(), other)).toEqual({ defaultDcs: { main: other, media: other }, testMode: false })
  expect(findKeyByFingerprints([keys.production])).toMatchObject({ fingerprint: keys.production })
})
