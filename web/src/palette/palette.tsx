/** ⌘K: one field that finds chats, contacts, messages, pages and actions. */
import { Dialog } from '@base-ui/react/dialog'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { ContactRound, CornerDownLeft, FileText, MessageCircle, MessageSquareText, Zap } from 'lucide-react'
import { type KeyboardEvent, useEffect, useId, useMemo, useState } from 'react'
import { ExactLine } from '../exact-text.tsx'
import { useSession, useWorkspace } from '../place.ts'
import { foundQuery, type Item, itemsFor, placesAndActions } from './palette-items.ts'

interface PaletteProps {
  open: boolean
  onClose: () => void
}

export function Palette({ open, onClose }: PaletteProps) {
  return (
    <Dialog.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fades fixed inset-0 z-40 bg-shade" />
        <Dialog.Viewport className="fixed inset-0 z-40 grid items-start justify-items-center p-3 sm:pt-[12vh]">
          <Dialog.Popup className="arrives flex max-h-[min(32rem,calc(100dvh-1.5rem))] w-full max-w-xl flex-col overflow-hidden rounded-xl bg-raised shadow-float outline-none">
            <Dialog.Title className="sr-only">Search or go to</Dialog.Title>
            {/* Inside, so that every opening begins with an empty field. */}
            <Finder onClose={onClose} />
          </Dialog.Popup>
        </Dialog.Viewport>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

/** A request waits until the user pauses. */
const pauseMs = 200

function usePaused(text: string): string {
  const [paused, setPaused] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setPaused(text), pauseMs)
    return () => clearTimeout(timer)
  }, [text])
  return paused
}

function Finder({ onClose }: { onClose: () => void }) {
  const session = useSession()
  const workspace = useWorkspace()
  const navigate = useNavigate()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const list = useId()
  const question = text.trim()
  const paused = usePaused(question)
  const { data: found, isFetching } = useQuery({
    ...foundQuery(workspace?.id ?? '', paused),
    enabled: workspace !== undefined && paused.length > 1,
    placeholderData: (before) => before,
  })
  const fixed = useMemo(() => placesAndActions(session, workspace), [session, workspace])
  const items = itemsFor(question, {
    workspace_id: workspace?.id,
    fixed,
    found: question.length > 1 ? found : undefined,
  })
  const chosen = Math.min(at, items.length - 1)
  const choose = ({ to, act }: Item) => {
    onClose()
    act?.()
    if (to !== undefined) void navigate({ href: `/dashboard${to}` })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }
    const step = steps[event.key]
    if (step !== undefined && items.length > 0) {
      event.preventDefault()
      setAt((chosen + step + items.length) % items.length)
    }
    const item = items[chosen]
    // Enter also confirms a Chinese or Japanese word in an input method.
    if (event.key === 'Enter' && item && !event.nativeEvent.isComposing) {
      event.preventDefault()
      choose(item)
    }
  }
  return (
    <>
      <input
        role="combobox"
        aria-label="Search or go to"
        aria-expanded
        aria-controls={list}
        aria-activedescendant={items[chosen] ? `${list}-${chosen}` : undefined}
        placeholder="Search chats, contacts and messages, or go to…"
        maxLength={200}
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setAt(0)
        }}
        onKeyDown={onKeyDown}
        className="h-12 shrink-0 border-b border-line bg-transparent px-4 text-base outline-none"
      />
      <p role="status" className={items.length === 0 ? 'px-4 py-3 text-muted' : 'sr-only'}>
        {items.length === 0 && !isFetching && 'Nothing found.'}
        {items.length === 0 && isFetching && 'Searching…'}
      </p>
      <div
        id={list}
        role="listbox"
        aria-label="Found"
        tabIndex={-1}
        className="min-h-0 overflow-y-auto p-1.5 outline-none empty:hidden"
      >
        {items.map((item, index) => (
          <Option
            key={item.id}
            id={`${list}-${index}`}
            item={item}
            heading={item.group === items[index - 1]?.group ? undefined : item.group}
            selected={index === chosen}
            onPoint={() => setAt(index)}
            onChoose={() => choose(item)}
          />
        ))}
      </div>
    </>
  )
}

const icons = {
  Chats: MessageCircle,
  Contacts: ContactRound,
  Messages: MessageSquareText,
  Pages: FileText,
  Actions: Zap,
} as const

interface OptionProps {
  id: string
  item: Item
  heading: string | undefined
  selected: boolean
  onPoint: () => void
  onChoose: () => void
}

function Option({ id, item, heading, selected, onPoint, onChoose }: OptionProps) {
  const Icon = icons[item.group]
  useEffect(() => {
    if (selected) document.getElementById(id)?.scrollIntoView({ block: 'nearest' })
  }, [selected, id])
  return (
    <>
      {heading !== undefined && (
        <p role="presentation" className="px-2.5 pt-2 pb-1 text-xs font-medium text-muted">
          {heading}
        </p>
      )}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the combobox above has the keys. */}
      {/* biome-ignore lint/a11y/useFocusableInteractive: the combobox above keeps the focus. */}
      <div
        id={id}
        role="option"
        aria-selected={selected}
        onClick={onChoose}
        onPointerMove={onPoint}
        className={`flex h-11 cursor-pointer items-center gap-2.5 rounded-lg px-2.5 min-[761px]:h-9 ${selected ? 'bg-hover' : ''}`}
      >
        <Icon aria-hidden className="size-4 shrink-0 text-muted" />
        <span className="min-w-0 flex-1 truncate">
          <ExactLine text={item.label} empty="No name" />
        </span>
        {item.about !== undefined && (
          <span className="max-w-40 shrink-0 truncate text-xs text-muted">
            <ExactLine text={item.about} />
          </span>
        )}
        {item.keys !== undefined && (
          <kbd className="hidden shrink-0 font-sans text-xs text-muted min-[761px]:inline">{item.keys}</kbd>
        )}
        {selected && <CornerDownLeft aria-hidden className="size-3.5 shrink-0 text-muted" />}
      </div>
    </>
  )
}
