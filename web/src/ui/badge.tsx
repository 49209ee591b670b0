/** A word about a state. The dot is never the only sign. */
import type { ReactNode } from 'react'

type Tone = 'plain' | 'good' | 'warn' | 'danger'

const tones: Record<Tone, string> = {
  plain: 'bg-sunken text-soft ring-line',
  good: 'bg-accent-wash text-accent ring-transparent',
  warn: 'bg-warn-wash text-warn ring-transparent',
  danger: 'bg-danger-wash text-danger ring-transparent',
}

export function Badge({ tone = 'plain', children }: { tone?: Tone; children: ReactNode }) {
  return (
    <span
      className={`inline-flex h-5.5 items-center gap-1 whitespace-nowrap rounded-md px-1.5 text-xs font-medium ring-1 ring-inset ${tones[tone]}`}
    >
      {children}
    </span>
  )
}
