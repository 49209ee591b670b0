/** Light, dark, or the system's theme. Each browser stores its choice; `public/theme.js` applies it before the first paint. */
import { SharedState, useShared } from '../data/shared-state.ts'

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const name = 'parley.theme'

function read(): Theme {
  const chosen = localStorage.getItem(name)
  return chosen === 'light' || chosen === 'dark' ? chosen : 'system'
}

const theme = new SharedState<Theme>('system', { read })

export function useTheme(): Theme {
  return useShared(theme)
}

export function setTheme(next: Theme): void {
  if (next === 'system') {
    localStorage.removeItem(name)
    delete document.documentElement.dataset.theme
  } else {
    localStorage.setItem(name, next)
    document.documentElement.dataset.theme = next
  }
  theme.set(next)
}
