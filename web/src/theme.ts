/** Light, dark, or the system's theme. Each browser stores its choice; `public/theme.js` applies it before the first paint. */
import { useSyncExternalStore } from 'react'

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const name = 'parley.theme'
const listeners = new Set<() => void>()

function read(): Theme {
  const chosen = localStorage.getItem(name)
  return chosen === 'light' || chosen === 'dark' ? chosen : 'system'
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, read)
}

export function setTheme(theme: Theme): void {
  if (theme === 'system') {
    localStorage.removeItem(name)
    delete document.documentElement.dataset.theme
  } else {
    localStorage.setItem(name, theme)
    document.documentElement.dataset.theme = theme
  }
  for (const listener of listeners) listener()
}
