/** ⌘K: one field that finds chats, contacts, messages, pages and actions. */
import { Dialog } from '@base-ui/react/dialog'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import {
  ContactRound,
  CornerDownLeft,
  FileText,
  MessageCircle,
  MessageSquareText,
  UserRound,
  Zap,
} from 'lucide-react'
import { useEffect, useMemo, useState } from 'react'
import { useSession, useWorkspace } from '../../data/place.ts'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Finder } from '../../ui/finder.tsx'
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
            <Search onClose={onClose} />
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

function Search({ onClose }: { onClose: () => void }) {
  const session = useSession()
  const workspace = useWorkspace()
  const navigate = useNavigate()
  const [text, setText] = useState('')
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
  const choose = ({ to, act }: Item) => {
    onClose()
    act?.()
    if (to !== undefined) void navigate({ href: `/dashboard${to}` })
  }
  return (
    <Finder
      label="Search or go to"
      placeholder="Search chats, contacts and messages, or go to…"
      lengthMax={200}
      text={text}
      onFind={setText}
      fieldClass="h-12 px-4 text-base"
      note={
        <p role="status" className={items.length === 0 ? 'px-4 py-3 text-muted' : 'sr-only'}>
          {items.length === 0 && !isFetching && 'Nothing found.'}
          {items.length === 0 && isFetching && 'Searching…'}
        </p>
      }
      listLabel="Found"
      items={items}
      keyOf={({ id }) => id}
      headingOf={({ group }, before) => (group === before?.group ? undefined : group)}
      itemClass="flex h-11 items-center gap-2.5 min-[761px]:h-9"
      onChoose={choose}
    >
      {(item) => <Found item={item} />}
    </Finder>
  )
}

const icons = {
  Chats: MessageCircle,
  Contacts: ContactRound,
  People: UserRound,
  Messages: MessageSquareText,
  Pages: FileText,
  Actions: Zap,
} as const

function Found({ item: { group, label, about, keys } }: { item: Item }) {
  const Icon = icons[group]
  return (
    <>
      <Icon aria-hidden className="size-4 shrink-0 text-muted" />
      <span className="min-w-0 flex-1 truncate">
        <ExactLine text={label} empty="No name" cut />
      </span>
      {about !== undefined && (
        <span className="max-w-40 shrink-0 truncate text-xs text-muted">
          <ExactLine text={about} cut />
        </span>
      )}
      {keys !== undefined && (
        <kbd className="hidden shrink-0 font-sans text-xs text-muted min-[761px]:inline">{keys}</kbd>
      )}
      <CornerDownLeft
        aria-hidden
        className="hidden size-3.5 shrink-0 text-muted group-data-highlighted:block"
      />
    </>
  )
}
