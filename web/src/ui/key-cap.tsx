/** The keys that do the same as a button, shown on it where there is a keyboard. */

/** On other systems Control is where ⌘ is on a Mac. */
const isMac = typeof navigator !== 'undefined' && /Mac|iP(hone|ad)/.test(navigator.platform)

export function keysHere(keys: string): string {
  return isMac ? keys : keys.replace('⌘', 'Ctrl ')
}

export function Keys({ keys, onAccent = false }: { keys: string; onAccent?: boolean }) {
  return (
    <kbd
      aria-hidden
      className={`hidden rounded-[5px] px-1 font-sans text-[11px]/[17px] font-medium ring-1 ring-inset min-[761px]:pointer-fine:inline-block
        ${onAccent ? 'ring-current/35' : 'text-muted ring-line'}`}
    >
      {keysHere(keys)}
    </kbd>
  )
}
