/** Takes over the session of another program: proves that it works, and whose it is. Makes no key and ends none. */
import type { BasicDcOption } from '@mtcute/core/utils.js'
import type { Login, LoginFailure, LoginRequest, LoginStep } from '../port.ts'
import { Client, type Endpoint } from './client.ts'
import { findErrorText, findMeaning, nameOf } from './errors.ts'
import { failureOf, personOf } from './login.ts'
import { retryWithTime, ServerClock } from './server-clock.ts'
import { readSessionString } from './session-string.ts'
import { importBlob, openSessionStorage } from './storage.ts'
import { keyUnknown } from './transport.ts'

/** Telegram's data centres by number, as TDLib has them (`ConnectionCreator::get_default_dc_options`). */
const addresses = {
  production: ['149.154.175.50', '149.154.167.51', '149.154.175.100', '149.154.167.91', '149.154.171.5'],
  test: ['149.154.175.10', '149.154.167.40', '149.154.175.117'],
} as const

type ImportRequest = LoginRequest & { readonly session_string: string }

export function beginImport(
  endpoint: Endpoint,
  { session_string, proxy }: ImportRequest,
  report: (step: LoginStep) => void,
): Login {
  const blob = blobOf(endpoint, session_string)
  const storage = blob && openSessionStorage(blob)
  if (!blob || !storage) {
    report(failed('session_string_invalid'))
    return { answer: () => {}, close: async () => {} }
  }
  const clock = new ServerClock()
  let endReason: string | undefined
  let isClosed = false
  let client: Client | undefined
  const askSelf = async () => {
    if (isClosed) throw new Error('The import was closed.')
    client = new Client(endpoint, {
      ...{ storage, proxy, clock },
      held: () => true,
      migrates: false,
      pushed: () => {},
      ended: (reason) => {
        endReason = reason
      },
    })
    try {
      await client.connect()
      return await client.call({ _: 'users.getUsers', id: [{ _: 'inputUserSelf' }] })
    } finally {
      // Before the report: the worker may use the key as soon as it is stored.
      await client.close()
    }
  }
  void (async (): Promise<LoginStep> => {
    try {
      const [user] = await retryWithTime(clock, askSelf)
      // A bot cannot write first, so it is no account of ours.
      if (user?._ !== 'user' || user.bot) return failed('session_string_invalid')
      return { kind: 'done', self: await personOf({ ...user, self: true }), session: blob }
    } catch (error) {
      return explain(error, endReason)
    }
  })().then(report)
  const close = async () => {
    isClosed = true
    await client?.close()
  }
  return { answer: () => {}, close }
}

/** Undefined: it is none, or one of other servers than those that this process dials. */
function blobOf({ test_dc }: Endpoint, text: string): Uint8Array | undefined {
  const found = readSessionString(text)
  if (!found) return undefined
  const { dc_id: id, key, test } = found
  const isTest = test_dc?.testMode ?? false
  if (test !== null && test !== isTest) return undefined
  // A data centre on loopback is every data centre.
  const isLoopback = test_dc !== null && !isTest
  const ipAddress = isLoopback ? test_dc.ipAddress : addresses[isTest ? 'test' : 'production'][id - 1]
  if (ipAddress === undefined) return undefined
  const dc: BasicDcOption = {
    id,
    ipAddress,
    port: isLoopback ? test_dc.port : 443,
    ipv6: false,
    mediaOnly: false,
    testMode: isTest,
  }
  return importBlob(dc, key)
}

function explain(error: unknown, endReason: string | undefined): LoginStep {
  const text = findErrorText(error)
  if (text === 'AUTH_KEY_DUPLICATED') return failed('session_duplicated', text) // guard: an import stops at a duplicated key
  if (endReason === keyUnknown) return failed('session_ended', 'transport error -404')
  if (text !== undefined && findMeaning(text) === 'needs_login') return failed('session_ended', nameOf(text))
  return { kind: 'failed', ...failureOf(error) }
}

function failed(reason: LoginFailure, detail: string | null = null): LoginStep {
  return { kind: 'failed', reason, detail, retry_after_seconds: null }
}
