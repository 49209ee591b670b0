import { expect, test } from 'vitest'

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)

test('a name in a sentence is one line, cut, shows what is hidden, and turns no text around it', async () => {
  const { nameIn } = await load('./moves.ts')
  expect(nameIn('Ines\n  Maier')).toBe('\u2068Ines Maier\u2069')
  expect(nameIn(`${'a'.repeat(39)}😀`)).toBe(`\u2068${'a'.repeat(39)}\ufffd…\u2069`)
  expect(nameIn('evil\u202etxt')).toBe('\u2068evilU+202Etxt\u2069')
  expect(nameIn(' ')).toBe('the chat')
})
