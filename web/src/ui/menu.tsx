/** The one menu: a row's actions, the workspaces, the user's account. */
import { Menu as Base } from '@base-ui/react/menu'
import { Ellipsis } from 'lucide-react'
import type { ReactElement, ReactNode } from 'react'
import { IconButton } from './icon-button.tsx'

interface MenuProps {
  trigger: ReactElement
  align?: 'start' | 'end'
  side?: 'top' | 'bottom'
  children: ReactNode
}

export function Menu({ trigger, align = 'end', side = 'bottom', children }: MenuProps) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner align={align} side={side} sideOffset={6} className="z-40 outline-none">
          <Base.Popup className="arrives min-w-52 max-w-[min(20rem,calc(100vw-2rem))] rounded-xl bg-raised p-1.5 shadow-float outline-none">
            {children}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}

/** The actions of one row of a table, which `of` names. */
export function ActionsMenu({ of, children }: { of: string; children: ReactNode }) {
  return (
    <Menu
      trigger={
        <IconButton label={`Actions for ${of}`}>
          <Ellipsis aria-hidden className="size-4" />
        </IconButton>
      }
    >
      {children}
    </Menu>
  )
}

interface ItemProps {
  onSelect?: () => void
  /** A link, if the item leads somewhere. */
  render?: ReactElement
  tone?: 'plain' | 'danger'
  children: ReactNode
}

export function MenuItem({ onSelect, render, tone = 'plain', children }: ItemProps) {
  return (
    <Base.Item
      {...(render && { render })}
      onClick={onSelect}
      className={`flex h-11 items-center gap-2.5 rounded-lg px-2.5 outline-none md:h-8 select-none data-highlighted:bg-hover
        ${tone === 'danger' ? 'text-danger' : 'text-ink'}`}
    >
      {children}
    </Base.Item>
  )
}

export function MenuLine() {
  return <Base.Separator className="my-1.5 h-px bg-line" />
}
