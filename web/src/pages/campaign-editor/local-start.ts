/** Which instant a local start means, by the service's rule: of a skipped or repeated time, the later one. Pure. */

const dayMs = 86_400_000

export interface Start {
  readonly at: Date
  readonly kind: 'plain' | 'skipped' | 'repeated'
}

/** `local` is as a date field has it: 2026-03-29T02:30. Undefined if it is not a time. */
export function startOf(local: string, timezone: string): Start | undefined {
  const ms = Date.parse(`${local}Z`)
  if (Number.isNaN(ms)) return undefined
  const [before, after] = [offsetAt(ms - dayMs, timezone), offsetAt(ms + dayMs, timezone)]
  const candidates = [...new Set([before, after])].map((offset) => ms - offset).sort((a, b) => a - b)
  const valid = candidates.filter((at) => at + offsetAt(at, timezone) === ms)
  const at = new Date(valid.at(-1) ?? candidates.at(-1) ?? ms)
  return { at, kind: valid.length === 1 ? 'plain' : valid.length === 0 ? 'skipped' : 'repeated' }
}

/** How far the zone's clocks are ahead of UTC, in milliseconds. */
function offsetAt(ms: number, timeZone: string): number {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  }).formatToParts(ms)
  const part = (type: string) => Number(parts.find((each) => each.type === type)?.value)
  const local = Date.UTC(
    part('year'),
    part('month') - 1,
    part('day'),
    part('hour'),
    part('minute'),
    part('second'),
  )
  return local - Math.floor(ms / 1_000) * 1_000
}
