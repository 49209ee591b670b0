import { describe, expect, test } from 'vitest'
import { sha256 } from '../lib/secrets.ts'
import { looksLikeKey, makeKey } from './keys.ts'

describe('the format of a key', () => {
  test('is svc_live_, 32 random characters and a checksum of 6', () => {
    const keys = Array.from({ length: 500 }, makeKey)
    expect(new Set(keys.map(({ key }) => key)).size).toBe(500)
    for (const { key, prefix, hash } of keys) {
      expect(key).toMatch(/^svc_live_[0-9A-Za-z]{38}$/)
      expect(looksLikeKey(key)).toBe(true)
      expect(key.startsWith(prefix)).toBe(true)
      expect(prefix).toHaveLength(15)
      expect(hash).toEqual(sha256(key))
    }
  })

  test('detects any one mistyped character, and any two swapped neighbours', () => {
    const { key } = makeKey()
    for (let at = 9; at < key.length; at++) {
      for (const character of '0Az') {
        if (key[at] !== character)
          expect(looksLikeKey(key.slice(0, at) + character + key.slice(at + 1))).toBe(false)
      }
      const swapped = key.slice(0, at) + key.charAt(at + 1) + key.charAt(at) + key.slice(at + 2)
      if (swapped !== key) expect(looksLikeKey(swapped)).toBe(false)
    }
  })

  test('accepts no other format', () => {
    const { key } = makeKey()
    for (const wrong of [
      '',
      'svc_live_',
      key.slice(0, -1),
      `${key}0`,
      ` ${key}`,
      `${key}\n`,
      key.toUpperCase(),
      key.replace('live', 'test'),
    ]) {
      expect(looksLikeKey(wrong)).toBe(false)
    }
  })
})
