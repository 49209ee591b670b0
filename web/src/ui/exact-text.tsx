/**
 * Shows text from others exactly. Invisible characters, and those that reverse the writing direction, appear as their code:
 * a person who approves a text must see all of it.
 */
import { createElement, type ReactNode } from 'react'
import { codeOf, splitHidden } from '../data/hidden-characters.ts'

export function ExactText({ text }: { text: string }) {
  const parts = splitHidden(text).map(
    (part, at): ReactNode => (at % 2 === 1 ? createElement(CharacterCode, { of: part }) : part),
  )
  // As arguments, not as a list: the parts never change order, so they need no keys.
  return createElement('bdi', { className: 'whitespace-pre-wrap [overflow-wrap:anywhere]' }, ...parts)
}

/** Names and previews: longer ones are cut anyway. */
const lineMax = 300

interface LineProps {
  text: string
  /** Replaces a text that shows nothing. */
  empty?: string
  /** Alone in its place, where it is cut at its own end: of a text that runs from right to left, that is the left. */
  cut?: boolean
}

/** The same on one line, which the layout truncates: line breaks become spaces. */
export function ExactLine({ text, empty, cut = false }: LineProps) {
  const line = text.length > lineMax ? `${text.slice(0, lineMax).toWellFormed()}…` : text
  const flat = line.replaceAll(/\s+/g, ' ').trim()
  if (flat === '') return empty
  const parts = splitHidden(flat).map(
    (part, at): ReactNode => (at % 2 === 1 ? createElement(CharacterCode, { of: part }) : part),
  )
  const look = cut ? { className: 'block min-w-0 truncate text-left' } : {} // guard: cut at its own end
  return createElement('bdi', { dir: 'auto', ...look }, ...parts)
}

function CharacterCode({ of }: { of: string }) {
  return (
    <span
      title="A character that cannot be seen"
      className="mx-0.5 rounded bg-warn-wash px-1 font-mono text-xs text-warn"
    >
      {codeOf(of)}
    </span>
  )
}
