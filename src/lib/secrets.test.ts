import { createHash, createHmac, hkdfSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Secrets, sha256, sha256Beside } from './secrets.ts'

const secrets = new Secrets('a secret for tests that is long enough')

test.each(['short é', 'long é'.repeat(100_000)])(
  'the hash of a text is the same beside: %.5s',
  async (text) => {
    expect(await sha256Beside(text)).toEqual(sha256(text))
  },
)

test('a signature is a standard HMAC-SHA256', () => {
  const root = createHash('sha256').update('root').digest()
  const key = Buffer.from(hkdfSync('sha256', root, 'parley', 'cursor', 32))
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
      const hmac = createHmac('sha256', key)
        .update(`${Buffer.byteLength(text)}:`)
        .update(text)
      expect(new Secrets('root').sign('cursor', text)).toEqual(hmac.digest())
    }),
  )
})

describe('a sealed value', () => {
  test('opens in its own place, for its own purpose, with its own secret, and nowhere else', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (plain) => {
        const sealed = secrets.seal('webhook', 'webhooks/1', plain)
        expect(secrets.open('webhook', 'webhooks/1', sealed)).toEqual(Buffer.from(plain))
        expect(() => secrets.open('webhook', 'webhooks/2', sealed)).toThrow()
        expect(() => secrets.open('webhook', '', sealed)).toThrow()
        expect(() => secrets.open('session', 'webhooks/1', sealed)).toThrow()
        expect(() => new Secrets('another one').open('webhook', 'webhooks/1', sealed)).toThrow()
      }),
    )
  })

  test('does not open with any bit changed, cut short, or with a shorter tag', () => {
    const sealed = secrets.seal('webhook', 'here', Buffer.from('whsec_'))
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const changed = Buffer.from(sealed)
      changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      expect(() => secrets.open('webhook', 'here', changed)).toThrow()
    }
    for (let length = 0; length < sealed.length; length++) {
      expect(() => secrets.open('webhook', 'here', sealed.subarray(0, length))).toThrow()
    }
  })

  test('is never sealed to the same bytes twice', () => {
    const all = Array.from({ length: 100 }, () =>
      secrets.seal('webhook', 'here', Buffer.alloc(0)).toString('hex'),
    )
    expect(new Set(all).size).toBe(100)
  })
})

describe('a signature', () => {
  test('is the same for the same parts only', () => {
    const lists = [
      [],
      [''],
      ['', ''],
      ['ab'],
      ['a', 'b'],
      ['', 'ab'],
      ['1:a'],
      ['a', '1:b'],
      ['é'],
      ['e\u0301'],
    ]
    const signatures = lists.map((parts) => secrets.sign('cursor', ...parts).toString('hex'))
    expect(new Set(signatures).size).toBe(lists.length)
    expect(secrets.sign('audit', 'ab')).not.toEqual(secrets.sign('cursor', 'ab'))
    expect(new Secrets('a secret for tests that is long enough').sign('cursor', 'ab')).toEqual(
      secrets.sign('cursor', 'ab'),
    )
  })

  test('does not change between versions: stored values depend on it', () => {
    expect(new Secrets('fixed').sign('random_id', 'a', 'b').toString('hex')).toBe(
      '6af7a83f9af5393105b240d2a42de56f5bcd0563afbc32b31704fa2d40b82b3b',
    )
  })
})

describe('two secrets', () => {
  const [old, renewed] = ['the old secret', 'the new secret']
  const place = ['webhook', 'webhooks:1'] as const

  test('both open and verify, and only the one in use seals and signs', () => {
    const both = new Secrets(renewed, old)
    const [ofOld, ofNew] = [new Secrets(old), new Secrets(renewed)]
    expect(both.ids).toEqual([ofNew.id, ofOld.id])
    expect(both.sealWith({ secret_id: ofOld.id, turn: 0 })).toBe(true)
    expect(ofOld.open(...place, both.seal(...place, Buffer.from('a'))).toString()).toBe('a')
    expect(both.sign('cursor', 'a')).toEqual(ofOld.sign('cursor', 'a'))
    expect(both.sealWith({ secret_id: ofNew.id, turn: 1 })).toBe(true)
    expect(() => ofOld.open(...place, both.seal(...place, Buffer.from('a')))).toThrow()
    expect(both.openAny(...place, ofOld.seal(...place, Buffer.from('a')))).toEqual({
      plain: Buffer.from('a'),
      secret_id: ofOld.id,
    })
    expect(both.signatures('cursor', 'a')).toEqual([ofNew.sign('cursor', 'a'), ofOld.sign('cursor', 'a')])
  })

  test('an older answer of the database does not bring the old secret back', () => {
    const both = new Secrets(renewed, old)
    const [of_new, of_old] = both.ids
    both.sealWith({ secret_id: of_new ?? '', turn: 1 })
    expect(both.sealWith({ secret_id: of_old ?? '', turn: 0 })).toBe(true)
    expect(both.id).toBe(of_new)
    expect(both.sealWith({ secret_id: 'another', turn: 2 })).toBe(false)
    expect(both.id).toBe(of_new)
  })

  test('a stored key signs whichever secret is in use', () => {
    const both = new Secrets(renewed, old)
    both.useStored(new Map([['audit', new Secrets(old).derive('audit')]]))
    expect(both.sign('audit', 'a')).toEqual(new Secrets(old).sign('audit', 'a'))
    expect(both.signatures('audit', 'a')).toEqual([new Secrets(old).sign('audit', 'a')])
    expect(both.sign('random_id', 'a')).toEqual(new Secrets(renewed).sign('random_id', 'a'))
  })
})

test('SHA-256 is the standard one', () => {
  expect(sha256('abc').toString('hex')).toBe(
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  )
})
