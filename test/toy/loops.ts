import type { Loop } from '../../src/loop.ts'
import { countDue, findNextDue, tellDue } from './toy.ts'

export const loops = (): readonly Loop[] => [
  {
    name: 'toy-reminders',
    restMs: 50,
    step: ({ db }) => tellDue(db),
    nextDueAt: ({ db }) => findNextDue(db),
    countDue: ({ db }) => countDue(db),
  },
]
