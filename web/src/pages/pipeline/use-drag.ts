/**
 * Drags a card to another stage. Pointer events instead of the browser's own drag and drop: the card itself follows
 * the pointer, Escape cancels, and no library is loaded. Touch scrolls; it uses "Move to…" instead.
 */
import {
  type PointerEvent as ReactPointerEvent,
  type RefObject,
  useLayoutEffect,
  useRef,
  useState,
} from 'react'
import type { InboxChat } from '../../data/chats.ts'

/** A click moves a little too. */
const startPx = 5
/** The board scrolls this close to an edge, and this far with each frame. */
const edgePx = 56
const scrollPx = 14

interface Drag {
  readonly chat: InboxChat
  readonly width: number
  /** The stage under the pointer, if the card can go there. */
  readonly over: string | undefined
}

interface Options {
  readonly board: RefObject<HTMLElement | null>
  /** The copy of the card that follows the pointer. */
  readonly ghost: RefObject<HTMLElement | null>
  readonly accepts: (chat: InboxChat, stage_key: string) => boolean
  readonly onDrop: (chat: InboxChat, stage_key: string) => void
}

export function useDrag({ board, ghost, accepts, onDrop }: Options) {
  const [drag, setDrag] = useState<Drag>()
  const latest = useRef({ accepts, onDrop })
  useLayoutEffect(() => {
    latest.current = { accepts, onDrop }
  })

  const begin = (down: ReactPointerEvent, chat: InboxChat) => {
    if (down.button !== 0 || down.pointerType === 'touch') return
    if (down.target instanceof Element && down.target.closest('button')) return
    const box = down.currentTarget.getBoundingClientRect()
    const grip = { x: down.clientX - box.left, y: down.clientY - box.top }
    let at = { x: down.clientX, y: down.clientY }
    let over: string | undefined
    let frame = 0

    const stageAt = () => {
      const stage = document.elementFromPoint(at.x, at.y)?.closest<HTMLElement>('[data-stage]')?.dataset.stage
      return stage !== undefined && latest.current.accepts(chat, stage) ? stage : undefined
    }
    const follow = () => {
      if (ghost.current) {
        ghost.current.style.transform = `translate(${at.x - grip.x}px, ${at.y - grip.y}px) rotate(1.6deg)`
      }
      const edges = board.current?.getBoundingClientRect()
      if (edges && at.x < edges.left + edgePx) board.current?.scrollBy(-scrollPx, 0)
      if (edges && at.x > edges.right - edgePx) board.current?.scrollBy(scrollPx, 0)
      const next = stageAt()
      if (frame === 0 || next !== over) setDrag({ chat, width: box.width, over: next })
      over = next
      frame = requestAnimationFrame(follow)
    }
    const move = (event: PointerEvent) => {
      at = { x: event.clientX, y: event.clientY }
      const far = Math.hypot(at.x - down.clientX, at.y - down.clientY) > startPx
      if (frame !== 0 || !far) return
      document.documentElement.classList.add('dragging')
      getSelection()?.removeAllRanges()
      follow()
    }
    const end = () => {
      for (const [name, act] of Object.entries(listeners)) removeEventListener(name, act as EventListener)
      document.documentElement.classList.remove('dragging')
      if (frame === 0) return
      cancelAnimationFrame(frame)
      setDrag(undefined)
      // Releasing the button is also a click on the card's link.
      addEventListener('click', stopClick, { capture: true, once: true })
      setTimeout(() => removeEventListener('click', stopClick, { capture: true }))
    }
    const drop = () => {
      // Not the position of the last frame: a quick hand has moved on since.
      const to = frame === 0 ? undefined : stageAt()
      end()
      if (to !== undefined) latest.current.onDrop(chat, to)
    }
    const listeners = {
      pointermove: move,
      pointerup: drop,
      pointercancel: end,
      keydown: (event: KeyboardEvent) => event.key === 'Escape' && end(),
    }
    for (const [name, act] of Object.entries(listeners)) addEventListener(name, act as EventListener)
  }
  return { drag, begin }
}

function stopClick(event: Event): void {
  event.preventDefault()
  event.stopPropagation()
}
