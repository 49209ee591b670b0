import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'

/** The words of the line, as a screen reader has them. */
async function wordsOf(chat: object, calm = false): Promise<string> {
  // By a name that the compiler does not follow: the service's own types know no browser.
  const path = './last-line.tsx'
  const { LastLine } = await import(path)
  return renderToStaticMarkup(createElement(LastLine, { chat, calm })).replaceAll(/<[^>]*>/g, '')
}

const theirs = {
  last_message_text: 'Is it still there?',
  last_message_at: '2026-11-01T08:00:00.000Z',
  last_is_sender: false,
  last_attempt: null,
}
const attempt = (state: string, text = 'Yes, it is.') => ({
  ...theirs,
  last_attempt: { state, text, at: '2026-11-01T09:00:00.000Z' },
})

test('the state of an answer stands before the answer, never before the message that it answers', async () => {
  expect(await wordsOf(theirs)).toBe('Is it still there?')
  expect(await wordsOf(attempt('refused'))).toBe('Refused. You: Yes, it is.')
  expect(await wordsOf(attempt('ambiguous'))).toBe('Unclear whether it was sent. You: Yes, it is.')
  expect(await wordsOf(attempt('sending', ''))).toBe('Sending. You: A file')
  expect(await wordsOf({ ...theirs, last_is_sender: true })).toBe('Accepted. You: Is it still there?')
  expect(await wordsOf({ ...theirs, last_is_sender: true }, true)).toBe('You: Is it still there?')
  expect(await wordsOf({ ...theirs, last_message_text: '' })).toBe('A file')
  expect(await wordsOf({ ...theirs, last_message_text: null })).toBe('Not kept any longer')
  expect(await wordsOf({ ...theirs, last_message_text: null, last_message_at: null })).toBe('No messages yet')
})

test('a line that is cut is cut by the element that knows its direction, and so at its own end', async () => {
  const path = './exact-text.tsx'
  const { ExactLine } = await import(path)
  const cut = renderToStaticMarkup(createElement(ExactLine, { text: 'שלום', cut: true }))
  expect(cut).toMatch(/^<bdi dir="auto" class="[^"]*\btruncate\b[^"]*">שלום<\/bdi>$/)
  expect(renderToStaticMarkup(createElement(ExactLine, { text: 'שלום' }))).toBe('<bdi dir="auto">שלום</bdi>')
})
