/** The scale of a chart, and its days in words. */

/** A round number at or above the highest value, whose half is a whole number too. */
export function scaleTop(most: number): number {
  if (most <= 4) return 4
  const magnitude = 10 ** Math.floor(Math.log10(most))
  const step = [1, 2, 4, 6, 8].find((each) => each * magnitude >= most) ?? 10
  return step * magnitude
}

const shortDay = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** A day of the workspace's calendar, whatever the zone of the browser. */
export function dayWords(day: string | undefined): string {
  return day === undefined ? '' : shortDay.format(new Date(`${day}T00:00:00Z`))
}
