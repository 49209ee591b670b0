/** Keys of the board and the table: `J` and `K` or the arrows go through the cards, `M` moves one, `Z` undoes. */
import { useEffect } from 'react'
import { undoLast } from '../../data/toasts.ts'
import type { KeyWords } from '../../ui/key-list.tsx'
import { useKeys } from '../../ui/shortcuts.ts'

const cardOf = (element: Element | null) => element?.closest<HTMLElement>('[data-card]') ?? null
const cardsIn = (place: ParentNode) =>
  [...place.querySelectorAll<HTMLElement>('[data-card]')].filter((card) => card.checkVisibility())
const focusCard = (card: HTMLElement | undefined) => card?.querySelector<HTMLElement>('a')?.focus()

export const cardKeyHelp: readonly KeyWords[] = [
  { keys: 'J', does: 'Next card; the arrows lead to the other columns' },
  { keys: 'K', does: 'Previous card' },
  { keys: 'Enter', does: 'Open the chat' },
  { keys: 'M', does: 'Move to another stage, then its number' },
  { keys: 'Z', does: 'Undo' },
]

export function useCardKeys(): void {
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    m: () => {
      const card = cardOf(document.activeElement) ?? document.querySelector('[data-card]:hover')
      card?.querySelector<HTMLElement>('[data-move]')?.click()
    },
    z: () => undoLast(),
  })
  useEffect(() => {
    // Only on a card: elsewhere the arrows scroll.
    const onArrow = (event: KeyboardEvent) => {
      const act = arrows[event.key]
      if (!act || event.defaultPrevented || !(event.target instanceof Element) || !cardOf(event.target))
        return
      event.preventDefault()
      act()
    }
    addEventListener('keydown', onArrow)
    return () => removeEventListener('keydown', onArrow)
  }, [])
}

const arrows: Readonly<Record<string, () => void>> = {
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  ArrowRight: () => sideStep(1),
  ArrowLeft: () => sideStep(-1),
}

/** Within the column. */
function step(by: number): void {
  const card = cardOf(document.activeElement)
  const cards = cardsIn(card?.closest('[data-stage]') ?? document)
  focusCard(card ? cards[cards.indexOf(card) + by] : cards[0])
}

/** To the card at the same height of the next column that has one. */
function sideStep(by: number): void {
  const card = cardOf(document.activeElement)
  const columns = [...document.querySelectorAll('[data-stage]')].filter(
    (column) => column.contains(card) || cardsIn(column).length > 0,
  )
  const next = columns[columns.findIndex((column) => column.contains(card)) + by]
  if (!card || !next) return
  const top = card.getBoundingClientRect().top
  const distance = (each: HTMLElement) => Math.abs(each.getBoundingClientRect().top - top)
  focusCard(cardsIn(next).sort((a, b) => distance(a) - distance(b))[0])
}
