/** The open chat: files that are dropped anywhere on it join the answer. */
import { FileUp } from 'lucide-react'
import { type DragEvent, type ReactNode, useState } from 'react'
import { useShared } from '../../data/shared-state.ts'
import { filesDropped, hasFiles, type RefusedFile } from './chosen-files.ts'
import type { Answer } from './use-answer.ts'

interface DropTargetProps {
  answer: Answer
  /** Called with the files that the answer does not take. */
  onAttached: (refused: readonly RefusedFile[]) => void
  children: ReactNode
}

export function DropTarget({ answer, onAttached, children }: DropTargetProps) {
  // Also while a note is written, and the answer is not shown: files join what the store and other tabs have by then.
  useShared(answer.shown)
  const [isOver, setOver] = useState(false)
  const onDrag = (event: DragEvent) => {
    if (!hasFiles(event.dataTransfer)) return
    event.preventDefault()
    event.dataTransfer.dropEffect = 'copy'
    setOver(true)
  }
  const onDrop = (event: DragEvent) => {
    if (!hasFiles(event.dataTransfer)) return
    event.preventDefault()
    setOver(false)
    onAttached(answer.attach(filesDropped(event.dataTransfer)))
  }
  return (
    <section
      aria-label="Chat"
      onDragEnter={onDrag}
      onDragOver={onDrag}
      onDrop={onDrop}
      className="relative flex min-h-0 min-w-0 flex-col"
    >
      {children}
      {isOver && (
        // It lies over everything, so that only its own edge ends the drag.
        <div
          role="status"
          onDragLeave={() => setOver(false)}
          className="absolute inset-2 z-20 grid place-items-center rounded-xl border-2 border-dashed border-accent bg-surface/95"
        >
          <p className="pointer-events-none flex items-center gap-2 text-base font-semibold">
            <FileUp aria-hidden className="size-5 text-accent" />
            Drop to attach to your answer
          </p>
        </div>
      )}
    </section>
  )
}
