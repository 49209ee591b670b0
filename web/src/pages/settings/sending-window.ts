/** The sending window as the page paints it. */
import type { SendingWindow } from '../../../../src/rules/sending-window.ts'

/** Both ends included, in either order. */
function spanOf(one: number, other: number): number[] {
  const first = Math.min(one, other)
  return Array.from({ length: Math.abs(one - other) + 1 }, (_, at) => first + at)
}

/** A field of the week: a day and an hour. */
export interface WeekField {
  readonly day: number
  readonly hour: number
}

/** The window from one corner of what was painted to the other. */
export function windowBetween(one: WeekField, other: WeekField): SendingWindow {
  return {
    days: spanOf(one.day, other.day),
    from: Math.min(one.hour, other.hour) * 60,
    to: (Math.max(one.hour, other.hour) + 1) * 60,
  }
}

/** Which part of an hour is inside, from 0 to 1, and where it begins. */
export function partOf({ days, from, to }: SendingWindow, { day, hour }: WeekField) {
  const begins = Math.max(from, hour * 60)
  const ends = Math.min(to, (hour + 1) * 60)
  const inside = days.includes(day) && ends > begins
  return inside ? { start: (begins - hour * 60) / 60, size: (ends - begins) / 60 } : { start: 0, size: 0 }
}
