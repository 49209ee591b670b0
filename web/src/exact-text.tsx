/**
 * Text of others, shown exactly. Characters that cannot be seen, or that turn the writing around, are shown as their
 * code: whoever approves a text must see all of it.
 */
import { createElement, type ReactNode } from 'react'
import { codeOf, splitHidden } from './hidden-characters.ts'

export function ExactText({ text }: { text: string }) {
  const parts = splitHidden(text).map(
    (part, at): ReactNode => (at % 2 === 1 ? createElement(CharacterCode, { of: part }) : part),
  )
  // As arguments, not as a list: the parts never change places, so they need no keys.
  return createElement('bdi', { className: 'whitespace-pre-wrap [overflow-wrap:anywhere]' }, ...parts)
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
