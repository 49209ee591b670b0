import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'

test('every time is in the zone of the profile, whatever the zone of the browser', async () => {
  // By a name that the compiler does not follow: the service's own types know no browser.
  const path = './time.tsx'
  const { ClockTime, Time, TimeZone, useClock } = await import(path)
  const at = '2026-01-31T23:30:00.000Z'
  const Row = () => {
    const { clock, date } = useClock()
    return `${date(at)}, ${clock(at)}`
  }
  // Each has its day and its time, and the second one a title too.
  const shown = (value: string) =>
    renderToStaticMarkup(
      createElement(
        TimeZone,
        { value },
        createElement(ClockTime, { at }),
        createElement(Time, { at, exact: true }),
        createElement(Row),
      ),
    )
  expect(shown('Asia/Tokyo').match(/08:30/g)).toHaveLength(4)
  expect(shown('Asia/Tokyo').match(/1 Feb/g)).toHaveLength(4)
  expect(shown('America/New_York').match(/18:30/g)).toHaveLength(4)
  expect(shown('America/New_York').match(/31 Jan/g)).toHaveLength(4)
})
