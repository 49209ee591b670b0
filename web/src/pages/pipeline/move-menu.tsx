/** "Move to…": the stages by name and by number, beside the card that `M` or a tap chose. */
import { Menu as Base } from '@base-ui/react/menu'
import { type KeyboardEvent, useRef } from 'react'
import type { InboxChat } from '../../data/chats.ts'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Keys } from '../../ui/key-cap.tsx'
import { StageDot } from '../../ui/stage-dot.tsx'
import type { Stage } from '../../ui/stages.ts'

export interface Chosen {
  readonly chat: InboxChat
  readonly anchor: Element
}

interface MoveMenuProps {
  chosen: Chosen
  open: boolean
  stages: readonly Stage[]
  onMove: (chat: InboxChat, stage_key: string) => void
  onClose: () => void
}

export function MoveMenu({ chosen: { chat, anchor }, open, stages, onMove, onClose }: MoveMenuProps) {
  // The next card, so that a whole column can be worked through; after Escape the same one.
  const focusNext = useRef<HTMLElement | null>(null)
  const choose = (stage_key: string) => {
    focusNext.current = neighbourOf(anchor)
    onMove(chat, stage_key)
    onClose()
  }
  const byNumber = (event: KeyboardEvent) => {
    const stage = /^[1-9]$/.test(event.key) ? stages[Number(event.key) - 1] : undefined
    if (!stage || stage.hidden || stage.key === chat.stage_key) return
    event.preventDefault()
    event.stopPropagation()
    choose(stage.key)
  }
  return (
    <Base.Root
      open={open}
      onOpenChange={(next, { reason }) => {
        if (reason !== 'item-press') focusNext.current = null
        if (!next) onClose()
      }}
    >
      <Base.Portal>
        <Base.Positioner
          anchor={anchor}
          align="start"
          side="bottom"
          sideOffset={6}
          className="z-40 outline-none"
        >
          <Base.Popup
            onKeyDownCapture={byNumber}
            finalFocus={() => focusNext.current ?? linkOf(anchor)}
            className="arrives max-h-[min(60vh,var(--available-height))] w-56 max-w-[calc(100vw-2rem)] overflow-y-auto rounded-[10px] bg-raised p-1.25 shadow-float outline-none"
          >
            <Base.Group>
              <Base.GroupLabel className="flex gap-1 px-2 py-1 text-xs font-medium whitespace-nowrap text-muted">
                Move <ExactLine text={chat.name} empty="this chat" cut /> to
              </Base.GroupLabel>
              {stages.map(({ key, label, hidden }, at) =>
                hidden || key === chat.stage_key ? null : (
                  <Base.Item
                    key={key}
                    onClick={() => choose(key)}
                    className="flex h-7.5 items-center gap-2.25 rounded-md px-2 outline-none select-none data-highlighted:bg-hover pointer-coarse:h-11"
                  >
                    <StageDot stages={stages} of={key} />
                    <span className="min-w-0 flex-1 truncate">
                      <ExactLine text={label} cut />
                    </span>
                    {at < 9 && <Keys keys={String(at + 1)} />}
                  </Base.Item>
                ),
              )}
            </Base.Group>
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}

const linkOf = (anchor: Element) => anchor.closest('[data-card]')?.querySelector<HTMLElement>('a') ?? null

function neighbourOf(anchor: Element): HTMLElement | null {
  const item = anchor.closest('[data-card]')?.parentElement
  const key = anchor.closest<HTMLElement>('[data-card]')?.dataset.card
  const cards = [...(item?.parentElement?.querySelectorAll<HTMLElement>('[data-card]') ?? [])]
  const at = cards.findIndex((card) => card.dataset.card === key)
  return (cards[at + 1] ?? cards[at - 1])?.querySelector<HTMLElement>('a') ?? null
}
