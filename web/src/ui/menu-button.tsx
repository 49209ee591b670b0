/** Opens the menu on a narrow screen. The frame says what is in it. */
import { useRouterState } from '@tanstack/react-router'
import { Menu } from 'lucide-react'
import { createContext, lazy, type ReactNode, Suspense, useContext, useState } from 'react'

/** Loaded when it is first opened, then kept for its animation. */
const Drawer = lazy(async () => ({ default: (await import('./drawer.tsx')).Drawer }))

export const MenuContent = createContext<ReactNode>(null)

/** On a narrow screen the menu is behind this button. */
export function MenuButton() {
  const menu = useContext(MenuContent)
  const at = useRouterState({ select: ({ location }) => location.href })
  const [openAt, setOpenAt] = useState<string | null>()
  return (
    <>
      <button
        type="button"
        aria-label="Open the menu"
        onClick={() => setOpenAt(at)}
        className="grid size-10 shrink-0 place-items-center rounded-lg hover:bg-hover lg:hidden"
      >
        <Menu aria-hidden className="size-5" />
      </button>
      {openAt !== undefined && (
        <Suspense>
          {/* It is open at one address, so navigating closes it. */}
          <Drawer open={openAt === at} onClose={() => setOpenAt(null)}>
            {menu}
          </Drawer>
        </Suspense>
      )}
    </>
  )
}
