/** The secrets of webhook endpoints, what sealed values of them are bound to, and the headers that sign a delivery with them. */
import { createHmac, randomBytes } from 'node:crypto'
import type { Secrets } from './secrets.ts'

const prefix = 'whsec_'

/** As returned, once: the prefix, and 32 random bytes in base64. */
export function newSecret(): string {
  return prefix + randomBytes(32).toString('base64')
}

/** Bound to the endpoint's row: moved to another row, it does not open. */
export function sealSecret(secrets: Secrets, webhook_id: string, secret: string): Buffer {
  return secrets.seal('webhook', secretPlaceOf(webhook_id), Buffer.from(secret))
}

export function openSecret(secrets: Secrets, webhook_id: string, sealed: Uint8Array): string {
  return secrets.open('webhook', secretPlaceOf(webhook_id), sealed).toString()
}

/** A caller may write an id in capitals; the database does not. */
export function secretPlaceOf(webhook_id: string): string {
  return `webhooks:${webhook_id.toLowerCase()}`
}

export function addressPlaceOf(webhook_id: string): string {
  return `webhooks:${webhook_id.toLowerCase()}:url` // guard: an address is bound to its webhook
}

interface SignedContent {
  readonly id: string
  /** Unix seconds, real time. */
  readonly timestamp: number
  readonly body: string
}

/**
 * `X-Service-Signature` signs the body, keyed with the whole secret as text. The headers of Standard Webhooks sign id, time
 * and body, keyed with the bytes the secret encodes. After a rotation, the previous secret signs as well while it is valid.
 */
export function signatureHeaders(
  { id, timestamp, body }: SignedContent,
  [secret, previous]: readonly [string, ...string[]],
): Record<string, string> {
  const standard = [secret, previous].flatMap((key) =>
    key === undefined ? [] : [`v1,${hmac(bytesOf(key), `${id}.${timestamp}.${body}`, 'base64')}`],
  )
  return {
    'X-Service-Signature': `sha256=${hmac(secret, body, 'hex')}`,
    ...(previous !== undefined && {
      'X-Service-Signature-Previous': `sha256=${hmac(previous, body, 'hex')}`,
    }),
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': standard.join(' '),
  }
}

function bytesOf(secret: string): Buffer {
  return Buffer.from(secret.slice(prefix.length), 'base64')
}

function hmac(key: string | Buffer, text: string, encoding: 'hex' | 'base64'): string {
  return createHmac('sha256', key).update(text).digest(encoding)
}
