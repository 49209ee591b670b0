import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { readSessionString } from './session-string.ts'

const key = randomBytes(256)
const port = Buffer.from([1, 187])
const url = (bytes: Buffer) => bytes.toString('base64url')
/** Telethon keeps the padding. */
const padded = (text: string) => text + '='.repeat((4 - (text.length % 4)) % 4)

/** As each program packs them. */
const strings: Record<string, string> = {
  Telethon: `1${padded(url(Buffer.concat([Buffer.from([4, 149, 154, 167, 91]), port, key])))}`,
  'Telethon, IPv6': `1${padded(url(Buffer.concat([Buffer.from([4]), randomBytes(16), port, key])))}`,
  gramjs: `1${Buffer.concat([Buffer.from([4, 0, 14]), Buffer.from('149.154.167.91'), port, key]).toString('base64')}`,
  'gramjs, by name': `1${Buffer.concat([Buffer.from([4, 0, 24]), Buffer.from('vesta-1.web.telegram.org'), port, key]).toString('base64')}`,
  Pyrogram: url(
    Buffer.concat([Buffer.from([4, 0, 0, 48, 57, 0]), key, Buffer.alloc(8, 7), Buffer.from([0])]),
  ),
  'Pyrogram, 64-bit': url(Buffer.concat([Buffer.from([4, 0]), key, Buffer.alloc(8, 7), Buffer.from([0])])),
  'Pyrogram, oldest': url(Buffer.concat([Buffer.from([4, 0]), key, Buffer.alloc(4, 7), Buffer.from([0])])),
}

describe('a session string', () => {
  test.each(Object.entries(strings))('of %s has its data centre and its key', (name, text) => {
    const found = readSessionString(` ${text}\n`)
    expect(found && Buffer.from(found.key).equals(key)).toBe(true)
    expect(found).toMatchObject({ dc_id: 4, test: name.startsWith('Pyrogram') ? false : null })
  })

  test("of Pyrogram says if it belongs to Telegram's test servers", () => {
    const bytes = Buffer.from(strings.Pyrogram ?? '', 'base64url')
    bytes[5] = 1
    expect(readSessionString(url(bytes))).toMatchObject({ test: true })
  })

  test.each([
    '',
    '1',
    'a password',
    strings.Telethon?.slice(0, 200) ?? '',
    `${strings.Pyrogram}AAAA`,
    `1${url(Buffer.concat([Buffer.from([9, 149, 154, 167, 91]), port, key]))}`,
    `1${url(Buffer.concat([Buffer.from([4, 149, 154, 167, 91]), port, Buffer.alloc(256)]))}`,
    `1${url(randomBytes(400))}`,
    (strings.Telethon ?? '').replace(/.{3}$/, ' \u0000!'),
  ])('that is none is refused: case %#', (text) => {
    expect(readSessionString(text)).toBeUndefined()
  })
})
