import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { newSecret, signatureHeaders } from './webhook-signatures.ts'

const alphabets = [
  'plain ascii',
  'Grüße, señor',
  'Привет',
  '漢字かな',
  '😀👩‍👩‍👧',
  '\u202e\u200b\u2028',
  '"\\/\n\t',
]

/** Different each time, of every alphabet, a few bytes or more. */
function bodyOf(n: number): string {
  const text = Array.from(
    { length: 1 + (n % 6) },
    (_, at) => alphabets[(n * 7 + at * 3) % alphabets.length],
  ).join('')
  return JSON.stringify({ id: `evt_${n}`, data: { text, n } })
}

const plain = (secret: string, body: string) =>
  `sha256=${createHmac('sha256', secret).update(Buffer.from(body)).digest('hex')}`

const now = () => Math.floor(Date.now() / 1000)

describe('signatures', () => {
  test('standardwebhooks and plain HMAC verify 10,000 bodies, in unicode and during a rotation', () => {
    const wrong: number[] = []
    for (let n = 0; n < 10_000; n++) {
      const [secret, previous] = [newSecret(), newSecret()]
      const body = bodyOf(n)
      const rotated = n % 2 === 0
      const keys: [string, ...string[]] = rotated ? [secret, previous] : [secret]
      const headers = signatureHeaders({ id: `evt_${n}`, timestamp: now(), body }, keys)
      const mine = headers['X-Service-Signature'] === plain(secret, body)
      const before = headers['X-Service-Signature-Previous'] === (rotated ? plain(previous, body) : undefined)
      // It throws when it does not verify. The keys it is given take turns.
      new Webhook(keys[n % keys.length] ?? secret).verify(body, headers)
      if (rotated && n % 20 === 0) new Webhook(previous).verify(body, headers)
      if (!mine || !before) wrong.push(n)
    }
    expect(wrong).toEqual([])
  })

  test('a changed byte, an old timestamp, another id and a wrong secret do not verify', () => {
    const secret = newSecret()
    for (let n = 0; n < 200; n++) {
      const body = bodyOf(n)
      const headers = signatureHeaders({ id: 'evt_1', timestamp: now(), body }, [secret])
      const at = n % body.length
      const changed = body.slice(0, at) + (body[at] === 'x' ? 'y' : 'x') + body.slice(at + 1)
      expect(() => new Webhook(secret).verify(changed, headers)).toThrow()
      expect(plain(secret, changed)).not.toBe(headers['X-Service-Signature'])
      expect(() => new Webhook(newSecret()).verify(body, headers)).toThrow()
      expect(() => new Webhook(secret).verify(body, { ...headers, 'webhook-id': 'evt_2' })).toThrow()
      const old = signatureHeaders({ id: 'evt_1', timestamp: now() - 301, body }, [secret])
      expect(() => new Webhook(secret).verify(body, old)).toThrow()
    }
  })
})
