/**
 * Text of others, shown exactly. Characters that cannot be seen, or that turn the writing around, are shown as their
 * code: whoever approves a text must see all of it.
 */
import { createElement, type ReactNode } from 'react'

const hidden = /([\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u{e0000}-\u{e0fff}\u115f\u1160\u3164\uffa0])/u
/** Line breaks and tabs are seen as such, and the joiner in an emoji by the sign it makes. */
const seen = /^[\n\t\u200d]$/

export function ExactText({ text }: { text: string }) {
  // Every second part is one of the characters above.
  const parts = text
    .split(hidden)
    .map(
      (part, at): ReactNode =>
        at % 2 === 1 && !seen.test(part) ? createElement(CharacterCode, { of: part }) : part,
    )
  // As arguments, not as a list: the parts never change places, so they need no keys.
  return createElement('bdi', { className: 'whitespace-pre-wrap [overflow-wrap:anywhere]' }, ...parts)
}

function CharacterCode({ of }: { of: string }) {
  const code = (of.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
  return (
    <span
      title="A character that cannot be seen"
      className="mx-0.5 rounded bg-warn-wash px-1 font-mono text-xs text-warn"
    >
      U+{code}
    </span>
  )
}
