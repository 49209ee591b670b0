import { expect, test } from 'vitest'

test('without a network the page says so, and does not promise to reconnect', async () => {
  // By a name that the compiler does not follow: the service's own types know no browser.
  const path = './live-words.ts'
  const { liveWords } = await import(path)
  expect([liveWords('live', true), liveWords('lost', true)]).toEqual(['', 'Reconnecting…'])
  expect([liveWords('live', false), liveWords('lost', false)]).toEqual(['You are offline', 'You are offline'])
})
