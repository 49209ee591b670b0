import { expect, test } from 'vitest'
import { codeOf, splitHidden } from './hidden-characters.ts'

test('shows invisible characters as their codes, except those of an emoji, a keycap and line breaks', () => {
  const hidden = [
    [
      0x00, 0x08, 0x0b, 0x1b, 0x7f, 0x85, 0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180b, 0x180e,
      0x180f,
    ],
    [
      0x200b, 0x200c, 0x200d, 0x200e, 0x2028, 0x2029, 0x202e, 0x2060, 0x2064, 0x2065, 0x2066, 0x206f, 0x2800,
      0x3164,
    ],
    [0xfe00, 0xfe0e, 0xfe0f, 0xfeff, 0xffa0, 0xfff0, 0xfff9, 0xffff, 0xe000, 0xfdd0, 0x378, 0x16fe4, 0x13440],
    [0x1bca0, 0x1d173, 0xe0041, 0xe0100, 0xe01ef, 0x10ffff],
  ].flat()
  for (const code of hidden) {
    const character = String.fromCodePoint(code)
    expect(splitHidden(`a${character}b`), code.toString(16)).toEqual(['a', character, 'b'])
  }
  // A message can be hidden in the characters after one sign, a few bits each.
  const carried = ['\ufe06', '\ufe09', '\ufe0f', '\ufe0f']
  const parts = splitHidden(`\u2764\ufe0f${carried.join('')}!`)
  expect(parts.filter((_, at) => at % 2 === 1)).toEqual(carried)
  expect(splitHidden('1\ufe0f')).toHaveLength(3)
  const plain = [
    'Grüße, 日本語, עברית, ไทย',
    'two\nlines\tand a tab',
    '❤️ ☎︎ 1️⃣ 👩🏽‍🚀 🏳️‍🌈 ❤️‍🔥 👨‍👩‍👧 🇩🇪',
    'é e\u0301',
  ]
  for (const text of plain) expect(splitHidden(text)).toEqual([text])
  expect([codeOf('\0'), codeOf('\u202e'), codeOf('\u{e0100}')]).toEqual(['U+0000', 'U+202E', 'U+E0100'])
})
