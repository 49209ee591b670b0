/** Keys of a page. None fires while the user types, or while a dialog or menu is open. */
import { useEffect, useEffectEvent, useRef } from 'react'

const typing = 'input, textarea, select, [contenteditable], [role="combobox"]'
const covering = '[role="dialog"], [role="alertdialog"], [role="menu"]'

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(typing) !== null
}

export type KeyActions = Readonly<Record<string, () => void>>

/** Calls the action of each key, by the character that it types. */
export function useKeys(actions: KeyActions): void {
  const onKey = useEffectEvent((event: KeyboardEvent) => {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return
    if (isTyping(event.target) || document.querySelector(covering)) return
    const act = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key]
    if (!act) return
    event.preventDefault()
    act()
  })
  useEffect(() => {
    const listen = (event: KeyboardEvent) => onKey(event)
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [])
}

/** How long the second key may take. */
const chordMs = 1_500

/** `G`, then a letter, leads to a page. */
export function useGoKeys(pages: KeyActions): void {
  const pressedAt = useRef(0)
  const second = (act: () => void) => () => {
    if (performance.now() - pressedAt.current < chordMs) act()
    pressedAt.current = 0
  }
  useKeys({
    ...Object.fromEntries(Object.entries(pages).map(([key, act]) => [key, second(act)])),
    g: () => {
      pressedAt.current = performance.now()
    },
  })
}
