import { expect, test } from 'vitest'

test('a time of the forecast names the zone of the workspace, whatever the zone of the reader', async () => {
  // By a name that the compiler does not follow: the service's own types know no browser.
  const path = './preview-load.tsx'
  const { momentWords } = await import(path)
  expect(momentWords('2026-11-17T08:30:00.000Z', 'Europe/Berlin')).toBe('Tue 17 Nov, 09:30 Berlin time')
  expect(momentWords('2026-11-17T08:30:00.000Z', 'UTC')).toBe('Tue 17 Nov, 08:30 UTC')
})
