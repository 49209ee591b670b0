/** A week to paint the sending window on, by pointer or by keyboard. */
import { type KeyboardEvent, type PointerEvent, useRef, useState } from 'react'
import { dayNames, type SendingWindow } from '../../../../src/rules/sending-window.ts'
import { partOf, type WeekField, windowBetween } from './sending-window.ts'

const hours = Array.from({ length: 24 }, (_, hour) => hour)
const steps: Readonly<Record<string, readonly [day: number, hour: number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
}

interface WeekProps {
  window: SendingWindow
  readOnly: boolean
  onChange: (window: SendingWindow) => void
}

export function Week({ window, readOnly, onChange }: WeekProps) {
  const [focused, setFocused] = useState<WeekField>({
    day: window.days[0] ?? 1,
    hour: Math.floor(window.from / 60),
  })
  /** Where painting began. */
  const anchor = useRef<WeekField>(undefined)
  const grid = useRef<HTMLTableElement>(null)
  const paint = (to: WeekField) => onChange(windowBetween(anchor.current ?? to, to))
  const move = (to: WeekField) => {
    setFocused(to)
    grid.current?.querySelector<HTMLElement>(`[data-field="${to.day} ${to.hour}"]`)?.focus()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const [days, hoursOn] = steps[event.key] ?? []
    if (event.key === ' ' && !readOnly) {
      event.preventDefault()
      anchor.current = focused
      paint(focused)
    }
    if (days === undefined || hoursOn === undefined) return
    event.preventDefault()
    const to = { day: within(focused.day + days, 1, 7), hour: within(focused.hour + hoursOn, 0, 23) }
    if (event.shiftKey && !readOnly) {
      anchor.current ??= focused
      paint(to)
    } else anchor.current = undefined
    move(to)
  }
  const onPointerMove = (event: PointerEvent) => {
    if (event.buttons !== 1 || !anchor.current || readOnly) return
    const to = fieldAt(event)
    if (!to || (to.day === focused.day && to.hour === focused.hour)) return
    setFocused(to)
    paint(to)
  }
  return (
    <table
      ref={grid}
      // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: its fields are painted, as in a spreadsheet.
      role="grid"
      aria-label="Sending window"
      aria-readonly={readOnly}
      aria-multiselectable
      onKeyDown={onKeyDown}
      onPointerMove={onPointerMove}
      className="w-full table-fixed touch-none select-none border-separate border-spacing-0"
    >
      <thead>
        <tr>
          <th className="w-10 sm:w-12">
            <span className="sr-only">Day</span>
          </th>
          {hours.map((hour) => (
            <th key={hour} scope="col" className="pb-1 text-left text-xs font-normal text-muted">
              <span className="sr-only">{hour}:00</span>
              {hour % 6 === 0 && <span aria-hidden>{hour}</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {dayNames.map((name, at) => (
          <tr key={name}>
            <th scope="row" className="pr-2 text-left font-normal text-soft">
              {name}
            </th>
            {hours.map((hour) => {
              const field = { day: at + 1, hour }
              const { start, size } = partOf(window, field)
              const isFocused = focused.day === field.day && focused.hour === hour
              return (
                <td
                  key={hour}
                  // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: see above.
                  role="gridcell"
                  tabIndex={isFocused ? 0 : -1}
                  aria-label={`${name} ${hour}:00`}
                  aria-selected={size > 0}
                  data-field={`${field.day} ${hour}`}
                  onFocus={() => setFocused(field)}
                  onPointerDown={(event) => {
                    if (readOnly) return
                    // A finger would otherwise hold on to the first field.
                    event.currentTarget.releasePointerCapture?.(event.pointerId)
                    anchor.current = field
                    setFocused(field)
                    paint(field)
                  }}
                  className={`h-7 border-b border-line p-0 focus-visible:relative focus-visible:outline-2 focus-visible:outline-accent
                    ${hour % 6 === 0 ? 'border-l' : ''} ${at === 0 ? 'border-t' : ''} ${hour === 23 ? 'border-r' : ''}
                    ${readOnly ? '' : 'cursor-cell'}`}
                >
                  <span
                    aria-hidden
                    className="block h-full bg-accent"
                    style={{ marginLeft: `${start * 100}%`, width: `${size * 100}%` }}
                  />
                </td>
              )
            })}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function within(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value))
}

/** The field under the pointer, which may have left the one where it was pressed. */
function fieldAt({ clientX, clientY }: PointerEvent): WeekField | undefined {
  const found = document.elementFromPoint(clientX, clientY)?.closest<HTMLElement>('[data-field]')
  const [day, hour] = found?.dataset.field?.split(' ').map(Number) ?? []
  return day === undefined || hour === undefined ? undefined : { day, hour }
}
