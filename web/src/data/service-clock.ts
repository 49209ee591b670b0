/** How far this browser's clock is off: every answer carries the service's time, to the second. */

let offsetMs = 0

export function noteServiceTime(headers: Headers, nowMs = Date.now()): void {
  const at = Date.parse(headers.get('date') ?? '')
  // The header leaves out the part of a second.
  if (!Number.isNaN(at)) offsetMs = at + 500 - nowMs
}

/** A time that this browser took, by the service's clock. */
export function serviceTimeOf(browserTime: string): string {
  return new Date(Date.parse(browserTime) + offsetMs).toISOString() // guard: clock of the service
}
