/** What the dashboard's browser notifications say. */
import { expect, test } from 'vitest'
import { wordsOf } from './notification-words.ts'

const news = { plain: 'A new message', title: 'Ines García', body: 'Is the \u202eblue one left?' }

test('a notification has no name and no text unless they are switched on', () => {
  expect(wordsOf(news, { text: false })).toEqual({ title: 'A new message', body: '' })
})

test('with names and texts it shows what cannot be seen as codes, and no more than 200 characters', () => {
  expect(wordsOf(news, { text: true })).toEqual({
    title: 'Ines García',
    body: 'Is the [U+202E]blue one left?',
  })
  expect(wordsOf({ ...news, title: ' ', body: 'x'.repeat(300) }, { text: true })).toEqual({
    title: 'A new message',
    body: 'x'.repeat(200),
  })
})
